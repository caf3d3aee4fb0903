//! The schema keywords that `#[api(..)]` generates, as printed by schemars.

use apiloom::meta::schema::Schema;
use apiloom::prelude::*;
use schemars::JsonSchema;
use serde_json::{Value, json};

const LIMIT: i64 = 5_000_000_000;

/// A part.
#[apiloom::api(union(tag = kind, allow_none), title = "Part", deprecated = "use Whole", props(max = 20))]
pub struct Part {
    #[api(len = 1..=63, bytes(max = 100), pattern = "^a", format = dns_label, neq = "abc", immutable)]
    pub text: String,
    #[api(min = -1, max = LIMIT, multiple_of = 2, default = 4, update(no_unset), monotonic)]
    pub number: Option<i64>,
    #[api(gt = 0.5, lt = 1.5)]
    pub float: f64,
    #[api(range = 1..=9)]
    pub small: u8,
    #[api(items = ..=3, list = set, unique, each(len(max = 4), format = label_value), update(no_remove_item))]
    pub tags: Vec<String>,
    #[api(list = map(name, protocol), required)]
    pub ports: Vec<Port>,
    #[api(props(min = 1), keys(format = label_key), each(min = 1), map = granular)]
    pub counts: BTreeMap<String, i32>,
    #[api(atomic)]
    pub list: Option<Vec<String>>,
    #[api(atomic, opaque)]
    pub port: Option<Port>,
    #[api(each(each(min = 1)))]
    pub matrix: Option<Vec<Vec<i32>>>,
    pub kind: Option<String>,
    #[api(member = "A", conflicts(b))]
    pub a: Option<String>,
    #[api(member = ["B", "C"], requires(kind))]
    pub b: Option<String>,
    #[api(forbidden, nullable)]
    pub never: Option<String>,
    #[api(preserve_unknown, example = json!({"x": 1}))]
    pub raw: Option<Value>,
    #[api(int_or_string)]
    pub size: Option<IntOrString>,
}

#[apiloom::api]
pub struct Port {
    pub name: String,
    #[api(default = Protocol::Tcp)]
    pub protocol: Protocol,
}

#[apiloom::api]
pub enum Protocol {
    #[api(json = "TCP")]
    Tcp,
    /// The other one.
    #[api(unknown)]
    Unknown(String),
}

fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Checks that the property has these keywords; it may have others.
#[track_caller]
fn check(property: &str, keywords: Value) {
    let schema = schema::<Part>();
    let found = &schema["properties"][property];
    for (keyword, expected) in keywords.as_object().unwrap() {
        assert_eq!(
            &found[keyword], expected,
            "{keyword} of {property} in {found}"
        );
    }
}

#[test]
fn the_object_has_order_union_and_documentation() {
    let schema = schema::<Part>();
    let order =
        "text number float small tags ports counts list port matrix kind a b never raw size";
    assert_eq!(
        schema["x-apiloom-order"],
        json!(order.split(' ').collect::<Vec<_>>())
    );
    assert_eq!(
        schema["x-apiloom-union"],
        json!({"discriminator": "kind", "members": {"a": ["A"], "b": ["B", "C"]}, "allowNone": true})
    );
    assert_eq!(
        (&schema["title"], &schema["deprecated"]),
        (&json!("Part"), &json!(true))
    );
    assert_eq!(
        (&schema["description"], &schema["maxProperties"]),
        (&json!("A part.\n\nDeprecated: use Whole"), &json!(20))
    );
    assert_eq!(schema["required"], json!(["text", "float", "small"]));
}

#[test]
fn bounds_and_formats() {
    check(
        "text",
        json!({"minLength": 1, "maxLength": 63, "x-apiloom-max-bytes": 100, "pattern": "^a", "format": "dns-label"}),
    );
    check("text", json!({"x-apiloom-not-equal": "abc"}));
    check(
        "number",
        json!({"minimum": -1, "maximum": 5_000_000_000_i64, "multipleOf": 2}),
    );
    check(
        "float",
        json!({"exclusiveMinimum": 0.5, "exclusiveMaximum": 1.5}),
    );
    check("small", json!({"minimum": 1, "maximum": 9}));
}

#[test]
fn defaults_presence_and_transitions() {
    check(
        "number",
        json!({"x-apiloom-default": 4, "x-apiloom-update": ["NoUnset", "Monotonic"]}),
    );
    check("text", json!({"x-apiloom-update": ["Immutable"]}));
    check("tags", json!({"x-apiloom-update": ["NoRemoveItem"]}));
    check("ports", json!({"x-apiloom-required": true}));
    check(
        "never",
        json!({"x-apiloom-forbidden": true, "x-apiloom-nullable": true}),
    );
    check("a", json!({"x-apiloom-conflicts": ["b"]}));
    check("b", json!({"x-apiloom-requires": ["kind"]}));
}

#[test]
fn a_default_makes_a_scalar_optional() {
    let printed = Schema::for_type::<Port>().unwrap().to_crd().schema;
    assert_eq!(printed["required"], json!(["name"]));
    assert_eq!(
        schema::<Port>()["properties"]["protocol"]["x-apiloom-default"],
        json!("TCP")
    );
}

#[test]
fn lists_and_maps() {
    check(
        "tags",
        json!({"maxItems": 3, "x-kubernetes-list-type": "set", "x-apiloom-unique": true}),
    );
    check(
        "tags",
        json!({"items": {"type": "string", "maxLength": 4, "format": "label-value"}}),
    );
    check(
        "ports",
        json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "protocol"]}),
    );
    check(
        "counts",
        json!({"minProperties": 1, "propertyNames": {"format": "label-key"}, "x-kubernetes-map-type": "granular"}),
    );
    check(
        "counts",
        json!({"additionalProperties": {"type": "integer", "format": "int32", "minimum": 1}}),
    );
    check("list", json!({"x-kubernetes-list-type": "atomic"}));
    check("port", json!({"x-kubernetes-map-type": "atomic"}));
    check(
        "matrix",
        json!({"items": {"type": "array", "items": {"type": "integer", "format": "int32", "minimum": 1}}}),
    );
}

#[test]
fn free_form_values() {
    check(
        "raw",
        json!({"x-kubernetes-preserve-unknown-fields": true, "example": {"x": 1}}),
    );
    check("size", json!({"x-kubernetes-int-or-string": true}));
}

#[test]
fn an_open_enum_is_a_string() {
    assert_eq!(schema::<Protocol>()["x-apiloom-open-enum"], json!(["TCP"]));
    assert_eq!(schema::<Protocol>()["type"], json!("string"));
}
