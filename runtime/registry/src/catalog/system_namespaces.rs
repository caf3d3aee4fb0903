//! The namespaces that a server creates by itself, when it starts and again when one is gone.
//!
//! Every server has `default`. Those of Kubernetes beside it are needed where controllers run: they keep their leases in
//! kube-system. As kube-apiserver does, every server looks for them once a minute.

use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ApiError, Object, StatusReason, names};
use apiloom_storage::StorageError;
use futures_util::future::{join_all, try_join_all};
use tokio::time::{Instant, MissedTickBehavior};

use crate::endpoint::Endpoint;
use crate::options::{CreateOptions, GetOptions, RequestContext};

/// The namespace that the first start creates.
const DEFAULT: &str = "default";

/// The namespaces beside `default` of servers with built-in kinds: those of kube-apiserver.
pub(super) const KUBERNETES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Time between looks for the namespaces, that of kube-apiserver.
const LOOK: Duration = Duration::from_secs(60);

/// The namespaces that a server creates by itself.
#[derive(Debug)]
pub(crate) struct SystemNamespaces {
    /// Without admission and cache.
    endpoint: Endpoint,
    names: Vec<String>,
}

impl SystemNamespaces {
    /// `default` and these.
    pub(super) fn new(endpoint: Endpoint, others: Vec<String>) -> Self {
        let mut names = vec![DEFAULT.to_owned()];
        for name in others {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self { endpoint, names }
    }

    /// Creates all of them, at the same time: they share the wait for a disk.
    pub(super) async fn create(&self) -> Result<(), StorageError> {
        let created = try_join_all(self.names.iter().map(|name| self.create_one(name))).await;
        let unavailable = |error: ApiError| StorageError::Unavailable(error.message);
        created.map(drop).map_err(unavailable)
    }

    /// Creates at intervals those that are gone; never returns.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut looks = tokio::time::interval_at(Instant::now() + LOOK, LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            join_all(self.names.iter().map(|name| self.restore(name))).await;
        }
    }

    async fn restore(&self, name: &str) {
        if let Err(error) = self.create_if_gone(name).await {
            tracing::warn!(namespace = name, %error, "cannot create a required namespace");
        }
    }

    async fn create_if_gone(&self, name: &str) -> Result<(), ApiError> {
        let ctx = RequestContext::default();
        let reads = self.endpoint.reads();
        match reads.get(&ctx, None, name, &GetOptions::default()).await {
            Err(error) if error.reason == Some(StatusReason::NotFound) => {
                self.create_one(name).await
            }
            found => found.map(drop),
        }
    }

    async fn create_one(&self, name: &str) -> Result<(), ApiError> {
        let mut object = Object::default();
        let def = self.endpoint.def();
        object.set_type(&def.api_version(), &def.kind);
        object.set_meta_str("name", name);
        let ctx = RequestContext::default();
        let options = CreateOptions::default();
        let created = self.endpoint.writes().create(&ctx, None, object, &options);
        match created.await {
            Err(error) if error.reason == Some(StatusReason::AlreadyExists) => Ok(()),
            created => created.map(drop),
        }
    }
}

/// What is wrong with names of namespaces, one line for each.
pub(super) fn problems(others: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for name in others {
        for why in names::dns_label(name) {
            let problem = format!("{name:?} cannot be the name of a system namespace: {why}");
            problems.push(problem);
        }
    }
    problems
}
