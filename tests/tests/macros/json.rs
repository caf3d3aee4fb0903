//! The JSON form of annotated types.

use std::collections::HashMap;

use apiloom::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[apiloom::api]
#[derive(Default)]
pub struct Part {
    pub plain_name: Option<String>,
    pub some_list: Vec<String>,
    pub some_map: BTreeMap<String, i32>,
    pub hashed: HashMap<String, i32>,
    #[api(json = "clusterIP")]
    pub cluster_ip: Option<String>,
    pub r#type: Option<String>,
    #[api(nullable)]
    pub cleared: Option<String>,
    #[api(flatten)]
    pub common: Common,
}

#[apiloom::api]
#[derive(Default)]
pub struct Common {
    pub owner_name: Option<String>,
}

/// Checks that the JSON deserializes to the value, and the value serializes to the same JSON.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, json: &Value) {
    assert_eq!(&serde_json::to_value(value).unwrap(), json);
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value);
}

#[test]
fn empty_options_lists_and_maps_are_left_out() {
    check(&Part::default(), &json!({"cleared": null}));
}

#[test]
fn names_are_camel_case_unless_said_otherwise() {
    let text = || Some("x".to_owned());
    let part = Part {
        plain_name: text(),
        some_list: vec!["x".to_owned()],
        some_map: BTreeMap::from([("k".to_owned(), 1)]),
        hashed: HashMap::from([("k".to_owned(), 1)]),
        cluster_ip: text(),
        r#type: text(),
        cleared: text(),
        common: Common { owner_name: text() },
    };
    let json = json!({
        "plainName": "x", "someList": ["x"], "someMap": {"k": 1}, "hashed": {"k": 1}, "clusterIP": "x", "type": "x",
        "cleared": "x", "ownerName": "x",
    });
    check(&part, &json);
}

#[apiloom::api]
#[derive(Eq, Hash, Copy)]
pub enum Mode {
    RollingUpdate,
    #[api(json = "None")]
    Never,
}

#[apiloom::api]
#[derive(Eq)]
pub enum Protocol {
    #[api(json = "TCP")]
    Tcp,
    Udp,
    #[api(unknown)]
    Unknown(String),
}

#[apiloom::api]
pub enum Choice {
    HostPath(Common),
    EmptyDir { size_limit: Option<String> },
    Nothing,
}

#[apiloom::api]
#[serde(tag = "kind")]
pub enum Tagged {
    First(Common),
    Second,
}

#[test]
fn enum_values_keep_the_name_of_their_variant() {
    check(&Mode::RollingUpdate, &json!("RollingUpdate"));
    check(&Mode::Never, &json!("None"));
    assert!(serde_json::from_value::<Mode>(json!("Never")).is_err());
}

#[test]
fn an_open_enum_keeps_what_it_does_not_know() {
    check(&Protocol::Tcp, &json!("TCP"));
    check(&Protocol::Udp, &json!("Udp"));
    check(&Protocol::Unknown("SCTP".to_owned()), &json!("SCTP"));
    assert!(serde_json::from_value::<Protocol>(json!(3)).is_err());
}

#[test]
fn an_enum_with_values_is_an_object_with_one_field() {
    check(
        &Choice::HostPath(Common {
            owner_name: Some("x".to_owned()),
        }),
        &json!({"hostPath": {"ownerName": "x"}}),
    );
    check(
        &Choice::EmptyDir {
            size_limit: Some("1Gi".to_owned()),
        },
        &json!({"emptyDir": {"sizeLimit": "1Gi"}}),
    );
    check(&Choice::Nothing, &json!("Nothing"));
}

#[test]
fn serde_may_tag_an_enum() {
    check(
        &Tagged::First(Common {
            owner_name: Some("x".to_owned()),
        }),
        &json!({"kind": "First", "ownerName": "x"}),
    );
    check(&Tagged::Second, &json!({"kind": "Second"}));
}

/// A map for the fields that are not declared.
#[apiloom::api]
pub struct Open {
    pub name: String,
    #[api(flatten)]
    pub rest: BTreeMap<String, i32>,
}

#[test]
fn flattened_maps_take_the_fields_that_no_other_has() {
    use apiloom::meta::codec::Decoder;
    use apiloom::meta::schema::Schema;

    let schema = Schema::for_type::<Open>().unwrap_or_else(|errors| panic!("{errors}"));
    let body = json!({"name": "x", "a": 1, "b": 2});
    let decoded = Decoder::of(&schema)
        .decode(body.to_string().as_bytes())
        .unwrap();
    assert_eq!((&decoded.value, decoded.strict), (&body, vec![]));
    assert_eq!(schema.validate(&body), []);
    let rest = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
    let name = "x".to_owned();
    check(&Open { name, rest }, &body);
    let error = Decoder::of(&schema)
        .decode(br#"{"name": "x", "a": "1"}"#)
        .unwrap_err();
    assert!(
        error.to_string().contains("cannot unmarshal string"),
        "{error}"
    );
}
