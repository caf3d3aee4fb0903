//! Types that contain themselves, through lists, maps, boxes and each other.

use apiloom::meta::codec::{DecodeError, Decoder};
use apiloom::meta::schema::{Metadata, Schema, structural};
use apiloom::prelude::*;
use serde_json::{Value, json};

use super::served::Server;

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Tree {
    pub metadata: ObjectMeta,
    pub spec: Node,
}

/// A node of a tree.
#[apiloom::api]
pub struct Node {
    #[api(len = 1..=5)]
    pub name: String,
    #[api(preserve_unknown)]
    pub list: Vec<Node>,
    #[api(preserve_unknown)]
    pub next: Option<Box<Self>>,
    #[api(preserve_unknown)]
    pub by_name: BTreeMap<String, Node>,
    #[api(each(preserve_unknown))]
    pub matrix: Vec<Vec<Node>>,
    pub partner: Option<Box<Partner>>,
}

/// The other half of a circle; its own field ends it.
#[apiloom::api]
pub struct Partner {
    pub weight: Option<i32>,
    #[api(preserve_unknown)]
    pub node: Option<Box<Node>>,
}

fn free() -> Value {
    json!({
        "description": "A node of a tree.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

#[test]
fn the_field_ends_the_recursion_in_the_schema() {
    let schema = Schema::for_resource::<Tree>().unwrap_or_else(|errors| panic!("{errors}"));
    let printed = schema.to_openapi(&Metadata::Open);
    assert_eq!(
        structural::problems(&printed, &FieldPath::new("schema")),
        []
    );
    let fields = &printed["properties"]["spec"]["properties"];
    assert_eq!(fields["list"], json!({"type": "array", "items": free()}));
    assert_eq!(fields["next"], free());
    assert_eq!(
        fields["byName"],
        json!({"type": "object", "additionalProperties": free()})
    );
    assert_eq!(
        fields["matrix"],
        json!({"type": "array", "items": {"type": "array", "items": free()}})
    );
    let partner = &fields["partner"]["properties"];
    assert_eq!(partner["weight"]["type"], "integer");
    assert_eq!(partner["node"], free());
    // The documents of OpenAPI v2.
    let swagger = schema.to_openapi_v2(&Metadata::Open);
    assert_eq!(swagger["properties"]["spec"]["properties"]["next"], free());
}

#[apiloom::api]
pub struct Endless {
    pub other: Option<Box<Other>>,
    pub list: Vec<Endless>,
}

#[apiloom::api]
pub struct Other {
    pub by_name: BTreeMap<String, Endless>,
}

/// A type of a foreign crate, which cannot be annotated.
#[apiloom::api]
pub struct Holder {
    #[api(preserve_unknown)]
    pub endless: Option<Endless>,
    #[api(preserve_unknown)]
    pub finite: Option<Partner>,
}

#[test]
fn a_circle_that_no_field_ends_is_told_with_the_key_that_ends_it() {
    #[apiloom::api]
    struct Outer {
        pub endless: Endless,
    }
    let Err(errors) = Schema::for_type::<Outer>() else {
        panic!("it is endless")
    };
    let advice = "a structural schema is finite: put `#[api(preserve_unknown)]` on a field of the circle to end it there";
    assert_eq!(
        errors.0,
        [
            format!(
                "endless.other.byName[*]: the type refers to itself (Endless -> Other -> Endless); {advice}"
            ),
            format!("endless.list[*]: the type refers to itself (Endless -> Endless); {advice}"),
        ]
    );
}

#[test]
fn a_field_ends_the_recursion_of_types_that_say_nothing() {
    let schema = Schema::for_type::<Holder>().unwrap_or_else(|errors| panic!("{errors}"));
    let printed = schema.to_openapi(&Metadata::Open);
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(printed["properties"]["endless"], free);
    // A non-recursive type is expanded, as any other that keeps unknown fields.
    let finite = &printed["properties"]["finite"];
    assert_eq!(finite["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(finite["properties"]["weight"]["type"], "integer");
}

fn deep() -> Value {
    let leaf = json!({"name": "leaf", "unknown": {"a": [1]}});
    json!({
        "name": "root",
        "list": [leaf, {"name": "b", "next": leaf}],
        "next": {"name": "a name that is too long for the outermost one"},
        "byName": {"k": leaf},
        "matrix": [[leaf], []],
        "partner": {"weight": 1, "node": leaf},
    })
}

#[test]
fn what_lies_below_is_kept_and_reads_into_the_type() {
    let schema = Schema::for_type::<Node>().unwrap_or_else(|errors| panic!("{errors}"));
    let body = deep().to_string();
    let decoded = Decoder::of(&schema).decode(body.as_bytes()).unwrap();
    assert_eq!((decoded.value.clone(), decoded.strict), (deep(), vec![]));
    let mut pruned = deep();
    schema.prune(&mut pruned);
    schema.default(&mut pruned);
    assert_eq!(pruned, deep());
    assert_eq!(schema.validate(&pruned), []);
    let typed: Node = serde_json::from_value(deep()).unwrap();
    assert_eq!(typed.list[1].next.as_ref().unwrap().name, "leaf");
    assert_eq!(typed.by_name["k"].name, "leaf");
    let error = Decoder::of(&schema)
        .decode(br#"{"name": "x", "list": [5]}"#)
        .unwrap_err();
    assert!(matches!(error, DecodeError::Type(_)), "{error}");
}

#[test]
fn what_lies_below_has_the_form_of_the_type() {
    let schema = Schema::for_type::<Node>().unwrap_or_else(|errors| panic!("{errors}"));
    for (field, bad) in [
        ("list", json!([{"name": "a"}, {"name": 5}])),
        ("next", json!({})),
        ("byName", json!({"k": {"name": "a", "list": 5}})),
        ("matrix", json!([[{"nome": "a"}]])),
        ("partner", json!({"node": {"name": ["a"]}})),
    ] {
        let mut value = deep();
        value[field] = bad;
        let errors = schema.validate(&value);
        assert_eq!(errors.len(), 1, "{field}: {errors:?}");
        assert!(errors[0].to_string().starts_with(field), "{errors:?}");
    }
}

#[tokio::test]
async fn trees_are_served() {
    let server = Server::start(|builder| builder.kind::<Tree>()).await;
    let url = "/apis/example.com/v1/namespaces/default/trees";
    let tree = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Tree", "metadata": {"name": "a"}, "spec": spec});
    let (code, created) = server.post(url, &tree(deep())).await;
    assert_eq!((code, &created["spec"]), (201, &deep()), "{created}");
    let (code, refused) = server
        .post(url, &tree(json!({"name": "x", "next": {"name": 5}})))
        .await;
    assert_eq!(code, 422, "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("spec.next: Invalid value:") && message.contains("expected a string"),
        "{message}"
    );
}

mod old {
    use super::*;

    #[apiloom::api(convert(peer = super::Branch))]
    #[derive(Default)]
    pub struct Branch {
        #[api(convert(rename = title))]
        pub name: String,
        #[api(preserve_unknown)]
        pub parts: Vec<Branch>,
        #[api(preserve_unknown)]
        pub next: Option<Box<Self>>,
        #[api(preserve_unknown)]
        pub by_name: BTreeMap<String, Branch>,
    }
}

#[apiloom::api]
#[derive(Default)]
pub struct Branch {
    pub title: String,
    #[api(preserve_unknown)]
    pub parts: Vec<Branch>,
    #[api(preserve_unknown)]
    pub next: Option<Box<Branch>>,
    #[api(preserve_unknown)]
    pub by_name: BTreeMap<String, Branch>,
}

#[test]
fn what_lies_below_is_converted() {
    let leaf = || old::Branch {
        name: "leaf".to_owned(),
        ..old::Branch::default()
    };
    let branch = old::Branch {
        name: "root".to_owned(),
        parts: vec![leaf()],
        next: Some(Box::new(leaf())),
        by_name: BTreeMap::from([("k".to_owned(), leaf())]),
    };
    let converted = Branch::convert_from(branch.clone()).unwrap();
    assert_eq!(converted.parts[0].title, "leaf");
    assert_eq!(converted.by_name["k"].title, "leaf");
    assert_eq!(old::Branch::convert_from(converted), Ok(branch));
}
