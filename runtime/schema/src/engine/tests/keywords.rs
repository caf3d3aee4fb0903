//! Every keyword for values, with its error text.

use serde_json::json;

use super::*;
use crate::engine::DefaultsTooLarge;

/// Checks documents with a property `p` of this schema, and their errors.
fn check(property: &Value, cases: &[(Value, &[&str])]) {
    check_object(
        &json!({"properties": {"p": property}}),
        &cases
            .iter()
            .map(|(value, expected)| (json!({"p": value}), *expected))
            .collect::<Vec<_>>(),
    );
}

fn check_object(object: &Value, cases: &[(Value, &[&str])]) {
    let mut object = object.clone();
    object["type"] = json!("object");
    let schema = schema(&object);
    for (document, expected) in cases {
        assert_eq!(
            errors(&schema, document),
            *expected,
            "{document} against {object}"
        );
    }
}

const OK: &[&str] = &[];

#[test]
fn defaults_are_bounded_while_they_are_put_in() {
    let long = "x".repeat(1000);
    let schema = schema(
        &json!({"type": "array", "items": {"type": "object", "properties": {
        "a": {"type": "string", "x-apiloom-default": long}}}}),
    );
    let document = Value::from(vec![json!({}); 100]);
    let put = |max_bytes| {
        let mut document = document.clone();
        let result = schema.default_within(&mut document, max_bytes);
        let put = document.as_array().unwrap().iter();
        (result, put.filter(|item| item.get("a").is_some()).count())
    };
    assert_eq!(put(200_000), (Ok(true), 100));
    let max_bytes = 10_000;
    assert_eq!(put(max_bytes), (Err(DefaultsTooLarge { max_bytes }), 9));
}

#[test]
fn types() {
    check(
        &json!({"type":"integer"}),
        &[
            (json!(1), OK),
            (
                json!("1"),
                &[r#"p: Invalid value: "string": p in body must be of type integer: "string""#],
            ),
            (
                json!(1.5),
                &[r#"p: Invalid value: "number": p in body must be of type integer: "number""#],
            ),
            (
                json!({}),
                &[r#"p: Invalid value: "object": p in body must be of type integer: "object""#],
            ),
        ],
    );
    check(
        &json!({"type":"number"}),
        &[(json!(1), OK), (json!(1.5), OK)],
    );
    check(
        &json!({"type":"array","items":{"type":"string"}}),
        &[(
            json!(["a", 1]),
            &[r#"p[1]: Invalid value: "integer": p[1] in body must be of type string: "integer""#],
        )],
    );
}

#[test]
fn integer_formats_bound() {
    for (format, min, max) in [
        ("int32", json!(i32::MIN), json!(i32::MAX)),
        ("uint8", json!(0), json!(255)),
        ("int64", json!(i64::MIN), json!(i64::MAX)),
    ] {
        check(
            &json!({"type":"integer","format":format}),
            &[(min, OK), (max, OK)],
        );
    }
    check(
        &json!({"type":"integer","format":"int32"}),
        &[
            (
                json!(2_147_483_648_i64),
                &["p: Invalid value: 2147483648: must be less than or equal to 2147483647"],
            ),
            (
                json!(-2_147_483_649_i64),
                &["p: Invalid value: -2147483649: must be greater than or equal to -2147483648"],
            ),
        ],
    );
    check(
        &json!({"type":"integer","format":"int64"}),
        &[(
            json!(u64::MAX),
            &[
                "p: Invalid value: 18446744073709551615: must be less than or equal to 9223372036854775807",
            ],
        )],
    );
}

#[test]
fn bounds() {
    check(
        &json!({"type":"integer","minimum":1,"maximum":9}),
        &[
            (json!(1), OK),
            (json!(9), OK),
            (
                json!(0),
                &["p: Invalid value: 0: must be greater than or equal to 1"],
            ),
            (
                json!(10),
                &["p: Invalid value: 10: must be less than or equal to 9"],
            ),
        ],
    );
    check(
        &json!({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1.5}),
        &[
            (json!(0.1), OK),
            (json!(0), &["p: Invalid value: 0: must be greater than 0"]),
            (
                json!(1.5),
                &["p: Invalid value: 1.5: must be less than 1.5"],
            ),
        ],
    );
    check(
        &json!({"type":"integer","minimum":1,"exclusiveMinimum":true}),
        &[(json!(1), &["p: Invalid value: 1: must be greater than 1"])],
    );
    check(
        &json!({"type":"integer","multipleOf":5}),
        &[
            (json!(10), OK),
            (json!(7), &["p: Invalid value: 7: must be a multiple of 5"]),
        ],
    );
}

#[test]
fn lengths_count_characters_or_bytes() {
    check(
        &json!({"type":"string","minLength":2,"maxLength":3}),
        &[
            (json!("äöü"), OK),
            (json!("ä"), &["p: Too short: must be at least 2 characters"]),
            (
                json!("äöüß"),
                &["p: Too long: may not be more than 3 characters"],
            ),
        ],
    );
    check(
        &json!({"type":"string","x-apiloom-min-bytes":2,"x-apiloom-max-bytes":3}),
        &[
            (json!("ä"), OK),
            (json!("a"), &["p: Too short: must be at least 2 bytes"]),
            (json!("ää"), &["p: Too long: may not be more than 3 bytes"]),
        ],
    );
}

#[test]
fn patterns_formats_enums_and_refused_values() {
    check(
        &json!({"type":"string","pattern":"^a+$"}),
        &[
            (json!("aa"), OK),
            (
                json!("b"),
                &["p: Invalid value: \"b\": p in body should match '^a+$'"],
            ),
        ],
    );
    check(
        &json!({"type":"string","format":"ip"}),
        &[
            (json!("::1"), OK),
            (
                json!("x"),
                &[
                    "p: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
        ],
    );
    check(
        &json!({"type":"string","enum":["b","a"]}),
        &[
            (json!("a"), OK),
            (
                json!("c"),
                &[r#"p: Unsupported value: "c": supported values: "b", "a""#],
            ),
        ],
    );
    check(
        &json!({"type":"integer","enum":[1,2]}),
        &[
            (json!(2), OK),
            (
                json!(3),
                &[r#"p: Unsupported value: 3: supported values: "1", "2""#],
            ),
        ],
    );
    check(
        &json!({"type":"string","const":"a"}),
        &[
            (json!("a"), OK),
            (
                json!("c"),
                &[r#"p: Unsupported value: "c": supported values: "a""#],
            ),
        ],
    );
    check(
        &json!({"type":"string","x-apiloom-not-equal":"root"}),
        &[
            (json!("a"), OK),
            (
                json!("root"),
                &[r#"p: Invalid value: "root": must not be equal to "root""#],
            ),
        ],
    );
    check(
        &json!({"type":"string","x-apiloom-open-enum":["a"]}),
        &[(json!("a"), OK), (json!("anything"), OK)],
    );
}

#[test]
fn presence() {
    let object = json!({"required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"string"},"x-apiloom-required":true},"c":{"type":"string","x-apiloom-forbidden":true}}});
    check_object(
        &object,
        &[
            (json!({"a":"","b":["x"]}), OK),
            (json!({"b":["x"]}), &["a: Required value"]),
            (
                json!({"a":null,"b":[]}),
                &["a: Required value", "b: Required value"],
            ),
            (
                json!({"a":"x","b":["x"],"c":"y"}),
                &["c: Forbidden: must not be set"],
            ),
            (json!({"a":"x","b":["x"],"c":""}), OK),
        ],
    );
}

#[test]
fn siblings() {
    let object = json!({"x-apiloom-order":["user","password","token"],"properties":{"user":{"type":"string","x-apiloom-requires":["password"]},"password":{"type":"string"},
        "token":{"type":"string","x-apiloom-conflicts":["user"]}}});
    check_object(
        &object,
        &[
            (json!({"password":"x"}), OK),
            (
                json!({"user":"u"}),
                &["password: Required value: must be set when user is set"],
            ),
            (
                json!({"user":"u","password":"x","token":"t"}),
                &["user: Forbidden: may not be set when token is set"],
            ),
        ],
    );
}

// `urlRewrite: {}` counted as absent.
#[test]
fn a_struct_without_fields_is_set_and_an_empty_map_is_not() {
    let object = json!({"properties":{
        "strict":{"type":"object","properties":{"a":{"type":"string"}},"x-apiloom-conflicts":["map"],"x-apiloom-required":true},
        "map":{"type":"object","additionalProperties":{"type":"string"},"x-apiloom-requires":["list"]},
        "list":{"type":"array","items":{"type":"string"}}},
        "x-apiloom-order":["strict","map","list"]});
    check_object(
        &object,
        &[
            (json!({"strict":{}}), OK),
            (json!({}), &["strict: Required value"]),
            (json!({"strict":{},"map":{}}), OK),
            (
                json!({"strict":{},"map":{"a":"b"},"list":["c"]}),
                &["map: Forbidden: may not be set when strict is set"],
            ),
            (
                json!({"map":{"a":"b"}}),
                &[
                    "strict: Required value",
                    "list: Required value: must be set when map is set",
                ],
            ),
        ],
    );
}

#[test]
fn unions() {
    let object = json!({"properties":{"type":{"type":"string"},"http":{"type":"object"},"tcp":{"type":"string"}},
        "x-apiloom-order":["type","http","tcp"],"x-apiloom-union":{"discriminator":"type","members":{"http":"HTTP","tcp":"TCP"},"allowNone":false}});
    check_object(
        &object,
        &[
            (json!({"type":"TCP","tcp":"x"}), OK),
            // A struct without fields is set, an empty string is not.
            (json!({"type":"HTTP","http":{}}), OK),
            (
                json!({"type":"TCP","tcp":"x","http":{}}),
                &["http: Invalid value: \"\": may only be specified when `type` is \"HTTP\""],
            ),
            (
                json!({"type":"TCP","tcp":""}),
                &["tcp: Invalid value: \"\": must be specified when `type` is \"TCP\""],
            ),
            (
                json!({"type":"Other"}),
                &[r#"type: Invalid value: "Other": must be HTTP or TCP"#],
            ),
            (json!({}), &["type: Required value"]),
            (
                json!({"type":"TCP"}),
                &["tcp: Invalid value: \"\": must be specified when `type` is \"TCP\""],
            ),
            (
                json!({"tcp":"x"}),
                &["tcp: Invalid value: \"x\": may only be specified when `type` is \"TCP\""],
            ),
        ],
    );
    // A value of an enum may select no member, as Recreate does among the strategies of a Deployment.
    let strategy = json!({"properties":{"type":{"type":"string","enum":["Recreate","Rolling"]},"rolling":{"type":"string"}},
        "x-apiloom-union":{"discriminator":"type","members":{"rolling":["Rolling"]},"allowNone":false}});
    check_object(
        &strategy,
        &[
            (json!({"type":"Recreate"}), OK),
            (
                json!({"type":"Other"}),
                &[r#"type: Unsupported value: "Other": supported values: "Recreate", "Rolling""#],
            ),
        ],
    );
    let members = |allow_none: bool| {
        json!({"properties":{"b":{"type":"string"},"a":{"type":"string"}},"x-apiloom-order":["b","a"],
            "x-apiloom-union":{"discriminator":null,"members":{"a":"a","b":"b"},"allowNone":allow_none}})
    };
    check_object(
        &members(false),
        &[
            (json!({"a":"x"}), OK),
            (
                json!({}),
                &["<nil>: Invalid value: \"\": must specify one of: `b`, `a`"],
            ),
            (
                json!({"a":"x","b":"y"}),
                &["<nil>: Invalid value: \"{b, a}\": must specify exactly one of: `b`, `a`"],
            ),
        ],
    );
    check_object(
        &members(true),
        &[
            (json!({}), OK),
            (
                json!({"a":"x","b":"y"}),
                &["<nil>: Invalid value: \"{b, a}\": must specify at most one of: `b`, `a`"],
            ),
        ],
    );
}

#[test]
fn lists() {
    check(
        &json!({"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2}),
        &[
            (json!([]), &["p: Too few: 0: must have at least 1 items"]),
            (
                json!(["a", "b", 3]),
                &["p: Too many: 3: must have at most 2 items"],
            ),
        ],
    );
    check(
        &json!({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}),
        &[(json!(["a", "b", "a"]), &[r#"p[2]: Duplicate value: "a""#])],
    );
    check(
        &json!({"type":"array","items":{"type":"string"},"x-apiloom-unique":true}),
        &[(json!(["a", "a"]), &[r#"p[1]: Duplicate value: "a""#])],
    );
    // 1 and 1.0 are the same number.
    for keyword in [
        json!({"x-apiloom-unique": true}),
        json!({"x-kubernetes-list-type": "set"}),
    ] {
        let mut list = json!({"type":"array","items":{"type":"number"}});
        let keyword = keyword.as_object().cloned().unwrap_or_default();
        list.as_object_mut().expect("an object").extend(keyword);
        check(
            &list,
            &[(json!([1, 2.0, 1.0]), &["p[2]: Duplicate value: 1"])],
        );
    }
    check(
        &json!({"type":"array","items":{"type":"string"}}),
        &[(json!(["a", "a"]), OK)],
    );
    let item = json!({"type":"object","properties":{"name":{"type":"string"},"port":{"type":"integer"},"x":{"type":"string"}}});
    check(
        &json!({"type":"array","items":item,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","port"]}),
        &[
            (json!([{"name":"a","port":1},{"name":"a","port":2}]), OK),
            (
                json!([{"name":"a","port":1,"x":"1"},{"name":"a","port":1,"x":"2"}]),
                &[r#"p[1]: Duplicate value: {"name":"a","port":1}"#],
            ),
            (json!([{"name":"a"}]), &["p[0].port: Required value"]),
        ],
    );
}

#[test]
fn maps() {
    check(
        &json!({"type":"object","additionalProperties":{"type":"integer","minimum":1},"propertyNames":{"format":"dns-label"},"minProperties":1,"maxProperties":2}),
        &[
            (json!({"a":1}), OK),
            (json!({}), &["p: Too few: 0: must have at least 1 items"]),
            (
                json!({"a":1,"b":1,"c":1}),
                &["p: Too many: 3: must have at most 2 items"],
            ),
            (
                json!({"a":0}),
                &["p[a]: Invalid value: 0: must be greater than or equal to 1"],
            ),
        ],
    );
}

#[test]
fn errors_come_in_declared_order() {
    let object = json!({"properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"required":["a"],"x-apiloom-order":["c","b","a"]});
    let found = errors(&schema(&merge(&object)), &json!({"b":"x","c":"y"}));
    let fields: Vec<&str> = found.iter().map(|line| &line[..1]).collect();
    assert_eq!(fields, ["c", "b", "a"]);
}

fn merge(object: &Value) -> Value {
    let mut object = object.clone();
    object["type"] = json!("object");
    object
}

#[test]
fn junctors_of_a_crd_judge_what_stands_outside_of_them() {
    let crd = json!({"type":"object","properties":{"kind":{"type":"string"},"size":{"type":"integer"},"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}},
        "oneOf":[{"properties":{"kind":{"enum":["small"]},"size":{"maximum":3}},"required":["kind"]},{"properties":{"kind":{"enum":["big"]}},"required":["kind"]}],
        "not":{"properties":{"size":{"enum":[13]}},"required":["size"]}});
    let schema = Schema::from_json(&crd, &Hooks::default()).expect("structural");
    for (document, expected) in [
        (json!({"kind":"small","size":2}), OK),
        (json!({"kind":"big","size":9,"port":"x"}), OK),
        (
            json!({"kind":"small","size":9}),
            &["size: Invalid value: 9: must be less than or equal to 3"],
        ),
        (
            json!({"kind":"big","size":13}),
            &[
                r#"<nil>: Invalid value: {"kind":"big","size":13}: must not be of the excluded form"#,
            ],
        ),
        (
            json!({"port":true}),
            &[
                r#"port: Invalid value: "boolean": port in body must be of type string or integer: "boolean""#,
            ],
        ),
    ] {
        assert_eq!(errors(&schema, &document), expected, "{document}");
    }
    assert_eq!(schema.to_openapi(&Metadata::Inline)["oneOf"], crd["oneOf"]);
    assert_eq!(schema.to_openapi(&Metadata::Inline)["not"], crd["not"]);
}

#[test]
fn a_branch_of_a_crd_with_a_field_of_its_own_is_not_structural() {
    let crd =
        json!({"type":"object","properties":{},"anyOf":[{"required":["a"]},{"required":["b"]}]});
    let errors = Schema::from_json(&crd, &Hooks::default()).expect_err("not structural");
    assert_eq!(
        errors.0,
        [
            "field `a` stands inside of oneOf or anyOf only",
            "field `b` stands inside of oneOf or anyOf only"
        ]
    );
}

#[test]
fn schemas_that_make_no_sense_are_told_all_at_once() {
    let schema = json!({"type":"object","properties":{
        "a":{"type":"strng"},"b":{"type":"string","pattern":"("},"c":{"type":"array","x-kubernetes-list-type":"map"},"d":{"$ref":"#/$defs/None"},
        "e":{"type":"integer","multipleOf":0},"f":{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},
        "g":{"type":"string","x-apiloom-update":["Never"]},"h":{"allOf":[{"type":"string"},{"type":"integer"}]},"i":{"type":"object","if":{}}}});
    let errors = Schema::build(
        &schema,
        super::super::build::SchemaOrigin::Types,
        &Hooks::default(),
        false,
    )
    .expect_err("not structural");
    assert_eq!(
        errors.0,
        [
            "a: unknown type `strng`",
            "b: pattern `(` is not a regular expression: error parsing regexp: missing closing ): `(`",
            "c: a list of type map needs `x-kubernetes-list-map-keys`",
            "d: reference `#/$defs/None` leads nowhere",
            "e: `multipleOf` must be greater than 0",
            "f: list map key `k` is not a field of its items",
            "g: unknown update rule `Never`",
            "h: no value is both string and integer",
            "i: keyword `if` has no structural form",
        ]
    );
}

#[test]
fn defaults_must_fit_their_own_schema() {
    let schema = json!({"type":"object","properties":{
        "a":{"type":"integer","maximum":3,"x-apiloom-default":4},
        "b":{"type":"object","x-apiloom-default":{},"required":["c"],"properties":{"c":{"type":"string"}}},
        "d":{"type":"array","items":{"type":"object","properties":{"e":{"type":"string","x-apiloom-default":1}}}},
        "f":{"type":"object","x-apiloom-default":{},"required":["g"],"properties":{"g":{"type":"string","x-apiloom-default":"x"}}},
        "h":{"type":"string","x-apiloom-default":null}}});
    let errors = Schema::build(
        &schema,
        super::super::build::SchemaOrigin::Types,
        &Hooks::default(),
        false,
    )
    .expect_err("refused");
    assert_eq!(
        errors.0,
        [
            "h: keyword `x-apiloom-default` has no value",
            "a: the default does not fit: Invalid value: 4: must be less than or equal to 3",
            "b.c: the default does not fit: Required value",
            r#"d[*].e: the default does not fit: Invalid value: "integer":  in body must be of type string: "integer""#,
        ]
    );
}

#[test]
fn an_embedded_resource_of_any_type_is_an_object() {
    let property = json!({"x-kubernetes-embedded-resource": true});
    let schema = schema(&json!({"type": "object", "properties": {"p": property}}));
    let printed = &openapi(&schema)["properties"]["p"];
    assert_eq!(printed["type"], "object");
    assert_eq!(printed["x-kubernetes-preserve-unknown-fields"], true);
    let document = json!({"p": {"kind": "Pod", "apiVersion": "v1", "spec": {"any": [1]}}});
    let mut pruned = document.clone();
    schema.prune(&mut pruned);
    assert_eq!(pruned, document);
    assert_eq!(
        errors(&schema, &json!({"p": "text"})),
        [r#"p: Invalid value: "string": p in body must be of type object: "string""#]
    );
}

#[test]
fn a_branch_names_no_format_of_int_or_string() {
    let schema = schema(
        &json!({"type": "object", "properties": {"p": {"type": "string", "anyOf": [
            {"type": "string", "maxLength": 3}, {"type": "string", "format": "int-or-string"},
        ]}}}),
    );
    assert_eq!(
        openapi(&schema)["properties"]["p"],
        json!({"type": "string"})
    );
}

#[test]
fn a_field_cannot_loosen_what_its_type_says() {
    let of = |own: Value, ty: Value| {
        let mut property = own;
        property["$ref"] = json!("#/$defs/T");
        Schema::build(
            &json!({"type": "object", "properties": {"p": property}, "$defs": {"T": ty}}),
            super::super::build::SchemaOrigin::Types,
            &Hooks::default(),
            false,
        )
    };
    let refused = |own: Value, ty: Value, value: Value| {
        let schema = of(own, ty).unwrap_or_else(|errors| panic!("{errors}"));
        !schema.validate(&json!({"p": value})).is_empty()
    };
    let percent = json!({"type": "integer", "minimum": 0, "maximum": 100});
    assert!(refused(
        json!({"maximum": 200}),
        percent.clone(),
        json!(150)
    ));
    assert!(refused(json!({"maximum": 50}), percent.clone(), json!(70)));
    assert!(refused(json!({"minimum": -5}), percent.clone(), json!(-1)));
    assert!(!refused(json!({"minimum": -5}), percent, json!(0)));
    let name = json!({"type": "string", "minLength": 2, "maxLength": 4});
    assert!(refused(json!({"minLength": 1}), name.clone(), json!("a")));
    assert!(refused(json!({"maxLength": 9}), name, json!("abcde")));
    for (own, ty, expected) in [
        (
            json!({"pattern": "^a"}),
            json!({"type": "string", "pattern": "b$"}),
            "p: two different patterns for one value",
        ),
        (
            json!({"format": "ip"}),
            json!({"type": "string", "format": "cidr"}),
            "p: two different formats for one value",
        ),
        (
            json!({"enum": ["a"]}),
            json!({"type": "string", "enum": ["b"]}),
            "p: the enums have no value in common",
        ),
    ] {
        assert_eq!(of(own, ty).expect_err("both cannot hold").0, [expected]);
    }
}

#[test]
fn a_rule_that_no_value_could_break_is_refused() {
    for (property, expected) in [
        (
            json!({"type": "string", "maximum": 5}),
            "p: maximum means nothing for a value of type string",
        ),
        (
            json!({"type": "string", "maxProperties": 5}),
            "p: maxProperties means nothing for a value of type string",
        ),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-map-type": "granular"}),
            "p: a map type means nothing for a value of type array",
        ),
        (
            json!({"type": "object", "x-kubernetes-list-type": "set"}),
            "p: a list type means nothing for a value of type object",
        ),
        (
            json!({"type": "string", "x-apiloom-update": ["Monotonic"]}),
            "p: a monotonic value means nothing for a value of type string",
        ),
        (
            json!({"type": "integer", "x-kubernetes-preserve-unknown-fields": true}),
            "p: x-kubernetes-preserve-unknown-fields means nothing for a value of type integer",
        ),
        (
            json!({"type": "boolean", "x-kubernetes-int-or-string": true}),
            "p: a value of type boolean is not an integer or a string; use IntOrString",
        ),
        (
            json!({"type": "object", "properties": {"t": {"type": "integer"}, "a": {"type": "string"}},
                "x-apiloom-union": {"discriminator": "t", "members": {"a": "A"}, "allowNone": true}}),
            "p: the tag `t` of the union is not a string",
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let built = Schema::build(
            &schema,
            super::super::build::SchemaOrigin::Types,
            &Hooks::default(),
            false,
        );
        assert_eq!(built.expect_err("a rule without meaning").0, [expected]);
    }
    // Where several types are allowed, a rule for one of them applies to its values.
    schema(
        &json!({"type": "object", "properties": {"p": {"maximum": 5}, "q": {"type": ["string", "integer"], "maximum": 5}}}),
    );
}

#[test]
fn embedded_resources_say_what_they_are() {
    check(
        &json!({"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}),
        &[
            (json!({"apiVersion":"v1","kind":"Pod"}), OK),
            (
                json!({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}),
                OK,
            ),
            (
                json!({}),
                &["p.apiVersion: Required value", "p.kind: Required value"],
            ),
            (
                json!({"apiVersion":"","kind":""}),
                &[
                    "p.apiVersion: Invalid value: \"\": must not be empty",
                    "p.kind: Invalid value: \"\": must not be empty",
                ],
            ),
            (
                json!({"apiVersion":"a/b/c","kind":"Pod"}),
                &["p.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"],
            ),
            (
                json!({"apiVersion":"v1","kind":"a.b"}),
                &[
                    "p.kind: Invalid value: \"a.b\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                ],
            ),
        ],
    );
}
