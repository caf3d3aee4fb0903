//! Whether a cache shows what its server has now: for tests, which want to see what their writes lead to.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::lister::Lister;
use super::object::{CacheObject, ObjectKey};
use super::resource_version::ResourceVersion;
use super::source::{ListItem, ListRequest, ListWatch, SourceError};

/// Number of objects of a page.
const PAGE: u32 = 500;
/// Time between two attempts to list the objects.
const RETRY: Duration = Duration::from_millis(100);

/// A cache did not show what its server had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cache of {name} did not show what the server had within {limit:?}{}", .error.as_ref().map_or_else(String::new, |error| format!(": {error}")))]
pub struct BehindError {
    /// The name of the informer.
    pub name: String,
    /// How long it was waited for.
    pub limit: Duration,
    /// The failure of the last list, if it failed.
    pub error: Option<SourceError>,
}

/// What a server has.
struct Present {
    versions: HashMap<ObjectKey, String>,
    version: Option<ResourceVersion>,
}

async fn list<T: CacheObject>(source: &dyn ListWatch<T>) -> Result<Present, SourceError> {
    let mut versions = HashMap::new();
    let mut continue_token = None;
    loop {
        // Without a version it is the most recent state.
        let request = ListRequest {
            resource_version: String::new(),
            limit: Some(PAGE),
            continue_token,
        };
        let page = source.list(request).await?;
        for item in page.items {
            let (key, version) = match item {
                ListItem::Object(object) => {
                    let version = object.resource_version().to_owned();
                    (ObjectKey::of(&object), version)
                }
                ListItem::Undecodable(_) => continue,
            };
            versions.insert(key, version);
        }
        continue_token = page.continue_token;
        if continue_token.is_none() {
            let version = ResourceVersion::new(&page.resource_version);
            return Ok(Present { versions, version });
        }
    }
}

impl Present {
    /// Whether a cache shows it, or a later state.
    fn is_shown<T: CacheObject>(&self, lister: &Lister<T>) -> bool {
        let (objects, shown) = lister.snapshot();
        let is_later =
            |wanted: &ResourceVersion| shown.as_ref().is_some_and(|shown| shown.includes(wanted));
        if self.version.as_ref().is_some_and(is_later) {
            return true;
        }
        // Without a change of its objects a cache learns of later versions only from time to time.
        lister.is_synced()
            && objects.len() == self.versions.len()
            && objects.iter().all(|object| {
                let version = self.versions.get(&ObjectKey::of(&**object));
                version.is_some_and(|version| version == object.resource_version())
            })
    }
}

/// Waits until a cache shows what its source lists now.
pub(super) async fn catch_up<T: CacheObject>(
    source: &dyn ListWatch<T>,
    lister: &Lister<T>,
    name: &str,
    limit: Duration,
) -> Result<(), BehindError> {
    let end = Instant::now() + limit;
    let mut last = None;
    let waiting = async {
        let present = loop {
            match list(source).await {
                Ok(present) => break present,
                Err(error) => last = Some(error),
            }
            sleep(RETRY).await;
        };
        last = None;
        lister.wait_until(|| present.is_shown(lister)).await;
    };
    timeout_at(end, waiting).await.map_err(|_| BehindError {
        name: name.to_owned(),
        limit,
        error: last,
    })
}
