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
        &[
            r#".type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            ".type: Forbidden: type cannot be set to null, use nullable as an alternative",
        ],
    );
    field(
        json!({"type": "string", "x-kubernetes-int-or-string": true}),
        &[r#".type: Invalid value: "string": must be empty if x-kubernetes-int-or-string is true"#],
    );
    field(
        json!({"type": "string", "x-kubernetes-preserve-unknown-fields": true}),
        &[
            r#".type: Invalid value: "string": must be object or array if x-kubernetes-preserve-unknown-fields is true"#,
        ],
    );
    // A list passes it on to its items.
    field(
        json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object"}}),
        &[],
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
        &[".items: Forbidden: items must be a schema object and not an array"],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[
            ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
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
            json!(true),
            "must be undefined to be structural",
        ),
        ("nullable", json!(true), "must be false to be structural"),
        (
            "x-kubernetes-int-or-string",
            json!(true),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-preserve-unknown-fields",
            json!(true),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-validations",
            json!([{"rule": "true"}]),
            "must be empty to be structural",
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
            ".properties[a]: Required value: because it is defined in properties[p].anyOf[0].properties[a]",
        ],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"items": {"maxLength": 3}}}),
        &[".items: Required value: because it is defined in properties[p].not.items"],
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
        json!({"type": "object", "description": "The metadata."}),
    ] {
        check(
            &json!({"type": "object", "properties": {"metadata": metadata}}),
            &[&format!("properties[metadata]: {detail}")],
        );
        field(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}}),
            &[],
        );
    }
    field(
        json!({"type": "object", "properties": {"metadata": {"type": "object"}}, "anyOf": [{"properties": {"metadata": {"minProperties": 1}}}]}),
        &[".anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"],
    );
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
            ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            r#".type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
        ],
    );
}

#[test]
fn some_keywords_are_not_supported() {
    for (name, value) in [
        ("$ref", json!("#/definitions/a")),
        ("additionalItems", json!(true)),
        ("definitions", json!({"a": {"type": "object"}})),
        ("dependencies", json!({})),
        ("id", json!("a")),
        ("patternProperties", json!({"a": {"type": "object"}})),
    ] {
        let detail = format!("{name}: Forbidden: {name} is not supported");
        field(
            json!({"type": "object", name: value}),
            &[&format!(".{detail}")],
        );
        field(
            json!({"type": "object", "not": {name: value}}),
            &[&format!(".not.{detail}")],
        );
    }
    // These are dropped.
    for name in [
        "$defs",
        "const",
        "deprecated",
        "prefixItems",
        "propertyNames",
    ] {
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
        &[
            r#".x-kubernetes-list-type: Unsupported value: "other": supported values: "atomic", "set", "map""#,
        ],
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
        &[".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
    );
    field(
        list("set", json!({"type": "object"})),
        &[
            ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    );
    field(
        list("set", list("set", json!({"type": "string"}))),
        &[
            ".items.x-kubernetes-list-type: Invalid value: \"set\": must be atomic as item of a list with x-kubernetes-list-type=set",
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
            r#".x-kubernetes-list-map-keys: Invalid value: ["b"]: entries must all be names of item properties"#,
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
        &[".x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    );
    field(
        rules(
            json!([{"rule": "true", "message": "a\nb", "reason": "Other", "path": ".a"}, {"rule": "true\n&& true"}]),
        ),
        &[
            ".x-kubernetes-validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
            ".x-kubernetes-validations[0].reason: Unsupported value: \"Other\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
            ".x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks",
            ".x-kubernetes-validations[0].path: Forbidden: is no field of a rule",
        ],
    );
    field(
        json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "true"}]}),
        &[".x-kubernetes-validations: Forbidden: must not be used where no type is specified"],
    );
}

#[test]
fn a_root_beside_status_has_few_keywords() {
    let lines = |schema: Value| {
        let found = refusals(&schema, &FieldPath::new("s"), true);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(json!({"type": "object", "description": "d", "required": ["spec"]})),
        Vec::<String>::new()
    );
    assert_eq!(
        lines(json!({"type": "object", "minProperties": 1})),
        [
            "s: Invalid value: {\"minProperties\":1,\"type\":\"object\"}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"
        ]
    );
    assert_eq!(
        lines(json!({"type": "object", "nullable": true}))[1..],
        ["s.nullable: Forbidden: nullable cannot be true at the root"]
    );
}

#[test]
fn defaults_fit_their_schemas() {
    let object = |default: Value| json!({"type": "object", "default": default, "required": ["a"], "properties": {"a": {"type": "integer"}}});
    field(object(json!({"a": 1})), &[]);
    field(
        object(json!({"a": 1, "b": 2})),
        &[r#".default: Invalid value: {"a":1,"b":2}: must not have unknown fields"#],
    );
    field(object(json!({})), &[".default.a: Required value"]);
    field(
        object(json!({"a": "x"})),
        &[r#".default.a: Invalid value: "string": a in body must be of type integer: "string""#],
    );
    field(
        json!({"type": "string", "default": "b", "enum": ["a"]}),
        &[r#".default: Unsupported value: "b": supported values: "a""#],
    );
    // Places in a list and in a map, as kube-openapi joins them to the place of the default.
    field(
        json!({"type": "array", "default": [1, "a"], "items": {"type": "integer"}}),
        &[
            r#".default.[1]: Invalid value: "string": [1] in body must be of type integer: "string""#,
        ],
    );
    field(
        json!({"type": "object", "default": {"x": "a"}, "additionalProperties": {"type": "integer"}}),
        &[r#".default.x: Invalid value: "string": .x in body must be of type integer: "string""#],
    );
    field(
        json!({"type": "array", "items": {"type": "string", "default": 1}}),
        &[
            r#".items.default: Invalid value: "integer":  in body must be of type string: "integer""#,
        ],
    );
    check(
        &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}}}}),
        &[
            "properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
        ],
    );
    let embedded = |metadata: Value| json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}});
    field(
        embedded(
            json!({"type": "object", "properties": {"labels": {"type": "object", "default": {"a": "b"}, "additionalProperties": {"type": "string"}}}}),
        ),
        &[],
    );
    field(
        embedded(
            json!({"type": "object", "properties": {"labels": {"type": "object", "default": {"a": 1}, "additionalProperties": {"type": "integer"}}}}),
        ),
        &[
            r#".properties[metadata].properties[labels].default: Invalid value: {"a":1}: must result in valid metadata: metadata.labels[a]: Invalid value: "integer": labels[a] in body must be of type string: "integer""#,
        ],
    );
    field(
        embedded(
            json!({"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string", "default": "a"}}}}),
        ),
        &[
            ".properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata",
        ],
    );
}

#[test]
fn other_keywords_agree_with_each_other() {
    field(
        json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
        &[
            ".x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
        ],
    );
    field(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
        &[".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    );
    field(
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        &[
            ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    );
    field(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true, "additionalProperties": true}),
        &[
            ".additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set",
        ],
    );
    field(
        json!({"type": "object", "x-kubernetes-map-type": "other"}),
        &[
            r#".x-kubernetes-map-type: Unsupported value: "other": supported values: "atomic", "granular""#,
        ],
    );
    field(
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["a"]}),
        &[
            r#".x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty"#,
        ],
    );
    let twice =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    field(
        json!({"type": "array", "items": twice, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "a"]}),
        &[
            r#".x-kubernetes-list-map-keys: Invalid value: ["a","a"]: must not contain duplicate entries"#,
        ],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}, "x-kubernetes-map-type": "atomic"}),
        &[],
    );
    field(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [
            {"rule": "true", "fieldPath": ".a"}, {"rule": "true", "fieldPath": ".b", "optionalOldSelf": true}]}),
        &[r#".x-kubernetes-validations[1].fieldPath: Invalid value: ".b": must be a valid path"#],
    );
    let found = refusals(
        &json!({"type": "object", "properties": {"p": {"type": "string", "pattern": "("}}}),
        &FieldPath::root(),
        false,
    );
    assert_eq!(
        found[0].body,
        "Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"
    );
}

#[test]
fn paths_lead_to_fields() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "l": {"type": "array", "items": {"type": "string"}}}}}});
    let found = |path: &str, allows_keys: bool| match field_path_type(&schema, path, allows_keys) {
        Ok((path, json_type)) => format!("{path} {json_type}"),
        Err(error) => error.to_string(),
    };
    for (path, allows_keys, expected) in [
        (".spec.a", false, ".spec.a string"),
        (".spec.m.k", false, ".spec.m.k integer"),
        (".spec.m['a.b']", true, ".spec.m.a.b integer"),
        (r".spec.m['a\'b']", true, ".spec.m.a'b integer"),
        (".spec['a']", false, "array notation is not allowed"),
        (".spec['a'", true, "unexpected end of JSON path"),
        (".spec[a]", true, "expected single quoted string but got a"),
        (".spec[']", true, "expected single quoted string but got ']"),
        ("spec.a", false, "expected [ or . but got: spec"),
        (".", false, "unexpected end of JSON path"),
        (".spec.b", false, "does not refer to a valid field"),
        (".spec.a.b", false, "does not refer to a valid field"),
        (".spec.l.b", false, "does not refer to a valid field"),
    ] {
        assert_eq!(found(path, allows_keys), expected, "{path}");
    }
}

#[test]
fn unknown_formats_are_listed_once() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "format": "quantity"}, "b": {"type": "string", "format": "quantity"},
        "c": {"type": "integer", "format": "uint8"}, "d": {"type": "string", "format": "date-time"},
        "e": {"x-kubernetes-int-or-string": true, "format": "uri"}}});
    assert_eq!(unknown_formats(&schema), ["quantity", "uint8"]);
}
