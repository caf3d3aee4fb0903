//! `Mapper`: finds resources by name or kind, and asks the server again for those that it does not know.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::resources::{DiscoveredResource, Discovery};
use crate::client::Client;
use crate::error::Error;

/// Shortest time between two reads of discovery that unknown names cause.
const SHORTEST: Duration = Duration::from_secs(10);

/// Finds the resources of a server. What it reads is kept; an unknown name or kind is asked for again, at most every ten
/// seconds, so that resources which the server got later are found.
#[derive(Debug)]
pub struct Mapper {
    client: Client,
    /// What was read last, and when.
    known: Mutex<Option<(Arc<Discovery>, Instant)>>,
    /// Held while discovery is read. Those who find what they look for do not wait for it.
    reading: tokio::sync::Mutex<()>,
}

/// A resource that was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The server has no such resource.
    #[error("the server has no resource {0:?}")]
    Unknown(String),
    /// Discovery failed.
    #[error("cannot read which resources the server has: {0}")]
    Discovery(#[from] Error),
}

impl Mapper {
    /// A mapper that has read nothing yet.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::new(None),
            reading: tokio::sync::Mutex::new(()),
        }
    }

    /// The resources, as they were read last; read now if they were not.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn discovery(&self) -> Result<Arc<Discovery>, Error> {
        if let Some((discovery, _)) = self.known() {
            return Ok(discovery);
        }
        let _reading = self.reading.lock().await;
        // Callers that waited here use what the first one read.
        match self.known() {
            Some((discovery, _)) => Ok(discovery),
            None => self.read().await,
        }
    }

    fn known(&self) -> Option<(Arc<Discovery>, Instant)> {
        self.known.lock().clone()
    }

    async fn read(&self) -> Result<Arc<Discovery>, Error> {
        let discovery = Arc::new(Discovery::read(&self.client).await?);
        *self.known.lock() = Some((Arc::clone(&discovery), Instant::now()));
        Ok(discovery)
    }

    /// Finds a resource by the name that a person gives; see [`Discovery::resource`].
    ///
    /// # Errors
    /// If the server has none, or does not answer.
    pub async fn resource(&self, name: &str) -> Result<DiscoveredResource, MapperError> {
        self.find(|discovery| discovery.resource(name).cloned())
            .await?
            .ok_or_else(|| MapperError::Unknown(name.to_owned()))
    }

    /// Finds the resource of a kind, in its preferred version unless one is given.
    ///
    /// # Errors
    /// If the server has none, or does not answer.
    pub async fn kind(
        &self,
        group: &str,
        version: Option<&str>,
        kind: &str,
    ) -> Result<DiscoveredResource, MapperError> {
        self.find(|discovery| discovery.kind(group, version, kind).cloned())
            .await?
            .ok_or_else(|| {
                let parts = [Some(kind), version, Some(group)].into_iter().flatten();
                let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                MapperError::Unknown(parts.join("."))
            })
    }

    async fn find<T>(&self, find: impl Fn(&Discovery) -> Option<T>) -> Result<Option<T>, Error> {
        if let Some(found) = find(&*self.discovery().await?) {
            return Ok(Some(found));
        }
        let _reading = self.reading.lock().await;
        if let Some((discovery, read)) = self.known()
            && read.elapsed() < SHORTEST
        {
            return Ok(find(&discovery));
        }
        Ok(find(&*self.read().await?))
    }
}
