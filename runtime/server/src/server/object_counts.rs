//! Counts stored objects and measures stores periodically, so that a scrape of `/metrics` needs no request to the
//! store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apiloom_http::observation::metrics::Metrics;
use apiloom_registry::Registry;
use tokio::time::{MissedTickBehavior, interval};

/// Interval of the counts, as in kube-apiserver.
const EVERY: Duration = Duration::from_secs(60);

/// Counts immediately and then every minute; never returns.
pub(super) async fn keep(registry: Arc<Registry>, metrics: Arc<Metrics>) {
    let mut ticks = interval(EVERY);
    // After a slow count the next one starts a full interval later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut counted = BTreeSet::new();
    loop {
        ticks.tick().await;
        let counts = registry.count_objects().await;
        let present = counts
            .iter()
            .map(|(resource, _)| resource.clone())
            .collect();
        for gone in std::mem::replace(&mut counted, present).difference(&counted) {
            metrics.forget_objects(gone);
        }
        for (resource, count) in counts {
            if let Err(error) = &count {
                tracing::warn!(%resource, %error, "unable to count the objects of a resource");
            }
            metrics.set_objects(&resource, count.ok());
        }
        for (number, size) in registry.store_sizes().await.into_iter().enumerate() {
            match size {
                Ok(bytes) => metrics.set_store_size(number, bytes),
                Err(error) => tracing::warn!(%error, "unable to read the size of a store"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use apiloom_http::ServerInfo;
    use apiloom_http::request::accept::Accepts;
    use apiloom_meta::{GroupResource, Object};
    use apiloom_registry::{CatalogChange, CreateOptions, RequestContext};
    use apiloom_storage::{Memory, Storage};
    use http::Request;
    use http_body_util::BodyExt as _;
    use serde_json::json;

    use super::*;

    async fn create_namespace(registry: &Registry, name: &str) {
        let mut object = Object::default();
        object.set_type("v1", "Namespace");
        object.set_meta_str("name", name);
        let namespaces = registry.endpoint("", "v1", "namespaces").unwrap();
        namespaces
            .writes()
            .create(
                &RequestContext::default(),
                None,
                object,
                &CreateOptions::default(),
            )
            .await
            .unwrap();
    }

    async fn text(metrics: &Metrics) -> String {
        let (request, ()) = Request::get("/metrics").body(()).unwrap().into_parts();
        let response = metrics
            .respond(&request, &Accepts::new(&request.headers))
            .unwrap();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits, without a further count, until the metrics contain this line.
    async fn wait_for(metrics: &Metrics, line: &str) {
        while !text(metrics).await.lines().any(|known| known == line) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn objects_are_counted_at_the_start_and_every_minute() {
        let store = Memory::new();
        let registry = Arc::new(apiloom_kinds::registry(store.clone()).build().unwrap());
        create_namespace(&registry, "a").await;
        let metrics = Arc::new(Metrics::new(&ServerInfo::default()));
        let task = tokio::spawn(keep(Arc::clone(&registry), Arc::clone(&metrics)));
        let started = tokio::time::Instant::now();
        let line = |count: i64| {
            format!("apiserver_resource_objects{{group=\"\",resource=\"namespaces\"}} {count}")
        };
        wait_for(&metrics, &line(1)).await;
        assert!(started.elapsed() < Duration::from_secs(1));

        create_namespace(&registry, "b").await;
        wait_for(&metrics, &line(2)).await;
        wait_for(
            &metrics,
            "apiserver_storage_objects{resource=\"namespaces\"} 2",
        )
        .await;
        assert!(started.elapsed() >= EVERY);

        store.close().await;
        wait_for(&metrics, &line(-1)).await;
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_that_is_gone_has_no_count() {
        let registry = Arc::new(Registry::builder(Memory::new()).build().unwrap());
        let metrics = Arc::new(Metrics::new(&ServerInfo::default()));
        let definition = json!({"spec": {
            "group": "ex.io", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }});
        let change = CatalogChange::new().document(&definition).unwrap();
        registry.change(change).await.unwrap();
        let task = tokio::spawn(keep(Arc::clone(&registry), Arc::clone(&metrics)));
        let line = "apiserver_storage_objects{resource=\"foos.ex.io\"}";
        wait_for(&metrics, &format!("{line} 0")).await;
        let change = CatalogChange::new().remove(GroupResource::new("ex.io", "foos"));
        registry.change(change).await.unwrap();
        while text(&metrics).await.contains(line) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        task.abort();
    }
}
