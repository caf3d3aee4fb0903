//! Each rule of structural schemas, with a schema that violates it.

use serde_json::json;

use super::*;

#[track_caller]
fn check(schema: &Value, expected: &[&str]) {
    let found = problems(schema, &FieldPath::root());
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, expected, "{schema:#}");
}

/// Checks that a schema has one problem, at this field.
#[track_caller]
fn field(field: Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {"p": field}});
    let expected: Vec<String> = expected
        .iter()
        .map(|line| format!("properties[p]{line}"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&schema, &expected);
}

#[test]
fn a_structural_schema_has_no_problems() {
    check(
        &json!({
            "type": "object",
            "description": "A kind.",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string", "description": "a"},
                "kind": {"type": "string"},
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
                "spec": {"type": "object", "properties": {
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "free": {"x-kubernetes-preserve-unknown-fields": true},
                    "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                    "labels": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
                    "any": {"type": "object", "additionalProperties": true},
                    "since": {"type": "string", "format": "date-time"},
                    "count": {"type": "integer", "format": "int64", "default": 1},
                    "ratio": {"type": "number", "format": "double"},
                    "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "parts": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
                        "items": {"type": "object", "required": ["name"], "properties": {
                            "name": {"type": "string"}, "port": {"type": "integer", "default": 80},
                        }},
                    },
                }, "oneOf": [{"required": ["port"]}, {"properties": {"count": {"minimum": 3}}, "not": {"required": ["free"]}}]},
            },
        }),
        &[],
    );
}

#[test]
fn the_root_is_an_object() {
    check(
        &json!({}),
        &["type: Required value: must not be empty at the root"],
    );
    check(
        &json!({"type": "string"}),
        &[r#"type: Invalid value: "string": must be object at the root"#],
    );
    check(
        &json!({"type": "object", "additionalProperties": {"type": "string"}}),
        &["additionalProperties: Forbidden: must not be used at the root"],
    );
    check(
        &json!(true),
        &["<nil>: Invalid value: true: must be a schema"],
    );
}

#[test]
fn every_value_has_one_type() {
    field(
        json!({}),
        &[".type: Required value: must not be empty for specified object fields"],
    );
    field(
        json!({"type": "array", "items": {}}),
        &[".items.type: Required value: must not be empty for specified array items"],
    );
    field(
        json!({"type": "object", "additionalProperties": {}}),
        &[
            ".additionalProperties.type: Required value: must not be empty for specified object fields",
        ],
    );
    field(
        json!({"type": ["string", "null"]}),
        &[r#".type: Invalid value: ["string","null"]: must be the name of one type"#],
    );
    field(
        json!({"type": "null"}),
        &[r#".type: Invalid value: "null": must be the name of a type"#],
    );
    field(
        json!({"type": "string", "x-kubernetes-int-or-string": true}),
        &[r#".type: Invalid value: "string": must be empty if x-kubernetes-int-or-string is true"#],
    );
    field(
        json!({"type": "string", "x-kubernetes-preserve-unknown-fields": true}),
        &[
            r#".type: Invalid value: "string": must be object if x-kubernetes-preserve-unknown-fields is true"#,
        ],
    );
}

#[test]
fn objects_and_lists_say_what_they_hold_once() {
    field(
        json!({"type": "array"}),
        &[".items: Required value: must be specified"],
    );
    field(
        json!({"type": "array", "items": [{"type": "string"}]}),
        &[
            r#".items: Invalid value: [{"type":"string"}]: must be a schema and not a list of schemas"#,
        ],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[".additionalProperties: Forbidden: must not be used beside properties"],
    );
}

#[test]
fn branches_judge_and_describe_nothing() {
    for (keyword, value, detail) in [
        ("type", json!("string"), "must be empty to be structural"),
        ("title", json!("T"), "must be empty to be structural"),
        ("description", json!("d"), "must be empty to be structural"),
        ("default", json!("d"), "must be undefined to be structural"),
        (
            "additionalProperties",
            json!({}),
            "must be undefined to be structural",
        ),
        ("nullable", json!(true), "must be false to be structural"),
        (
            "x-kubernetes-int-or-string",
            json!(true),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-type",
            json!("set"),
            "must be undefined to be structural",
        ),
    ] {
        let branch = json!({ keyword: value });
        for (place, junctor) in [
            (".anyOf[1]", json!({"anyOf": [{}, branch]})),
            (".not", json!({ "not": branch })),
            (
                ".allOf[0].oneOf[0].not",
                json!({"allOf": [{"oneOf": [{ "not": branch }]}]}),
            ),
        ] {
            let mut schema = junctor;
            schema["type"] = json!("string");
            field(
                schema,
                &[&format!("{place}.{keyword}: Forbidden: {detail}")],
            );
        }
    }
    // The types of an integer or a string may be declared in one position only.
    field(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer", "maximum": 5}]}),
        &[".anyOf[0].type: Forbidden: must be empty to be structural"],
    );
}

#[test]
fn branches_judge_fields_that_are_described() {
    field(
        json!({"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]}),
        &[
            ".anyOf[0].properties[a]: Required value: must be described outside of allOf, anyOf, oneOf and not",
        ],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"items": {"maxLength": 3}}}),
        &[".not.items: Required value: must be described outside of allOf, anyOf, oneOf and not"],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"properties": {"a": {"title": "T"}}}}),
        &[".not.properties[a].title: Forbidden: must be empty to be structural"],
    );
}

#[test]
fn metadata_is_given() {
    let detail = "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified";
    for metadata in [
        json!({"type": "object", "properties": {"labels": {"type": "object"}}}),
        json!({"type": "object", "required": ["name"]}),
    ] {
        check(
            &json!({"type": "object", "properties": {"metadata": metadata}}),
            &[&format!("properties[metadata]: {detail}")],
        );
        field(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}}),
            &[&format!(".properties[metadata]: {detail}")],
        );
    }
    check(
        &json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
        &[r#"properties[kind].type: Invalid value: "integer": must be string"#],
    );
}

#[test]
fn embedded_resources_are_objects() {
    field(
        json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        &[".type: Required value: must be object if x-kubernetes-embedded-resource is true"],
    );
    field(
        json!({"type": "string", "x-kubernetes-embedded-resource": true}),
        &[
            r#".type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
        ],
    );
}

#[test]
fn some_keywords_are_not_supported() {
    for name in UNSUPPORTED {
        field(
            json!({"type": "object", name: {}}),
            &[&format!(".{name}: Forbidden: is not supported")],
        );
        field(
            json!({"type": "object", "not": {name: {}}}),
            &[&format!(".not.{name}: Forbidden: is not supported")],
        );
    }
    field(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &[
            ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    field(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": false}),
        &[],
    );
}

#[test]
fn formats_are_known() {
    for (json_type, format) in [
        ("string", "dns-label"),
        ("integer", "uint16"),
        ("number", "int32"),
        ("boolean", "date"),
    ] {
        field(
            json!({"type": json_type, "format": format}),
            &[&format!(
                ".format: Invalid value: \"{format}\": is a format that kube-apiserver ignores"
            )],
        );
    }
    field(
        json!({"type": "integer", "anyOf": [{"format": "int32"}]}),
        &[r#".anyOf[0].format: Invalid value: "int32": is a format that kube-apiserver ignores"#],
    );
}

#[test]
fn lists_tell_their_items_apart() {
    let list = |list_type: &str, items: Value| json!({"type": "array", "x-kubernetes-list-type": list_type, "items": items});
    field(
        list("other", json!({"type": "string"})),
        &[r#".x-kubernetes-list-type: Invalid value: "other": must be atomic, set or map"#],
    );
    field(
        json!({"type": "object", "x-kubernetes-list-type": "atomic"}),
        &[
            r#".type: Invalid value: "object": must be array if x-kubernetes-list-type is specified"#,
        ],
    );
    field(
        json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
        &[
            r#".type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
        ],
    );
    field(
        list("set", json!({"type": "string", "nullable": true})),
        &[
            ".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set or map",
        ],
    );
    field(
        list("set", json!({"type": "object"})),
        &[
            ".items.x-kubernetes-map-type: Required value: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    );
    field(
        list("set", list("set", json!({"type": "string"}))),
        &[
            ".items.x-kubernetes-list-type: Required value: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    );
    field(
        json!({"type": "array", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "string"}}),
        &[
            ".x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    );
}

#[test]
fn list_maps_have_keys_that_are_always_there() {
    let map = |keys: &[&str], items: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items});
    let item =
        |field: Value| json!({"type": "object", "required": ["a"], "properties": {"a": field}});
    field(
        map(&[], item(json!({"type": "string"}))),
        &[
            ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    field(
        map(&["b"], item(json!({"type": "string"}))),
        &[
            r#".x-kubernetes-list-map-keys[0]: Invalid value: "b": entries must all be names of item properties"#,
        ],
    );
    field(
        map(&["a"], item(json!({"type": "object"}))),
        &[
            r#".items.properties[a].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map"#,
        ],
    );
    field(
        map(&["a"], item(json!({"type": "string", "nullable": true}))),
        &[
            ".items.properties[a].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        ],
    );
    field(
        map(
            &["a"],
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
        &[
            ".items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    field(
        map(&["a"], json!({"type": "string"})),
        &[
            r#".items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
            r#".x-kubernetes-list-map-keys[0]: Invalid value: "a": entries must all be names of item properties"#,
        ],
    );
}

#[test]
fn rules_in_cel_are_those_that_kubernetes_takes() {
    let rules = |rules: Value| json!({"type": "string", "x-kubernetes-validations": rules});
    field(
        rules(json!([
            {"rule": "self == oldSelf", "message": "is immutable", "reason": "FieldValueInvalid"},
            {"rule": "size(self) > 0"},
        ])),
        &[],
    );
    field(
        rules(json!([{"rule": " ", "message": " "}])),
        &[
            ".x-kubernetes-validations[0].rule: Required value: rule is not specified",
            ".x-kubernetes-validations[0].message: Invalid value: \" \": message must be non-empty if specified",
        ],
    );
    field(
        rules(
            json!([{"rule": "true", "message": "a\nb", "reason": "Other", "path": ".a"}, {"rule": "true\n&& true"}]),
        ),
        &[
            ".x-kubernetes-validations[0].message: Invalid value: \"a\\nb\": message must not contain line breaks",
            ".x-kubernetes-validations[0].reason: Invalid value: \"Other\": must be one of FieldValueDuplicate, FieldValueForbidden, FieldValueInvalid, FieldValueRequired",
            ".x-kubernetes-validations[0].path: Forbidden: is no field of a rule",
            ".x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks",
        ],
    );
    field(
        json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "true"}]}),
        &[".x-kubernetes-validations: Forbidden: must not be used where no type is specified"],
    );
    let list = |list_type: &str, rule: &str| {
        json!({"type": "array", "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
                "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}}},
                "x-kubernetes-validations": [{"rule": rule}]}})
    };
    let at = ".items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[p]";
    let below = ".items.properties[list].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[p]";
    field(
        list("map", "self == oldSelf"),
        &[&format!("{below}.items.properties[list]")],
    );
    field(list("atomic", "self == oldSelf"), &[at, below]);
    field(list("atomic", "self != 'oldSelf' && self.oldSelfish"), &[]);
}
