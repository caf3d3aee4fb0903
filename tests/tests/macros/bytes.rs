//! Bytes and durations as text in JSON, as in Go.

use std::collections::HashMap;

use apiloom::meta::schema::{Metadata, Schema, structural};
use apiloom::prelude::*;
use serde_json::{Value, json};

use super::served::Server;

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Parcel {
    pub metadata: ObjectMeta,
    pub data: BTreeMap<String, Vec<u8>>,
    pub spec: Option<ParcelSpec>,
}

#[apiloom::api]
#[derive(Default)]
pub struct ParcelSpec {
    pub blob: Vec<u8>,
    pub maybe: Option<Vec<u8>>,
    pub several: Vec<Vec<u8>>,
    pub hashed: HashMap<String, Vec<Vec<u8>>>,
    #[api(default = b"hi", example = "example")]
    pub greeting: Vec<u8>,
    #[api(default_with = ParcelSpec::sum)]
    pub sum: Option<Vec<u8>>,
    #[api(custom = short)]
    pub checked: Option<Vec<u8>>,
    #[api(each(custom = short))]
    pub all_checked: Vec<Vec<u8>>,
    pub numbers: Vec<i32>,
    #[api(default = Duration::from_secs(90))]
    pub timeout: Option<Duration>,
    pub periods: Vec<Duration>,
    pub choice: Option<Content>,
}

#[apiloom::api]
pub enum Content {
    Inline(Vec<u8>),
    Named { bytes: Option<Vec<u8>> },
}

impl ParcelSpec {
    fn sum(&self) -> Option<Vec<u8>> {
        let sum = self
            .blob
            .iter()
            .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        (!self.blob.is_empty()).then(|| vec![sum])
    }
}

fn short(bytes: &[u8], path: &FieldPath) -> Option<FieldError> {
    (bytes.len() > 2).then(|| FieldError::invalid(path, bytes.len(), "must be short"))
}

#[test]
fn bytes_are_base64_text() {
    let hi = || b"hi".to_vec();
    let spec = ParcelSpec {
        blob: hi(),
        maybe: Some(vec![0xff, 0xef]),
        several: vec![hi(), vec![]],
        hashed: HashMap::from([("k".to_owned(), vec![hi()])]),
        greeting: hi(),
        numbers: vec![1, 2],
        timeout: Some(Duration::from_secs(5400)),
        periods: vec![Duration::from_nanos(1_500_000)],
        choice: Some(Content::Inline(hi())),
        ..ParcelSpec::default()
    };
    let json = json!({
        "blob": "aGk=", "maybe": "/+8=", "several": ["aGk=", ""], "hashed": {"k": ["aGk="]}, "greeting": "aGk=",
        "numbers": [1, 2], "timeout": "1h30m0s", "periods": ["1.5ms"], "choice": {"inline": "aGk="},
    });
    assert_eq!(serde_json::to_value(&spec).unwrap(), json);
    assert_eq!(serde_json::from_value::<ParcelSpec>(json).unwrap(), spec);
    let named = Content::Named { bytes: Some(hi()) };
    let json = json!({"named": {"bytes": "aGk="}});
    assert_eq!(serde_json::to_value(&named).unwrap(), json);
    assert_eq!(serde_json::from_value::<Content>(json).unwrap(), named);
    assert_eq!(
        serde_json::to_value(ParcelSpec::default()).unwrap(),
        json!({})
    );
    assert_eq!(
        serde_json::from_value::<ParcelSpec>(json!({})).unwrap(),
        ParcelSpec::default()
    );
}

#[test]
fn the_schema_says_so() {
    let schema = Schema::for_resource::<Parcel>().unwrap_or_else(|errors| panic!("{errors}"));
    let printed = schema.to_openapi(&Metadata::Open);
    assert_eq!(
        structural::problems(&printed, &FieldPath::new("schema")),
        []
    );
    let bytes = json!({"type": "string", "format": "byte"});
    assert_eq!(
        printed["properties"]["data"],
        json!({"type": "object", "additionalProperties": bytes})
    );
    let fields = &printed["properties"]["spec"]["properties"];
    assert_eq!(fields["blob"], bytes);
    assert_eq!(fields["maybe"], bytes);
    assert_eq!(fields["several"], json!({"type": "array", "items": bytes}));
    assert_eq!(
        fields["hashed"]["additionalProperties"],
        json!({"type": "array", "items": bytes})
    );
    assert_eq!(fields["greeting"]["default"], "aGk=");
    assert_eq!(fields["greeting"]["example"], "ZXhhbXBsZQ==");
    assert_eq!(fields["choice"]["properties"]["inline"]["format"], "byte");
    assert_eq!(fields["timeout"]["type"], "string");
    assert_eq!(fields["timeout"]["default"], "1m30s");
    assert_eq!(printed["properties"]["spec"].get("required"), None);
}

fn parcel(name: &str, data: Value, spec: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Parcel", "metadata": {"name": name}, "data": data, "spec": spec,
    })
}

const URL: &str = "/apis/example.com/v1/namespaces/default/parcels";

#[tokio::test]
async fn texts_are_kept_as_go_prints_them() {
    let server = Server::start(|builder| builder.kind::<Parcel>()).await;
    let sent = parcel(
        "a",
        json!({"k": "aGk=", "broken": "aG\nk=\r\n", "empty": "", "loose": "aGl=", "null": null}),
        json!({"blob": "aGk=", "timeout": "90m", "periods": ["1500us", "0"], "maybe": ""}),
    );
    let (code, created) = server.post(URL, &sent).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(
        created["data"],
        json!({"broken": "aGk=", "empty": "", "k": "aGk=", "loose": "aGk=", "null": ""})
    );
    assert_eq!(
        created["spec"],
        json!({
            "blob": "aGk=", "maybe": "", "greeting": "aGk=", "sum": "0Q==", "timeout": "1h30m0s", "periods": ["1.5ms", "0s"],
        })
    );
    let (_, read) = server.get(&format!("{URL}/a")).await;
    assert_eq!(read, created);
}

#[tokio::test]
async fn other_texts_are_refused_as_go_refuses_them() {
    let server = Server::start(|builder| builder.kind::<Parcel>()).await;
    let refused = async |data: Value, spec: Value| {
        let (code, status) = server.post(URL, &parcel("b", data, spec)).await;
        let message = status["message"].as_str().unwrap().to_owned();
        (code, message)
    };
    let bad = |why: &str| {
        let text = r#"Parcel in version "v1" cannot be handled as a Parcel: "#;
        (400, format!("{text}{why}"))
    };
    assert_eq!(
        refused(json!({"k": "aG?="}), json!({})).await,
        bad("illegal base64 data at input byte 2")
    );
    assert_eq!(
        refused(json!({}), json!({"several": ["aGk=", "aGk"]})).await,
        bad("illegal base64 data at input byte 0")
    );
    assert_eq!(
        refused(json!({}), json!({"timeout": "1d"})).await,
        bad(r#"time: unknown unit "d" in duration "1d""#)
    );
    assert_eq!(
        refused(json!({}), json!({"timeout": 5})).await,
        bad(
            "json: cannot unmarshal number into Go struct field ParcelSpec.spec.timeout of type string"
        )
    );
    let (code, message) = refused(
        json!({}),
        json!({"checked": "aGkh", "allChecked": ["aGk=", "aGkh"]}),
    )
    .await;
    assert_eq!(code, 422);
    for path in ["spec.checked", "spec.allChecked[1]"] {
        let expected = format!("{path}: Invalid value: 3: must be short");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn options_in_lists_by_another_name_are_told_when_the_server_is_built() {
    #[derive(
        Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    pub struct Foreign {
        pub names: Vec<Option<String>>,
        pub parts: BTreeMap<String, Option<Inner>>,
        pub numbered: BTreeMap<i32, Option<String>>,
    }
    #[derive(
        Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    pub struct Inner {
        pub name: String,
    }
    #[apiloom::api]
    pub struct Outer {
        pub foreign: Foreign,
    }
    let Err(errors) = Schema::for_type::<Outer>() else {
        panic!("nulls would be lost")
    };
    assert_eq!(
        errors.0,
        [
            "foreign.names[*]: null is no element of a list: write the type without Option",
            "foreign.numbered[*]: null is no value of a map: write the type without Option",
            "foreign.parts[*]: null is no value of a map: write the type without Option",
        ]
    );
}

#[test]
fn members_that_the_tag_does_not_have_are_told_when_the_server_is_built() {
    #[derive(
        Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    pub enum Foreign {
        First,
    }
    #[apiloom::api(union(tag = kind))]
    pub struct Outer {
        pub kind: Foreign,
        #[api(member = "Second")]
        pub second: Option<String>,
    }
    let Err(errors) = Schema::for_type::<Outer>() else {
        panic!("nothing selects it")
    };
    assert_eq!(
        errors.0,
        [r#"second: the tag `kind` has no value "Second", which would select this member"#]
    );
}
