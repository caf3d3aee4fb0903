//! Fields that are always sent, and keywords of schemas that have no key of their own.

use apiloom::meta::schema::Schema;
use apiloom::prelude::*;
use serde_json::{Value, json};

#[apiloom::api(schema = r#"{"oneOf": [{"required": ["file"]}, {"required": ["url"]}]}"#)]
#[derive(Default)]
pub struct Source {
    pub file: Option<String>,
    pub url: Option<String>,
    #[api(present)]
    pub names: Vec<String>,
    #[api(present, nullable)]
    pub seen: Option<String>,
    #[api(schema = r#"{"enum": [1, 2], "x-kubernetes-validations": [{"rule": "self < 2"}]}"#)]
    pub level: Option<i64>,
    #[api(each(schema = r#"{"not": {"enum": ["x"]}}"#))]
    pub labels: BTreeMap<String, String>,
    #[api(schema = r#"{"allOf": [{"pattern": "^a"}, {"pattern": "z$"}]}"#)]
    pub both: Option<String>,
    #[api(schema = r#"{"allOf": [{"pattern": "^[1-9]"}]}"#)]
    pub size: Option<Quantity>,
    #[api(each(
        schema = r#"{"oneOf": [{"not": {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}}, {"required": ["x"]}]}"#
    ))]
    pub points: Vec<Point>,
    #[api(
        schema = r#"{"type": "object", "properties": {"a": {"type": "integer", "default": 3}}}"#
    )]
    pub free: Option<Value>,
}

#[apiloom::api]
pub struct Point {
    pub x: Option<i32>,
    pub y: Option<i32>,
}

/// The same with the derives of serde and schemars.
#[apiloom::api]
pub struct Derived {
    #[api(present)]
    pub names: Vec<String>,
    #[api(present, nullable)]
    pub seen: Option<String>,
    #[api(flatten)]
    pub rest: BTreeMap<String, Value>,
}

#[apiloom::api]
pub struct Printed {
    #[api(default = String::new(), present)]
    pub reason: String,
    #[api(default = 0)]
    pub count: i32,
}

#[apiloom::api]
pub enum Kept {
    Counted {
        #[api(default = 0)]
        count: i32,
        path: String,
    },
}

#[test]
fn a_field_of_a_variant_with_a_default_is_not_listed_as_required() {
    let schema = Schema::for_type::<Kept>().unwrap().to_crd().schema;
    assert_eq!(schema["properties"]["counted"]["required"], json!(["path"]));
}

#[test]
fn a_field_with_a_default_is_listed_as_required_if_it_says_so() {
    let schema = Schema::for_type::<Printed>().unwrap();
    assert_eq!(
        schema.to_crd().schema,
        json!({"type": "object", "required": ["reason"], "properties": {
            "reason": {"type": "string", "default": ""},
            "count": {"type": "integer", "format": "int32", "default": 0},
        }})
    );
    let mut document = json!({});
    schema.default(&mut document);
    assert_eq!(document, json!({"reason": "", "count": 0}));
    assert_eq!(schema.validate(&document), []);
}

fn errors(document: &Value) -> Vec<String> {
    let schema = Schema::for_type::<Source>().unwrap();
    let errors = schema.validate(document);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_crd_has_what_is_sent_always_and_further_keywords() {
    let crd = Schema::for_type::<Source>().unwrap().to_crd();
    assert_eq!(crd.unsaid, [""; 0]);
    let mut size = Schema::for_type::<Quantity>().unwrap().to_crd().schema;
    size["anyOf"] = json!([{"pattern": "^[1-9]"}]);
    assert_eq!(
        crd.schema,
        json!({"type": "object", "required": ["names", "seen"],
        "oneOf": [{"required": ["file"]}, {"required": ["url"]}],
        "properties": {
            "file": {"type": "string"},
            "url": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}},
            "seen": {"type": "string", "nullable": true},
            "level": {"type": "integer", "format": "int64", "enum": [1, 2], "x-kubernetes-validations": [{"rule": "self < 2"}]},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "not": {"enum": ["x"]}}},
            "both": {"type": "string", "pattern": "^a", "anyOf": [{"pattern": "z$"}]},
            "size": size,
                "points": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"x": {"type": "integer", "format": "int32"}, "y": {"type": "integer", "format": "int32"}},
                    "oneOf": [{"not": {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}}, {"required": ["x"]}],
                }},
                "free": {"type": "object", "properties": {"a": {"type": "integer", "default": 3}}},
        }})
    );
    let derived = Schema::for_type::<Derived>().unwrap().to_crd();
    assert_eq!(derived.schema["required"], json!(["names", "seen"]));
}

#[test]
fn further_keywords_are_enforced() {
    let check = |document: Value, expected: &[&str]| {
        assert_eq!(errors(&document), expected, "{document}");
    };
    check(
        json!({"file": "f", "names": [], "seen": null, "level": 1, "labels": {"a": "y"}}),
        &[],
    );
    check(
        json!({"url": "u"}),
        &["names: Required value", "seen: Required value"],
    );
    let both = errors(&json!({"file": "f", "url": "u", "names": [], "seen": ""}));
    assert_eq!(both.len(), 1, "{both:?}");
    let wrong =
        errors(&json!({"file": "f", "names": [], "seen": "", "level": 3, "labels": {"a": "x"}}));
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    let wrong = errors(
        &json!({"file": "f", "names": [], "seen": "", "both": "ab", "points": [{}, {"x": 1}, {"y": 1}]}),
    );
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    let wrong = errors(&json!({"file": "f", "names": [], "seen": "", "size": "0Ki"}));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    check(
        json!({"file": "f", "names": [], "seen": "", "size": "9Ki"}),
        &[],
    );
    let mut document = json!({"file": "f", "free": {"b": 1}});
    let schema = Schema::for_type::<Source>().unwrap();
    schema.prune(&mut document);
    schema.default(&mut document);
    assert_eq!(document["free"], json!({"a": 3}));
}

#[test]
fn what_is_sent_always_is_written_when_it_is_empty() {
    let empty = json!({"names": [], "seen": null});
    let written = serde_json::to_value(Source::default()).unwrap();
    assert_eq!(written, empty);
    assert_eq!(
        serde_json::from_value::<Source>(empty.clone()).unwrap(),
        Source::default()
    );
    let derived: Derived = serde_json::from_value(empty.clone()).unwrap();
    assert_eq!(serde_json::to_value(derived).unwrap(), empty);
}

mod broken {
    use super::*;

    #[apiloom::api]
    pub struct Broken {
        #[api(schema = "[1]")]
        pub a: String,
        #[api(schema = "{")]
        pub b: String,
        #[api(schema = r#"{"type": "integer"}"#)]
        pub c: String,
        #[api(schema = r#"{"anyOf": [{"required": ["x"]}, {"required": ["url"]}]}"#)]
        pub d: Option<super::Source>,
    }

    #[test]
    fn further_keywords_that_make_no_sense_are_reported() {
        let errors = Schema::for_type::<Broken>().unwrap_err().0;
        let begin = [
            "a: `schema` is no JSON object: [1]",
            "b: `schema` is not JSON: ",
            "c: no value is both string and integer",
        ];
        for (error, begin) in errors.iter().zip(begin) {
            assert!(error.starts_with(begin), "{error}");
        }
        assert_eq!(errors.len(), 4, "{errors:?}");
    }
}
