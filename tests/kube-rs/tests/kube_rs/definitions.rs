//! Discovery and watches of kinds that come and go.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
};
use kube::discovery::{Discovery, Scope};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Fixture;

/// Timeout for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that discovers.
struct Garden {
    client: Client,
}

impl Garden {
    fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    fn gates(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", resource)
    }

    /// Creates the definition of gates in one version, with one field, as soon as no older one is in the way.
    async fn define(&self, version: &str, field: &str) {
        let definition: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gates.garden.example.com"},
            "spec": {
                "group": "garden.example.com",
                "scope": "Namespaced",
                "names": {"plural": "gates", "kind": "Gate"},
                "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {field: {"type": "integer"}}}},
                }}}],
            },
        }))
        .unwrap();
        let definitions = self.definitions();
        until(async || {
            let created = definitions
                .create(&PostParams::default(), &definition)
                .await;
            created.is_ok()
        })
        .await;
    }

    /// The resource of gates, as soon as discovery has it.
    async fn discovered(&self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk("garden.example.com", version, "Gate");
        let mut found = None;
        until(async || {
            let discovery = Discovery::new(self.client.clone()).run_aggregated().await;
            found = discovery.unwrap().resolve_gvk(&kind);
            found.is_some()
        })
        .await;
        let (resource, capabilities) = found.unwrap();
        assert_eq!(capabilities.scope, Scope::Namespaced);
        resource
    }

    async fn create(&self, resource: &ApiResource, name: &str, spec: &Value) -> DynamicObject {
        let mut gate = DynamicObject::new(name, resource);
        gate.data = json!({"spec": spec});
        self.gates(resource)
            .create(&PostParams::default(), &gate)
            .await
            .unwrap()
    }
}

async fn until(mut is_done: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_done().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.expect("it happens in time");
}

/// The names of the objects that a watcher tells of, without its errors.
fn follow(api: Api<DynamicObject>, config: watcher::Config) -> UnboundedReceiver<String> {
    let (sender, names) = unbounded_channel();
    tokio::spawn(async move {
        let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
        while let Some(event) = stream.next().await {
            let text = match event {
                Ok(Event::InitApply(object) | Event::Apply(object)) => object.name_any(),
                Ok(Event::Delete(object)) => format!("deleted {}", object.name_any()),
                Ok(Event::Init | Event::InitDone) | Err(_) => continue,
            };
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    names
}

/// Waits until a watcher tells of an object.
async fn told(names: &mut UnboundedReceiver<String>, name: &str) {
    let told = tokio::time::timeout(PATIENCE, async {
        while names.recv().await.expect("a watcher does not end") != name {}
    });
    told.await.expect("the watcher tells of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_come_and_go_while_they_are_watched() {
    let fixture = Fixture::start().await;
    let garden = Garden {
        client: fixture.client.clone(),
    };
    garden.define("v1", "width").await;
    let first = garden.discovered("v1").await;
    garden.create(&first, "north", &json!({"width": 3})).await;
    let configs = [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ];
    let mut watchers = configs
        .clone()
        .map(|config| follow(garden.gates(&first), config));
    for names in &mut watchers {
        told(names, "north").await;
    }

    // The kind is deleted with its object, and made again in the same version with another schema.
    let definitions = garden.definitions();
    let params = DeleteParams::default();
    definitions
        .delete("gates.garden.example.com", &params)
        .await
        .unwrap();
    for names in &mut watchers {
        told(names, "deleted north").await;
    }
    garden.define("v1", "height").await;
    let again = garden.discovered("v1").await;
    assert_eq!(again, first);
    let gates = garden.gates(&first);
    until(async || gates.list(&ListParams::default()).await.is_ok()).await;
    let south = garden
        .create(&first, "south", &json!({"height": 2, "width": 3}))
        .await;
    assert_eq!(south.data["spec"], json!({"height": 2}));
    for names in &mut watchers {
        told(names, "south").await;
    }

    // It is made again in another version: what was discovered before is no longer served.
    definitions
        .delete("gates.garden.example.com", &params)
        .await
        .unwrap();
    garden.define("v2", "height").await;
    let second = garden.discovered("v2").await;
    assert_eq!(second.plural, "gates");
    let groups = Discovery::new(fixture.client.clone()).run().await.unwrap();
    let group = groups.get("garden.example.com").unwrap();
    assert_eq!(group.versions().collect::<Vec<_>>(), ["v2"]);
    let mut names = follow(garden.gates(&second), watcher::Config::default());
    garden.create(&second, "west", &json!({"height": 1})).await;
    told(&mut names, "west").await;
    assert!(gates.list(&ListParams::default()).await.is_err());
}
