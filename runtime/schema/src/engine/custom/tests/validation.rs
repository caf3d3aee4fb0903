//! Texts of validation, and the errors that an update tolerates.

use serde_json::{Value, json};

use super::{lines, of, schema};

/// Checks the errors of a value for the field `v`.
#[track_caller]
fn check(field: Value, value: Value, expected: &[&str]) {
    let schema = schema(&json!({ "v": field }));
    let found = lines(schema.validate(&json!({ "v": value })));
    assert_eq!(found, expected, "{field} {value}");
}

#[test]
fn types_have_the_texts_of_kube_openapi() {
    let string = || json!({"type": "string"});
    check(string(), json!("a"), &[]);
    check(
        string(),
        json!(1),
        &[r#"v: Invalid value: "integer": v in body must be of type string: "integer""#],
    );
    check(
        string(),
        json!(null),
        &[r#"v: Invalid value: "null": v in body must be of type string: "null""#],
    );
    check(
        json!({"type": "string", "nullable": true}),
        json!(null),
        &[],
    );
    check(
        json!({"type": "integer"}),
        json!("x"),
        &[r#"v: Invalid value: "string": v in body must be of type integer: "string""#],
    );
    // A float without fraction is an integer.
    check(json!({"type": "integer"}), json!(1.0), &[]);
    check(
        json!({"type": "integer"}),
        json!(1.5),
        &[
            r#"v: Invalid value: "number": v in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in v"#,
        ],
    );
    check(json!({"type": "number"}), json!(1), &[]);
    check(
        json!({"type": "integer", "format": "int32"}),
        json!(true),
        &[r#"v: Invalid value: "": v in body must be of type int32: """#],
    );
    check(
        json!({"type": "integer", "format": "int32"}),
        json!(1_i64 << 40),
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in v"#,
        ],
    );
    let either = || json!({"x-kubernetes-int-or-string": true});
    check(either(), json!("50%"), &[]);
    check(either(), json!(3), &[]);
    check(
        either(),
        json!(true),
        &[r#"v: Invalid value: "boolean": v in body must be of type integer,string: "boolean""#],
    );
    check(
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!([1, "a"]),
        &[],
    );
}

#[test]
fn bounds_have_the_texts_of_kube_openapi() {
    let integer = |keyword: &str, limit: Value| json!({"type": "integer", keyword: limit});
    check(
        integer("maximum", json!(10)),
        json!(11),
        &["v: Invalid value: 11: v in body should be less than or equal to 10"],
    );
    check(
        json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
        json!(10),
        &["v: Invalid value: 10: v in body should be less than 10"],
    );
    check(
        json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}),
        json!(0.5),
        &["v: Invalid value: 0.5: v in body should be greater than 0.5"],
    );
    check(
        json!({"type": "number", "minimum": 2_000_000}),
        json!(0.5),
        &["v: Invalid value: 0.5: v in body should be greater than or equal to 2e+06"],
    );
    check(
        integer("multipleOf", json!(5)),
        json!(7),
        &["v: Invalid value: 7: v in body should be a multiple of 5"],
    );
    // Limits of an integer lose their fraction, those of a number with one do not.
    for (keyword, limit, value, error) in [
        ("minimum", 1.5, json!(1), None),
        ("minimum", 1.5, json!(0), Some("greater than or equal to 1")),
        (
            "minimum",
            1.5,
            json!(1.25),
            Some("greater than or equal to 1.5"),
        ),
        ("maximum", -1.5, json!(-1), None),
        ("maximum", -1.5, json!(0), Some("less than or equal to -1")),
        ("multipleOf", 2.5, json!(2), None),
        ("multipleOf", 2.5, json!(5), Some("a multiple of 2")),
        ("multipleOf", 2.5, json!(7.5), None),
        ("maximum", 1e30, json!(5), None),
    ] {
        let error =
            error.map(|error| format!("v: Invalid value: {value}: v in body should be {error}"));
        let errors: Vec<&str> = error.iter().map(String::as_str).collect();
        check(json!({"type": "number", keyword: limit}), value, &errors);
    }
    check(
        json!({"type": "number", "multipleOf": 0.5}),
        json!(1),
        &["v: Invalid value: 0: factor MultipleOf declared for v must be positive: 0"],
    );
    // A number is compared with the integers of an enum without its fraction.
    let few = || json!({"type": "number", "enum": [1.5, 2]});
    check(few(), json!(2.5), &[]);
    check(few(), json!(1.5), &[]);
    check(
        few(),
        json!(1),
        &[r#"v: Unsupported value: 1: supported values: "1.5", "2""#],
    );
    // A bound that the type does not have is an error of every value.
    check(
        integer("maximum", json!(1.5)),
        json!(1),
        &[
            r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in v"#,
        ],
    );
    let string = |keyword: &str, rule: Value| json!({"type": "string", keyword: rule});
    check(
        string("maxLength", json!(2)),
        json!("äöü"),
        &["v: Too long: may not be more than 2 bytes"],
    );
    check(
        string("minLength", json!(2)),
        json!("a"),
        &[r#"v: Invalid value: "a": v in body should be at least 2 chars long"#],
    );
    check(
        string("pattern", json!("^a$")),
        json!("b"),
        &[r#"v: Invalid value: "b": v in body should match '^a$'"#],
    );
    check(
        string("enum", json!(["red", "blue"])),
        json!("x"),
        &[r#"v: Unsupported value: "x": supported values: "red", "blue""#],
    );
    check(json!({"type": "integer", "enum": [1, 2]}), json!(1.0), &[]);
    check(
        string("format", json!("date-time")),
        json!("now"),
        &[r#"v: Invalid value: "now": v in body must be of type date-time: "now""#],
    );
    check(string("format", json!("unknown")), json!("now"), &[]);
    let list = |keyword: &str, limit: u64| json!({"type": "array", "items": {"type": "string"}, keyword: limit});
    check(
        list("maxItems", 1),
        json!(["a", "b"]),
        &["v: Too many: 2: must have at most 1 item"],
    );
    check(
        list("minItems", 1),
        json!([]),
        &["v: Invalid value: 0: v in body should have at least 1 items"],
    );
    let map = |keyword: &str, limit: u64| json!({"type": "object", "additionalProperties": {"type": "string"}, keyword: limit});
    check(
        map("maxProperties", 1),
        json!({"a": "", "b": ""}),
        &["v: Too many: 2: must have at most 1 item"],
    );
    check(
        map("minProperties", 1),
        json!({}),
        &["v: Invalid value: 0: v in body should have at least 1 properties"],
    );
}

#[test]
fn paths_of_maps_have_dots_in_validation_and_brackets_in_duplicates() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    check(
        json!({"type": "object", "additionalProperties": set}),
        json!({"k": ["a", "b", "a", "a", 1]}),
        &[
            r#"v.k[4]: Invalid value: "integer": v.k[4] in body must be of type string: "integer""#,
            r#"v[k][2]: Duplicate value: "a""#,
        ],
    );
    check(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"],
            "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "p": {"type": "integer", "default": 1}}}}),
        json!([{"n": "a"}, {"n": "a", "p": 1}, {"n": "a", "p": 1}, {}]),
        &[
            "v[3].n: Required value",
            r#"v[2]: Duplicate value: {"n":"a","p":1}"#,
        ],
    );
}

#[test]
fn alternatives_report_the_best_one() {
    let field = |keyword: &str| {
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
            keyword: [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minimum": 3}}}]})
    };
    check(field("anyOf"), json!({"a": ""}), &[]);
    check(field("anyOf"), json!({"a": "", "b": 3}), &[]);
    check(
        field("anyOf"),
        json!({"b": 1}),
        &[
            r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)"#,
            "v.b: Invalid value: 1: v.b in body should be greater than or equal to 3",
        ],
    );
    check(field("oneOf"), json!({"a": ""}), &[]);
    check(
        field("oneOf"),
        json!({"a": "", "b": 3}),
        &[
            r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        field("oneOf"),
        json!({}),
        &[
            r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found none valid"#,
            "v.a: Required value",
        ],
    );
    check(
        field("allOf"),
        json!({"b": 3}),
        &[
            "v.a: Required value",
            r#"<nil>: Invalid value: "": "v" must validate all the schemas (allOf)"#,
        ],
    );
    check(
        json!({"type": "string", "not": {"enum": ["x"]}}),
        json!("x"),
        &[r#"<nil>: Invalid value: "": "v" must not validate the schema (not)"#],
    );
}

#[test]
fn unchanged_errors_are_tolerated() {
    let old_schema_allowed = json!({"spec": {"size": 9, "list": [{"n": "a", "v": 9}, {"n": "b", "v": 1}], "plain": ["xx", "y"], "set": ["xx"]}});
    let string = json!({"type": "string", "maxLength": 1});
    let schema = schema(
        &json!({"spec": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "maximum": 5},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}},
            "plain": {"type": "array", "items": string},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": string},
        }}}),
    );
    let update = |change: &dyn Fn(&mut Value)| {
        let mut new = old_schema_allowed.clone();
        change(&mut new["spec"]);
        lines(schema.validate_update(&new, &old_schema_allowed))
    };
    assert_eq!(update(&|_| {}), Vec::<String>::new());
    // What is added to the object is judged, and the field that it still lacks.
    let missing = "spec.name: Required value";
    assert_eq!(update(&|spec| spec["other"] = json!(1)), [missing]);
    assert_eq!(
        update(&|spec| spec["name"] = json!("a")),
        Vec::<String>::new()
    );
    let too_large =
        "spec.size: Invalid value: 8: spec.size in body should be less than or equal to 5";
    assert_eq!(
        update(&|spec| spec["size"] = json!(8)),
        [missing, too_large]
            .map(str::to_owned)
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
    );
    // An item is found by its key; those of lists without keys have no identity.
    assert_eq!(
        update(&|spec| {
            spec["name"] = json!("a");
            spec["list"] = json!([{"n": "b", "v": 2}, {"n": "a", "v": 9}]);
        }),
        Vec::<String>::new()
    );
    assert_eq!(
        update(&|spec| {
            spec["name"] = json!("a");
            spec["plain"] = json!(["xx", "z"]);
            spec["set"] = json!(["xx", "y"]);
        }),
        [
            "spec.plain[0]: Too long: may not be more than 1 byte",
            "spec.set[0]: Too long: may not be more than 1 byte"
        ]
    );
}

#[test]
fn the_host_of_a_uri_has_the_characters_of_hosts() {
    let field = || json!({"type": "string", "format": "uri"});
    for uri in [
        "http://a/b#c",
        "http://u:p@a:80",
        "urn:a#b",
        "http://[::1]:1/",
    ] {
        check(field(), json!(uri), &[]);
    }
    for uri in [
        "http://a#b",
        "http://a@b#c",
        "http://a[b",
        "http://u p@a",
        "http://u%zz@a",
    ] {
        let error = format!(r#"v: Invalid value: "{uri}": v in body must be of type uri: "{uri}""#);
        check(field(), json!(uri), &[&error]);
    }
}

#[test]
fn values_of_a_map_that_is_validated_alone_begin_with_a_dot() {
    let schema =
        schema(&json!({"status": {"type": "object", "additionalProperties": {"type": "integer"}}}));
    let [new, old] = [json!({"status": {"a": "x"}}), json!({"status": {}})];
    assert_eq!(
        lines(schema.validate_field_update("status", &new, &old)),
        [r#"status.a: Invalid value: "string": .a in body must be of type integer: "string""#]
    );
}

#[test]
fn lists_with_duplicates_can_be_changed() {
    let schema = schema(
        &json!({"l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}),
    );
    let twins = json!({"l": ["a", "a"]});
    assert_eq!(
        lines(schema.validate_update(&json!({"l": ["a", "a", "b"]}), &twins)),
        Vec::<String>::new()
    );
    assert_eq!(
        lines(schema.validate_update(&twins, &json!({"l": ["a"]}))),
        [r#"l[1]: Duplicate value: "a""#]
    );
}

#[test]
fn fields_of_every_object_have_the_rules_of_the_schema() {
    let schema = of(
        &json!({"type": "object", "required": ["spec"], "properties": {
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
            "spec": {"type": "object"},
        }}),
    );
    let found =
        lines(schema.validate(&json!({"metadata": {"name": "long", "labels": {"a": "b"}}})));
    assert_eq!(
        found,
        [
            "metadata.name: Too long: may not be more than 3 bytes",
            "spec: Required value"
        ]
    );
}

#[test]
fn embedded_objects_have_a_type_and_valid_metadata() {
    let field = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    check(
        field.clone(),
        json!({"metadata": {"labels": {"a b": "c"}}}),
        &["v.apiVersion: Required value", "v.kind: Required value"],
    );
    check(
        field,
        json!({"apiVersion": "a/b/c", "kind": "-", "spec": 1}),
        &[
            "v.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            "v.kind: Invalid value: \"-\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ],
    );
}

/// Each error listed all values: 100,000 values and 8,000 items were 5 GB of text, of which nearly all was cut off.
#[test]
fn an_error_of_an_enum_reads_no_more_values_than_it_shows() {
    use crate::{FieldError, FieldPath};
    let read = std::cell::Cell::new(0);
    let values = (0..100_000).map(|at: usize| {
        read.set(read.get() + 1);
        format!("value{at}")
    });
    let error = FieldError::not_supported(&FieldPath::new("v"), "x", values);
    assert!(read.get() < 10_000, "{}", read.get());
    let all: Vec<String> = (0..100_000)
        .map(|at| format!("{:?}", format!("value{at}")))
        .collect();
    let whole = format!(
        "Unsupported value: \"x\": supported values: {}",
        all.join(", ")
    );
    assert!(error.body.ends_with("...") && whole.starts_with(error.body.trim_end_matches("...")));
}
