//! The forms that serde gives to types: each has a structural schema that accepts and refuses the same documents as
//! serde.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

/// One shape: documents that serde and the engine both take, and documents that both refuse, with the engine's text.
fn check<T: JsonSchema + serde::de::DeserializeOwned>(good: &[Value], bad: &[(Value, &str)]) {
    let schema = schema_of::<T>().expect("structural");
    for document in good {
        assert!(
            serde_json::from_value::<T>(document.clone()).is_ok(),
            "serde refuses {document}"
        );
        let decoded =
            decoded(&schema, document).unwrap_or_else(|error| panic!("{document}: {error}"));
        assert_eq!(decoded.strict, Vec::<String>::new(), "{document}");
        assert_eq!(decoded.value, *document);
        assert_eq!(
            errors(&schema, document),
            Vec::<String>::new(),
            "{document}"
        );
    }
    for (document, expected) in bad {
        assert!(
            serde_json::from_value::<T>(document.clone()).is_err(),
            "serde takes {document}"
        );
        let found = match decoded(&schema, document) {
            Err(error) => error.to_string(),
            Ok(decoded) => errors(&schema, &decoded.value).join("; "),
        };
        assert_eq!(found, *expected, "{document}");
    }
}

#[derive(Serialize, Deserialize, JsonSchema, Default)]
struct Inner {
    a: i32,
    b: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Unit {
    Red,
    Green,
}

#[test]
fn unit_enum() {
    check::<Unit>(
        &[json!("Red")],
        &[(
            json!("Blue"),
            r#"<nil>: Unsupported value: "Blue": supported values: "Red", "Green""#,
        )],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Documented {
    /// Like blood.
    Red,
    Green,
}

#[test]
fn documented_unit_enum() {
    check::<Documented>(
        &[json!("Red"), json!("Green")],
        &[(
            json!("Blue"),
            r#"<nil>: Unsupported value: "Blue": supported values: "Green", "Red""#,
        )],
    );
    let printed = openapi(&schema_of::<Documented>().expect("structural"));
    assert_eq!(printed["type"], "string");
    assert_eq!(
        printed["description"],
        "Possible enum values:\n - `\"Green\"`\n - `\"Red\"` Like blood."
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Internal {
    A { x: i32 },
    B { y: Option<Unit> },
    C,
    N(Inner),
}

#[test]
fn internally_tagged_enum() {
    check::<Internal>(
        &[
            json!({"type":"A","x":1}),
            json!({"type":"B"}),
            json!({"type":"B","y":"Red"}),
            json!({"type":"C"}),
            json!({"type":"N","a":1,"b":"x"}),
        ],
        &[
            (
                json!({"type":"Z"}),
                r#"type: Unsupported value: "Z": supported values: "A", "B", "C", "N""#,
            ),
            (json!({}), "type: Required value"),
            (json!({"type":"A"}), "x: Required value"),
            (json!({"type":"N"}), "a: Required value"),
            (
                json!({"type":"A","x":"1"}),
                "json: cannot unmarshal string into Go struct field Internal.x of type int32",
            ),
            (
                json!({"type":"B","y":"Blue"}),
                r#"y: Unsupported value: "Blue": supported values: "Red", "Green""#,
            ),
        ],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum External {
    Http { port: u16 },
    Tcp(Inner),
}

#[test]
fn externally_tagged_enum() {
    check::<External>(
        &[json!({"http":{"port":80}}), json!({"tcp":{"a":1}})],
        &[
            (
                json!({}),
                "<nil>: Invalid value: \"\": must specify one of: `http`, `tcp`",
            ),
            (
                json!({"http":{"port":80},"tcp":{"a":1}}),
                "<nil>: Invalid value: \"{http, tcp}\": must specify exactly one of: `http`, `tcp`",
            ),
            (json!({"http":{}}), "http.port: Required value"),
            (
                json!("http"),
                "json: cannot unmarshal string into Go value of type External",
            ),
        ],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Mixed {
    Off,
    On,
    Timed { seconds: u32 },
    Named(Inner),
}

#[test]
fn mixed_enum() {
    check::<Mixed>(
        &[
            json!("Off"),
            json!({"Timed":{"seconds":3}}),
            json!({"Named":{"a":1}}),
        ],
        &[
            (
                json!("Maybe"),
                r#"<nil>: Unsupported value: "Maybe": supported values: "Off", "On""#,
            ),
            (
                json!(1),
                "json: cannot unmarshal number into Go value of type Mixed",
            ),
            (json!({"Timed":{}}), "Timed.seconds: Required value"),
            (
                json!({"Timed":{"seconds":1},"Named":{"a":1}}),
                "<nil>: Invalid value: \"{Timed, Named}\": must specify exactly one of: `Timed`, `Named`",
            ),
        ],
    );
    let printed = openapi(&schema_of::<Mixed>().expect("structural"));
    assert_eq!(
        printed.get("type"),
        None,
        "no structural schema says two types"
    );
    assert_eq!(printed["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(printed.get("oneOf"), None);
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A { x: i32 },
    B(String),
    C,
}

#[test]
fn adjacently_tagged_enum() {
    check::<Adjacent>(
        &[
            json!({"t":"A","c":{"x":1}}),
            json!({"t":"B","c":"s"}),
            json!({"t":"C"}),
        ],
        &[
            (json!({"t":"A"}), "c: Required value"),
            (
                json!({"t":"D"}),
                r#"t: Unsupported value: "D": supported values: "A", "B", "C""#,
            ),
            (
                json!({"t":"A","c":"s"}),
                r#"c: Invalid value: "string": c in body must be of type object: "string""#,
            ),
        ],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i32),
    List(Vec<String>),
    Object(Inner),
    Nothing,
}

#[test]
fn untagged_enum() {
    check::<Untagged>(
        &[json!(1), json!(["a"]), json!({"a":1})],
        &[
            (
                json!("x"),
                "json: cannot unmarshal string into Go value of type Untagged",
            ),
            (json!({}), "a: Required value"),
            (
                json!(5_000_000_000_i64),
                "<nil>: Invalid value: 5000000000: must be less than or equal to 2147483647",
            ),
        ],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Flat {
    own: bool,
    #[serde(flatten)]
    inner: Inner,
    #[serde(flatten)]
    kind: Internal,
}

#[test]
fn flattened_structs_and_enums() {
    check::<Flat>(
        &[json!({"own":true,"a":1,"type":"A","x":2})],
        &[
            (json!({"own":true,"type":"C"}), "a: Required value"),
            (json!({"own":true,"a":1,"type":"A"}), "x: Required value"),
        ],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct FlatMap {
    own: bool,
    #[serde(flatten)]
    rest: BTreeMap<String, i64>,
}

#[test]
fn flattened_map() {
    check::<FlatMap>(
        &[json!({"own":true,"x":1})],
        &[(
            json!({"own":true,"x":"y"}),
            "json: cannot unmarshal string into Go struct field FlatMap.x of type int64",
        )],
    );
    let printed = openapi(&schema_of::<FlatMap>().expect("structural"));
    assert_eq!(printed["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(
        printed.get("additionalProperties"),
        None,
        "properties and additionalProperties exclude each other"
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Newtype(String);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Containers {
    list: Vec<Inner>,
    set: BTreeSet<String>,
    map: BTreeMap<String, Inner>,
    numbers: HashMap<u32, Unit>,
    boxed: Box<Inner>,
    newtype: Newtype,
    optional: Option<Option<Unit>>,
    optional_newtype: Option<Newtype>,
    array: [u8; 2],
    letter: char,
}

#[test]
fn containers_and_pointers() {
    let good = json!({"list":[{"a":1}],"set":["x","y"],"map":{"k":{"a":2}},"numbers":{"7":"Red"},"boxed":{"a":3},"newtype":"n",
        "optional":"Green","optional_newtype":"m","array":[1,2],"letter":"x"});
    let with = |field: &str, value: Value| {
        let mut document = good.clone();
        document[field] = value;
        document
    };
    check::<Containers>(
        std::slice::from_ref(&good),
        &[
            (
                with("list", json!([{"a":1},{}])),
                "list[1].a: Required value",
            ),
            (with("map", json!({"k":{}})), "map[k].a: Required value"),
            (
                with("numbers", json!({"seven":"Red"})),
                r#"numbers: Invalid value: "seven": numbers in body should match '^\d+$'"#,
            ),
            (
                with("array", json!([1])),
                "array: Too few: 1: must have at least 2 items",
            ),
            (
                with("array", json!([1, 256])),
                "json: cannot unmarshal number 256 into Go struct field Containers.array of type uint8",
            ),
            (
                with("letter", json!("xy")),
                "letter: Too long: may not be more than 1 characters",
            ),
        ],
    );
    let schema = schema_of::<Containers>().expect("structural");
    assert_eq!(
        errors(&schema, &with("set", json!(["x", "x"]))),
        [r#"set[1]: Duplicate value: "x""#]
    );
    assert_eq!(
        openapi(&schema)["properties"]["set"]["x-kubernetes-list-type"],
        "set"
    );
    assert_eq!(
        openapi(&schema)["properties"]["optional"],
        json!({"type":"string","enum":["Red","Green"]})
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Free {
    value: Option<Value>,
    map: serde_json::Map<String, Value>,
    list: Vec<Value>,
}

#[test]
fn free_form_values() {
    check::<Free>(
        &[
            json!({"value":{"x":[1,null]},"map":{"a":{"b":null}},"list":[1,"x"]}),
            json!({"value":"s","map":{},"list":[]}),
        ],
        &[],
    );
    let printed = openapi(&schema_of::<Free>().expect("structural"));
    assert_eq!(
        printed["properties"]["value"],
        json!({"x-kubernetes-preserve-unknown-fields":true})
    );
    assert_eq!(
        printed["properties"]["map"],
        json!({"type":"object","x-kubernetes-preserve-unknown-fields":true})
    );
    assert_eq!(
        printed["properties"]["list"],
        json!({"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}})
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Int(i32),
    Name(String),
}

#[test]
fn an_integer_or_a_string() {
    check::<Port>(
        &[json!(80), json!("http")],
        &[(
            json!(true),
            "json: cannot unmarshal bool into Go value of type Port",
        )],
    );
    assert_eq!(
        openapi(&schema_of::<Port>().expect("structural")),
        json!({"x-kubernetes-int-or-string":true})
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Meta {
    quantity: crate::types::Quantity,
    port: crate::types::IntOrString,
    time: crate::types::Time,
    selector: crate::types::LabelSelector,
}

#[test]
fn meta_types() {
    check::<Meta>(
        &[
            json!({"quantity":"1Gi","port":80,"time":"2026-11-21T09:28:46Z","selector":{"matchLabels":{"a":"b"}}}),
            json!({"quantity":0.5,"port":"80%","time":"2026-11-21T09:28:46Z","selector":{}}),
        ],
        &[
            (
                json!({"quantity":"1Gi","port":"x","time":"now","selector":{}}),
                r#"parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#,
            ),
            (
                json!({"quantity":"1gi","port":"x","time":"2026-11-21T09:28:46Z","selector":{}}),
                &"1gi"
                    .parse::<crate::types::Quantity>()
                    .expect_err("no quantity")
                    .to_string(),
            ),
        ],
    );
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
struct Refused {
    tuple: (i32, String),
    unit: (),
    kids: Vec<Tree>,
    nested: Vec<BTreeMap<String, (u8, u8, u8)>>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
struct Tree {
    left: Option<Box<Tree>>,
}

#[test]
fn what_has_no_structural_schema_is_told_with_its_field() {
    let mut lines = schema_of::<Refused>().expect_err("not structural");
    lines.sort();
    assert_eq!(
        lines,
        [
            "kids[*].left: the type refers to itself (Tree -> Tree); a structural schema is finite: put `#[api(preserve_unknown)]` on a field of the circle to end it there",
            "nested[*][*]: a tuple has no structural schema; use a struct with named fields",
            "tuple: a tuple has no structural schema; use a struct with named fields",
            "unit: the unit type holds nothing and has no structural schema",
        ]
    );
}

#[test]
fn a_root_that_refers_to_itself_is_told() {
    assert_eq!(
        schema_of::<Tree>().expect_err("not structural"),
        [
            "left: the type refers to itself; a structural schema is finite: put `#[api(preserve_unknown)]` on a field of the circle to end it there"
        ]
    );
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[serde(tag = "type")]
enum WithDefaults {
    A {
        #[schemars(extend("x-apiloom-default" = 5))]
        x: Option<i32>,
    },
    B {
        nested: Option<Nested>,
    },
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
struct Nested {
    #[schemars(extend("x-apiloom-default" = 7))]
    y: Option<i32>,
}

#[test]
fn a_default_inside_one_variant_is_refused_unless_it_is_in_a_struct_of_the_variant() {
    assert_eq!(
        schema_of::<WithDefaults>().expect_err("not structural"),
        [
            "x: a default inside one variant would be applied to the others too; put it on a struct in the variant"
        ]
    );
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
struct Described {
    /// Of the field.
    #[schemars(extend("x-apiloom-update" = ["Immutable"]))]
    own: Option<Inner>,
    bare: Inner,
}

#[test]
fn keywords_beside_a_reference_win_over_its_target() {
    let schema = schema_of::<Described>().expect("structural");
    let printed = openapi(&schema);
    assert_eq!(printed["properties"]["own"]["description"], "Of the field.");
    assert_eq!(
        printed["properties"]["own"]["properties"]["a"],
        json!({"type":"integer","format":"int32"})
    );
    assert_eq!(
        printed["properties"]["own"].get("nullable"),
        None,
        "Option is absent, not null"
    );
    assert_eq!(printed["required"], json!(["bare"]));
}

/// Checks what a schema says of itself with a field as it is, in a list, in a map, and in a map below.
fn check_wherever(field: &Value, says: impl Fn(&Schema) -> bool, expected: bool) {
    let map = json!({"type": "object", "additionalProperties": field});
    let below = json!({"type": "object", "properties": {"m": map}});
    let list = json!({"type": "array", "items": field});
    for field in [field.clone(), list, map, below] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "f": field}});
        let schema =
            Schema::from_json(&schema, &crate::kind::Hooks::default()).expect("structural");
        assert_eq!(says(&schema), expected, "{schema:?}");
    }
}

#[test]
fn numbers_of_32_bits_are_known_wherever_they_are() {
    for (format, expected) in [("float", true), ("double", false)] {
        let number = json!({"type": "number", "format": format});
        check_wherever(&number, Schema::has_singles, expected);
    }
}

#[test]
fn rules_for_updates_are_known_wherever_they_are() {
    let immutable = json!({"type": "string", "x-apiloom-update": ["Immutable"]});
    check_wherever(&immutable, Schema::has_update_rules, true);
    check_wherever(&json!({"type": "string"}), Schema::has_update_rules, false);
}
