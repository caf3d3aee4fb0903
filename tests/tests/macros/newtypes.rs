//! A struct of one value: it has the JSON form of the value, with rules of its own.

use apiloom::meta::kind::ColumnType;
use apiloom::meta::schema::Schema;
use apiloom::prelude::*;
use serde_json::{Value, json};

/// A TCP port.
#[apiloom::api(min = 1, max = 65535)]
#[derive(Copy)]
pub struct Port(pub i32);

#[apiloom::api(len = 1..=5, pattern = "^[a-z]+$", custom = not_reserved)]
pub struct Name(String);

fn not_reserved(name: &Name, path: &FieldPath) -> Option<FieldError> {
    (name.0 == "root").then(|| FieldError::invalid(path, name.0.as_str(), "is reserved"))
}

#[apiloom::api]
pub struct Digest(Vec<u8>);

#[apiloom::api(items = ..=2, each(min = 2))]
pub struct Sizes(Vec<i64>);

#[apiloom::api]
pub struct Inner {
    pub name: Name,
}

#[apiloom::api]
pub struct Wrapped(Inner);

#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    printcolumn(name = "Port", path = spec.port), printcolumn(name = "Name", path = spec.name))]
pub struct Listener {
    pub metadata: ObjectMeta,
    pub spec: ListenerSpec,
}

#[apiloom::api]
pub struct ListenerSpec {
    #[api(default = Port(80))]
    pub port: Port,
    pub name: Option<Name>,
    pub sizes: Option<Sizes>,
    pub wrapped: Option<Wrapped>,
    pub digest: Option<Digest>,
}

fn errors(spec: Value) -> Vec<String> {
    let schema = Schema::for_resource::<Listener>().unwrap();
    let errors = schema.validate(&json!({"metadata": {"name": "l"}, "spec": spec}));
    errors.iter().map(|error| error.to_string()).collect()
}

#[test]
fn a_newtype_is_its_value_with_rules_of_its_own() {
    let spec = ListenerSpec {
        port: Port(443),
        name: Some(Name("abc".to_owned())),
        sizes: Some(Sizes(vec![2])),
        wrapped: Some(Wrapped(Inner {
            name: Name("a".to_owned()),
        })),
        digest: Some(Digest(vec![0, 255])),
    };
    let value = json!({"port": 443, "name": "abc", "sizes": [2], "wrapped": {"name": "a"}, "digest": "AP8="});
    assert_eq!(serde_json::to_value(&spec).unwrap(), value);
    assert_eq!(
        serde_json::from_value::<ListenerSpec>(value.clone()).unwrap(),
        spec
    );
    assert_eq!(errors(value), [""; 0]);

    let check = |spec: Value, part: &str| {
        let found = errors(spec.clone());
        assert!(
            matches!(&found[..], [only] if only.contains(part)),
            "{spec}: {found:?}"
        );
    };
    check(json!({"port": 0}), "spec.port: Invalid value: 0");
    check(json!({"port": 65536}), "spec.port: Invalid value: 65536");
    check(json!({"port": 1, "name": "abcdef"}), "spec.name: Too long");
    check(json!({"port": 1, "name": "A"}), "spec.name: Invalid value");
    check(json!({"port": 1, "name": "root"}), "is reserved");
    check(
        json!({"port": 1, "sizes": [2, 3, 4]}),
        "spec.sizes: Too many",
    );
    check(json!({"port": 1, "sizes": [2, 1]}), "spec.sizes[1]");
    check(
        json!({"port": 1, "wrapped": {"name": "root"}}),
        "spec.wrapped.name",
    );
}

#[test]
fn a_newtype_stands_in_columns() {
    let types = Listener::definition()
        .columns
        .iter()
        .map(|column| column.column_type)
        .collect::<Vec<_>>();
    assert_eq!(types, [ColumnType::Integer, ColumnType::String]);
}
