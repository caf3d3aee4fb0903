//! Definitions, and creates of custom resources that are under way while their definition is deleted.

use apiloom_meta::GroupResource;
use apiloom_meta::kind::custom_definitions;
use tokio::sync::Notify;

use super::*;

/// Holds creates between the check of their definition and their write.
#[derive(Clone, Default)]
struct Pause {
    arrived: Arc<Notify>,
    continued: Arc<Notify>,
}

#[async_trait]
impl Admission for Pause {
    fn name(&self) -> &'static str {
        "Pause"
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.name == "late" {
            self.arrived.notify_one();
            self.continued.notified().await;
        }
        Ok(())
    }
}

fn foos() -> GroupResource {
    GroupResource::new("ex.io", "foos")
}

/// A definition whose first version is the stored one.
fn document(group: &str, plural: &str, kind: &str, versions: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == versions[0],
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"spec": {
        "group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind}, "versions": versions,
    }})
}

/// The change that publishes a definition with this uid in this state.
fn published(uid: &str, state: &str) -> CatalogChange {
    let document = document("ex.io", "foos", "Foo", &["v1"]);
    let mut change = CatalogChange::new();
    for mut def in custom_definitions(&document, None).unwrap() {
        let custom = def.custom.as_mut().unwrap();
        (custom.uid, custom.state) = (uid.into(), state.into());
        change = change.definition(def);
    }
    change
}

/// Creates an object, during which a step is done; returns what the client is told, and whether the object is stored.
async fn create_during(step: impl AsyncFnOnce(&Registry)) -> (Result<(), String>, bool) {
    let store = Memory::new();
    let pause = Pause::default();
    let mut builder = with_namespaces(store.clone());
    let plugin = pause.clone();
    builder.admission(move |_| Box::new(plugin));
    let registry = Arc::new(builder.build().unwrap());
    registry.start().await.unwrap();
    registry.change(published("u1", "1")).await.unwrap();
    let endpoint = registry.endpoint("ex.io", "v1", "foos").unwrap();
    let key = endpoint.storage_key(None, "late").unwrap();
    let create = async {
        let object = json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "late"}});
        let object = Object::from_value(object).unwrap();
        let (ctx, options) = (RequestContext::default(), CreateOptions::default());
        let made = endpoint.writes().create(&ctx, None, object, &options).await;
        made.map(|_| ()).map_err(|error| error.message)
    };
    let change = async {
        pause.arrived.notified().await;
        step(&registry).await;
        pause.continued.notify_one();
    };
    let (made, ()) = tokio::join!(create, change);
    let (stored, _) = store.get(&key).await.unwrap();
    (made, stored.is_some())
}

fn refused() -> (Result<(), String>, bool) {
    let message = "foos.ex.io \"late\" is forbidden: create not allowed while custom resource definition is terminating";
    (Err(message.to_owned()), false)
}

#[tokio::test]
async fn a_create_ends_with_its_definition() {
    let result = create_during(async |registry| registry.terminate(&foos()).await.unwrap()).await;
    assert_eq!(result, refused());
}

#[tokio::test]
async fn a_create_that_began_before_a_change_of_its_definition_ends_with_it_too() {
    let change_and_delete = async |registry: &Registry| {
        registry.change(published("u1", "2")).await.unwrap();
        registry.terminate(&foos()).await.unwrap();
        let removed = CatalogChange::new().remove(foos());
        registry.change(removed).await.unwrap();
        registry.change(published("u2", "1")).await.unwrap();
    };
    assert_eq!(create_during(change_and_delete).await, refused());
}

#[tokio::test]
async fn a_create_ends_with_a_definition_that_is_gone_at_once() {
    let replace = async |registry: &Registry| {
        registry.change(published("u2", "1")).await.unwrap();
    };
    assert_eq!(create_during(replace).await, refused());
}

#[tokio::test]
async fn a_change_of_a_definition_leaves_creates_alone() {
    let change = async |registry: &Registry| {
        registry.change(published("u1", "2")).await.unwrap();
    };
    assert_eq!(create_during(change).await, (Ok(()), true));
}

#[tokio::test]
async fn documents_are_served_in_the_order_of_their_names() {
    let registry = Arc::new(with_namespaces(Memory::new()).build().unwrap());
    registry.start().await.unwrap();
    let first: Vec<String> = shown(&registry);
    let change = async |group: &str, plural: &str, kind: &str| {
        let document = document(group, plural, kind, &["v2", "v1"]);
        let change = CatalogChange::new().document(&document).unwrap();
        registry.change(change).await.unwrap();
    };
    change("ex.io", "foos", "Foo").await;
    change("a.io", "lids", "Lid").await;
    change("ex.io", "bars", "Bar").await;
    // A change moves no kind.
    change("ex.io", "bars", "Bar").await;
    change("a.io", "lids", "Lid").await;
    let (before, after) = (first.len(), shown(&registry));
    assert_eq!(after[..before], first);
    let expected = [
        "a.io/v2 lids",
        "a.io/v1 lids",
        "ex.io/v2 bars",
        "ex.io/v1 bars",
        "ex.io/v2 foos",
        "ex.io/v1 foos",
    ];
    assert_eq!(after[before..], expected);
    let catalog = registry.catalog();
    let groups: Vec<&str> = catalog.groups().iter().map(|group| &*group.name).collect();
    assert!(groups.ends_with(&["a.io", "ex.io"]), "{groups:?}");
}

/// The resources that are served, in the order of discovery.
fn shown(registry: &Registry) -> Vec<String> {
    let catalog = registry.catalog();
    let endpoints = catalog.endpoints().iter();
    let name = |endpoint: &Arc<Endpoint>| {
        let def = endpoint.def();
        format!("{} {}", def.api_version(), def.plural)
    };
    endpoints.map(name).collect()
}
