//! Apply configurations that `apiloom generate` made, against servers in memory.

use apiloom::client::apply::{Configuration, Part as _};
use apiloom::client::{Client, HasMetadata as _, Namespaced, ResourceClient};
use apiloom::meta::{Condition, IntOrString, ManagedFieldsEntry, OwnerReference, Resource};
use apiloom::testing::TestServer;
use core_kinds::generated::apply::v1 as node;
use core_kinds::v1::Node;
use route_kinds::generated::apply::v1 as route;
use route_kinds::v1::{FilterType, HttpRoute, Method, WildcardMethod};
use serde_json::{Value, json};
use shapes_kinds::generated::apply::v1 as shapes;
use shapes_kinds::v1::Blueprint;
use wardle::generated::apply::{v1alpha1, v1beta1};
use wardle::generated::clientset::Clientset;
use wardle::v1alpha1::Flunder;
use wardle::v1beta1::ReferenceType;

use crate::server;

async fn wardle() -> (TestServer, ResourceClient<Flunder, Namespaced>) {
    let server = server().await;
    let clients = Clientset::new(server.client());
    (server, clients.wardle_v1alpha1().flunders("default"))
}

async fn ports() -> TestServer {
    let add = |builder: apiloom::server::Builder| {
        builder
            .kind::<Blueprint>()
            .kind::<HttpRoute>()
            .kind::<Node>()
    };
    TestServer::builder().install(add).build().await.unwrap()
}

fn config() -> v1alpha1::Flunder {
    v1alpha1::Flunder::new("default", "a")
}

fn reference(name: &str) -> v1alpha1::FlunderSpec {
    v1alpha1::FlunderSpec::new().reference(name)
}

/// The fields that a manager owns by apply, as JSON.
fn owned(object: &impl Resource, manager: &str) -> Option<Value> {
    let is_own = |entry: &&ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply")
    };
    let mut entries = object.metadata().managed_fields.iter();
    let entry = entries.find(is_own)?;
    let fields = entry.fields_v1.as_ref().unwrap();
    Some(serde_json::from_str(fields.as_json()).unwrap())
}

#[tokio::test]
async fn conflicts_name_field_and_manager_and_force_takes_the_field() {
    let (server, flunders) = wardle().await;
    let created = flunders.apply(&config().spec(reference("x")), "one").await;
    assert_eq!(
        owned(&created.unwrap(), "one"),
        Some(json!({"f:spec": {"f:reference": {}}}))
    );
    let other = config().spec(reference("y")).labels([("app", "y")]);
    let error = flunders.apply(&other, "two").await.unwrap_err();
    let conflicts: Vec<_> = error.conflicts().collect();
    let [conflict] = &conflicts[..] else {
        panic!("{error}");
    };
    assert_eq!(
        (conflict.field, conflict.manager),
        (".spec.reference", "one")
    );
    assert!(error.is_conflict());
    let forced = flunders.apply(&other, "two").force().await.unwrap();
    assert_eq!(owned(&forced, "one"), None);
    assert_eq!(forced.spec.unwrap().reference.as_deref(), Some("y"));
    // The same value has two owners, without a conflict.
    let shared = flunders.apply(&config().spec(reference("y")), "one").await;
    let shared = shared.unwrap();
    assert!(owned(&shared, "one").is_some() && owned(&shared, "two").is_some());
    server.stop().await;
}

#[tokio::test]
async fn a_field_that_is_left_out_is_removed_unless_another_manager_has_it() {
    let (server, flunders) = wardle().await;
    let full = config()
        .labels([("app", "x"), ("tier", "y")])
        .spec(reference("x"));
    flunders.apply(&full, "one").await.unwrap();
    flunders
        .apply(&config().labels([("tier", "y")]), "two")
        .await
        .unwrap();
    let less = full.clone().labels([("other", "z")]);
    let stored = flunders.apply(&less, "one").await.unwrap();
    assert_eq!(stored.label("app"), None);
    assert_eq!(
        (stored.label("tier"), stored.label("other")),
        (Some("y"), Some("z"))
    );
    let stored = flunders.apply(&less.unset("spec"), "one").await.unwrap();
    assert_eq!(stored.spec.and_then(|spec| spec.reference), None);
    // An empty map is a value of its own.
    let stored = flunders
        .apply(&config().labels([("", ""); 0]), "one")
        .await
        .unwrap();
    assert_eq!(
        owned(&stored, "one"),
        Some(json!({"f:metadata": {"f:labels": {}}}))
    );
    assert_eq!(stored.label("tier"), Some("y"));
    server.stop().await;
}

#[tokio::test]
async fn what_is_extracted_changed_and_applied_owns_the_same_fields() {
    let (server, flunders) = wardle().await;
    let mine = config()
        .annotations([("note", "1")])
        .finalizers(["example.com/f"])
        .spec(reference("x"));
    flunders.apply(&mine, "me").await.unwrap();
    let others = config()
        .labels([("app", "x")])
        .annotations([("other", "2")])
        .spec(v1alpha1::FlunderSpec::new().reference_type(ReferenceType::Flunder));
    let stored = flunders.apply(&others, "other").force().await.unwrap();
    let extracted = v1alpha1::Flunder::extract(&stored, "me").unwrap();
    assert_eq!(extracted, mine);
    let again = flunders.apply(&extracted, "me").await.unwrap();
    assert_eq!(again.resource_version(), stored.resource_version());
    let changed = extracted.edit_spec(|spec| spec.reference("z"));
    let changed = flunders.apply(&changed, "me").await.unwrap();
    assert_eq!(owned(&changed, "me"), owned(&stored, "me"));
    assert_eq!(owned(&changed, "other"), owned(&stored, "other"));
    assert_eq!(changed.spec.unwrap().reference.as_deref(), Some("z"));
    server.stop().await;
}

#[tokio::test]
async fn the_status_has_a_configuration_of_its_own() {
    let (server, flunders) = wardle().await;
    let status = config().status(v1alpha1::FlunderStatus::new());
    let error = flunders.apply_status(&status, "me").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    flunders
        .apply(&config().spec(reference("x")), "me")
        .await
        .unwrap();
    let stored = flunders.apply_status(&status, "me").await.unwrap();
    assert!(stored.status.is_some());
    assert_eq!(
        v1alpha1::Flunder::extract_status(&stored, "me").unwrap(),
        status
    );
    let main = v1alpha1::Flunder::extract(&stored, "me").unwrap();
    assert_eq!(main, config().spec(reference("x")));
    server.stop().await;
}

#[tokio::test]
async fn an_entry_of_another_version_is_an_error() {
    let (server, flunders) = wardle().await;
    flunders
        .apply(&config().spec(reference("x")), "me")
        .await
        .unwrap();
    let beta = Clientset::new(server.client()).wardle_v1beta1();
    let stored = beta.flunders("default").get("a").await.unwrap();
    let error = v1beta1::Flunder::extract(&stored, "me").unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"me\" has applied Flunder \"a\" as wardle.example.com/v1alpha1, not as wardle.example.com/v1beta1: \
         read it in that version"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_configuration_of_another_namespace_or_object_is_not_sent() {
    let (server, flunders) = wardle().await;
    let other = v1alpha1::Flunder::new("elsewhere", "a");
    let error = flunders.apply(&other, "me").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration of Flunder \"a\" is for the namespace \"elsewhere\", and the client for \"default\""
    );
    let error = flunders
        .apply(&config().finalizers(["x.com/f", "x.com/f"]), "me")
        .await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("metadata.finalizers: the items 0 and 1 are equal"),
        "{error}"
    );
    // With a uid an object that was deleted is not created again.
    let error = flunders
        .apply(&config().uid("gone"), "me")
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(flunders.get("a").await.unwrap_err().is_not_found());
    server.stop().await;
}

/// Applies a configuration twice, and extracts it.
async fn check_round_trip<K, C, S>(
    objects: &ResourceClient<K, S>,
    configuration: &C,
    extract: impl Fn(&K) -> C,
) where
    K: Resource + apiloom::client::verbs::Patch,
    C: Configuration<K> + PartialEq + serde::Serialize + std::fmt::Debug,
    S: apiloom_client::client::ObjectScope,
{
    let stored = objects.apply(configuration, "me").await.unwrap();
    let extracted = extract(&stored);
    let json = |configuration: &C| serde_json::to_value(configuration).unwrap();
    assert_eq!(json(&extracted), json(configuration));
    let again = objects.apply(&extracted, "me").await.unwrap();
    assert_eq!(again.resource_version(), stored.resource_version());
    assert_eq!(owned(&again, "me"), owned(&stored, "me"));
}

fn blueprint() -> shapes::Blueprint {
    let node = |name: &str| shapes::SchemaNode::new().r#type(name);
    let spec = shapes::BlueprintSpec::new()
        .schema(node("object").properties([("a", node("array").items(node("string")))]))
        .data([("key".to_owned(), b"value".to_vec())].into())
        .ca_bundle(b"ca".to_vec())
        .chain(vec![vec![1], vec![2]])
        .max_surge(IntOrString::Int(3))
        .ports([IntOrString::Int(80), IntOrString::String("web".to_owned())])
        .layers([
            shapes::Layer::new().name("top").material("wood"),
            shapes::Layer::new().name("base").words(["w"]),
        ])
        .words(["one"])
        .place([("x", "1")])
        .hard([("memory", "1Gi".parse().unwrap())])
        .limit("1500m".parse().unwrap())
        .interval(apiloom::meta::Duration::from_secs(90))
        .template(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}))
        .pod(shapes::PodTemplate::new().node_name("n"))
        .overrides([("a".to_owned(), [("b".to_owned(), "c".to_owned())].into())].into())
        .routes(
            [(
                "r".to_owned(),
                vec![shapes::Route::new().to("x").percent(7)],
            )]
            .into(),
        )
        .weights([("first one", 1)])
        .values(json!({"any": [1, {"x": "y"}]}))
        .settings(shapes::Settings::new().enabled(false))
        .source(shapes::Source::new().file(shapes::SourceFile::new().path("/p")))
        .numbers(shapes::Numbers::new().tiny(-1).share(0.5))
        .note(None)
        .cluster_ip("10.0.0.1");
    shapes::Blueprint::new("a").spec(spec)
}

#[tokio::test]
async fn every_shape_is_applied_and_extracted() {
    let server = ports().await;
    let blueprints = server.client().cluster::<Blueprint>();
    let extract = |object: &Blueprint| shapes::Blueprint::extract(object, "me").unwrap();
    check_round_trip(&blueprints, &blueprint(), extract).await;
    // Another manager adds items, and takes none.
    let more = shapes::BlueprintSpec::new()
        .layers([
            shapes::Layer::new().name("middle"),
            shapes::Layer::new().name("top").words(["x"]),
        ])
        .ports([IntOrString::Int(443)])
        .hard([("cpu", "1".parse().unwrap())]);
    let more = shapes::Blueprint::new("a").spec(more);
    blueprints.apply(&more, "other").await.unwrap();
    check_round_trip(&blueprints, &blueprint(), extract).await;
    let stored = blueprints.get("a").await.unwrap();
    assert_eq!(shapes::Blueprint::extract(&stored, "other").unwrap(), more);
    assert_eq!(stored.spec.layers.len(), 3);
    // Items that are left out are removed, but for what others have.
    let less = blueprint().edit_spec(|spec| {
        spec.unset("ports").edit_layers(|mut layers| {
            layers.retain(|layer| layer.get("name") == Some(&json!("base")));
            layers
        })
    });
    let stored = blueprints.apply(&less, "me").await.unwrap();
    let names: Vec<&str> = stored
        .spec
        .layers
        .iter()
        .map(|layer| &*layer.name)
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let top = stored
        .spec
        .layers
        .iter()
        .find(|layer| layer.name == "top")
        .unwrap();
    assert_eq!(top.material, None);
    assert_eq!(stored.spec.ports, [IntOrString::Int(443)]);

    // A field that the type does not know is sent, but would be lost when it is extracted by the type.
    let settings = shapes::Settings::new().set("more", &json!({"x": 1}));
    let more = shapes::BlueprintSpec::new().settings(settings);
    let more = shapes::Blueprint::new("a").spec(more);
    let stored = blueprints.apply(&more, "newer").await.unwrap();
    let error = shapes::Blueprint::extract(&stored, "newer").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("does not have .spec.settings.more"),
        "{error}"
    );

    let duplicate = shapes::Layer::new().name("top");
    let duplicate = shapes::BlueprintSpec::new().layers([duplicate.clone(), duplicate]);
    let duplicate = shapes::Blueprint::new("a").spec(duplicate);
    let error = blueprints.apply(&duplicate, "me").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration of Blueprint \"a\": spec.layers: the items 0 and 1 are the same item: [name=\"top\"]"
    );
    server.stop().await;
}

#[tokio::test]
async fn conditions_of_two_managers_are_one_list() {
    let server = ports().await;
    let blueprints = server.client().cluster::<Blueprint>();
    let new = shapes::Blueprint::new("a");
    let spec = shapes::BlueprintSpec::new().interval(apiloom::meta::Duration::from_secs(1));
    blueprints
        .apply(&new.clone().spec(spec), "me")
        .await
        .unwrap();
    for (manager, condition) in [("me", "Ready"), ("other", "Synced")] {
        let condition = Condition::new(condition, true, "Done", "");
        let status = shapes::BlueprintStatus::new().conditions([condition]);
        let status = new.clone().status(status);
        let stored = blueprints.apply_status(&status, manager).await.unwrap();
        assert_eq!(
            shapes::Blueprint::extract_status(&stored, manager).unwrap(),
            status
        );
    }
    let stored = blueprints.get("a").await.unwrap();
    assert_eq!(stored.status.unwrap().conditions.len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn items_with_several_keys_are_applied_and_extracted() {
    let server = ports().await;
    let nodes = server.client().cluster::<Node>();
    let taint = |key: &str, effect: &str| node::Taint::new().key(key).effect(effect);
    let with =
        |taints: Vec<node::Taint>| node::Node::new("a").spec(node::NodeSpec::new().taints(taints));
    let mine = with(vec![
        taint("k", "NoSchedule").value("1"),
        taint("k", "NoExecute"),
    ]);
    let extract = |object: &Node| node::Node::extract(object, "me").unwrap();
    check_round_trip(&nodes, &mine, extract).await;
    let others = with(vec![
        taint("k", "NoExecute").value("2"),
        taint("l", "NoExecute"),
    ]);
    nodes.apply(&others, "other").await.unwrap();
    check_round_trip(&nodes, &mine, extract).await;
    let twice = with(vec![
        taint("k", "NoExecute"),
        taint("k", "NoSchedule"),
        taint("k", "NoExecute"),
    ]);
    let error = nodes.apply(&twice, "me").await.unwrap_err().to_string();
    assert!(
        error.ends_with(
            "spec.taints: the items 0 and 2 are the same item: [effect=\"NoExecute\",key=\"k\"]"
        ),
        "{error}"
    );
    server.stop().await;
}

#[tokio::test]
async fn nested_structs_and_unions_are_applied_and_extracted() {
    let server = ports().await;
    let routes = server.client().namespaced::<HttpRoute>("default");
    let backend = route::HttpBackendRef::new().name("svc").port(80);
    let cors = route::CorsFilter::new()
        .allow_origins(["*"])
        .allow_methods([WildcardMethod::Get])
        .max_age(9);
    let rule = route::RouteRule::new()
        .matches([route::RouteMatch::new()
            .headers([route::HeaderMatch::new().name("h").value("v")])
            .method(Method::Get)])
        .filters([route::Filter::new().r#type(FilterType::Cors).cors(cors)])
        .backend_refs([backend]);
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "c".to_owned(),
        uid: "5c1f0d36-0001-4f4c-9c3f-000000000000".to_owned(),
        ..OwnerReference::default()
    };
    // The parents are fields of an inlined struct.
    let parent = route::ParentReference::new().name("gateway");
    let spec = route::HttpRouteSpec::new()
        .parent_refs([parent])
        .hostnames(["a.example.com"])
        .rules([rule]);
    let mine = route::HttpRoute::new("default", "a")
        .owner_references([owner])
        .spec(spec);
    let stored = routes.apply(&mine, "me").await.unwrap();
    // The lists are atomic, so their items have the defaults of the server too.
    let extracted = route::HttpRoute::extract(&stored, "me").unwrap();
    let again = routes.apply(&extracted, "me").await.unwrap();
    assert_eq!(again.resource_version(), stored.resource_version());
    assert_eq!(owned(&again, "me"), owned(&stored, "me"));
    assert_eq!(stored.spec.common.parent_refs[0].name, "gateway");
    assert_eq!(
        stored.spec.rules[0].filters[0]
            .cors
            .as_ref()
            .unwrap()
            .max_age,
        9
    );
    server.stop().await;
}

/// JSON is a configuration of every kind, with its own name.
#[tokio::test]
async fn json_is_applied_too() {
    let (server, _) = wardle().await;
    let client: &Client = &server.client();
    let flunders = client.namespaced::<Flunder>("default");
    let json =
        json!({"metadata": {"name": "a", "namespace": "default"}, "spec": {"reference": "x"}});
    let stored = flunders.apply(&json, "me").await.unwrap();
    assert_eq!(
        v1alpha1::Flunder::extract(&stored, "me").unwrap(),
        config().spec(reference("x"))
    );
    let nameless = flunders
        .apply(&json!({"spec": {}}), "me")
        .await
        .unwrap_err();
    assert_eq!(nameless.to_string(), "the name \"\" is empty");
    server.stop().await;
}
