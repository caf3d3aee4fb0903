//! What single features become, and what is refused. `tests/tests/import.rs` compiles a package with all of them.

mod hostile;
mod openapi;
mod roundtrip;
mod sharing;

use serde_json::{Value, json};

use super::{ImportedKind, compare, definition_differences, imported_kind};

/// A definition with one version whose spec has these properties.
fn definition(properties: Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": properties } } });
    of_schema(schema)
}

fn of_schema(schema: Value) -> Value {
    json!({ "metadata": { "name": "things.example.com" }, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": { "plural": "things", "kind": "Thing" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
    }})
}

#[track_caller]
fn import(definition: &Value) -> ImportedKind {
    imported_kind(definition).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that the code has these lines, in this order, without losses.
#[track_caller]
fn check(properties: Value, lines: &[&str]) {
    let imported = import(&definition(properties));
    let code = &imported.modules[0].1;
    let mut rest = code.lines().map(str::trim);
    for line in lines {
        assert!(rest.any(|found| found == *line), "{line} in\n{code}");
    }
    assert_eq!(imported.lost, [""; 0]);
}

#[track_caller]
fn loses(definition: &Value, lost: &[&str]) {
    assert_eq!(import(definition).lost, lost);
}

#[test]
fn presence_is_in_the_type_or_said() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object",
        "required": ["a", "b", "c"], "properties": {
            "a": { "type": "string" },
            "b": { "type": "array", "items": { "type": "string" } },
            "c": { "type": "string", "nullable": true },
            "d": { "type": "string" },
            "e": { "type": "object", "additionalProperties": { "type": "boolean" } },
            "f": { "type": "string", "nullable": true },
        } } } });
    let imported = import(&of_schema(schema));
    let fields = "    pub a: String,\n    #[api(present)]\n    pub b: Vec<String>,\n    #[api(nullable, present)]\n    pub c: Option<String>,\n    \
                  pub d: Option<String>,\n    pub e: BTreeMap<String, bool>,\n    #[api(nullable)]\n    pub f: Option<String>,\n";
    assert!(
        imported.modules[0].1.contains(fields),
        "{}",
        imported.modules[0].1
    );
    assert_eq!(imported.lost, [""; 0]);
}

// Kubernetes applies defaults before it looks for what is required, but documents say both.
#[test]
fn what_is_required_is_said_beside_a_default() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object",
        "required": ["a", "b"], "properties": {
            "a": { "type": "integer", "default": 1 },
            "b": { "type": "array", "items": { "type": "string" }, "default": ["x"] },
            "c": { "type": "integer", "default": 1 },
        } } } });
    let imported = import(&of_schema(schema));
    let code = &imported.modules[0].1;
    let lines: Vec<_> = code.lines().map(str::trim).collect();
    let before = |field: &str| {
        lines[lines
            .iter()
            .position(|line| line.starts_with(field))
            .unwrap()
            - 1]
    };
    for field in ["pub a:", "pub b:"] {
        assert!(before(field).contains("present"), "{field} in\n{code}");
    }
    assert!(!before("pub c:").contains("present"), "{code}");
    assert_eq!(imported.lost, [""; 0]);
}

#[test]
fn rules_in_cel_have_a_key() {
    let rule = |rule: Value| json!({ "type": "integer", "x-kubernetes-validations": [rule] });
    check(
        json!({
            "plain": rule(json!({ "rule": "self > 1" })),
            "full": rule(json!({ "rule": "self != \"\\n\"", "message": "no \"line\"", "messageExpression": "'x'",
                "reason": "FieldValueForbidden", "optionalOldSelf": true })),
            "other": rule(json!({ "rule": "self > 1", "optionalOldSelf": false })),
            "list": { "type": "array", "maxItems": 3, "items": rule(json!({ "rule": "self > 2" })) },
            "range": { "type": "object", "properties": { "minSize": { "type": "integer" }, "a-b": { "type": "integer" } },
                "x-kubernetes-validations": [
                    { "rule": "self.minSize > 1", "fieldPath": ".minSize" },
                    { "rule": "true", "fieldPath": "['a-b']" },
                    { "rule": "self.minSize > 2", "fieldPath": ".minSize.below" }] },
        }),
        &[
            r##"#[api(cel(r#"self != "\n""#, message = r#"no "line""#, message_expression = "'x'", reason = forbidden, optional_old))]"##,
            r#"#[api(items = ..=3, each(cel("self > 2")))]"#,
            r##"#[api(schema = r#"{"x-kubernetes-validations":[{"optionalOldSelf":false,"rule":"self > 1"}]}"#)]"##,
            r#"#[api(cel("self > 1"))]"#,
            "pub plain: Option<i64>,",
            r#"cel("self.minSize > 1", path = min_size),"#,
        ],
    );
}

#[test]
fn equal_schemas_of_one_name_are_one_type() {
    let probe = json!({ "type": "object", "properties": { "path": { "type": "string", "description": "A path." } } });
    let mut other = probe.clone();
    other["properties"]["path"]["description"] = "Another text.".into();
    check(
        json!({ "first": { "type": "object", "properties": { "probe": probe } },
            "second": { "type": "object", "properties": { "probe": other } } }),
        &[
            "pub probe: Option<Probe>,",
            "pub probe: Option<Probe>,",
            "pub struct Probe {",
            "/// A path.",
        ],
    );
}

#[test]
fn different_schemas_of_one_name_get_longer_names() {
    let number = |ty: &str| json!({ "type": "object", "properties": { "limit": { "type": "object", "properties": { "value": { "type": ty } } } } });
    check(
        json!({ "cpu": number("integer"), "memory": number("string") }),
        &[
            "pub limit: Option<CpuLimit>,",
            "pub limit: Option<MemoryLimit>,",
            "pub struct CpuLimit {",
            "pub struct MemoryLimit {",
        ],
    );
}

#[test]
fn names_of_the_prelude_are_not_taken() {
    let part = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    check(
        json!({ "duration": part, "option": part, "self": part }),
        &[
            "pub duration: Option<SpecDuration>,",
            "pub option: Option<SpecOption>,",
            "pub self_: Option<SpecSelf>,",
        ],
    );
}

#[test]
fn unions_are_those_of_structs_alone() {
    let member = json!({ "type": "object", "properties": { "url": { "type": "string" } } });
    let union = |member: &Value| {
        json!({ "source": { "type": "object", "oneOf": [{ "required": ["git"] }, { "required": ["http"] }],
        "properties": { "git": member, "http": member } } })
    };
    check(
        union(&member),
        &[
            "#[apiloom::api(union())]",
            "#[api(member = \"git\")]",
            "pub git: Option<Git>,",
        ],
    );
    // An empty text counts as absent in a union, and as present in a schema.
    check(
        union(&json!({ "type": "string" })),
        &[
            r##"#[apiloom::api(schema = r#"{"oneOf":[{"required":["git"]},{"required":["http"]}]}"#)]"##,
        ],
    );
    // Below a list, the rule that it prints would cost too much.
    check(
        json!({ "list": { "type": "array", "items": union(&member)["source"] } }),
        &["pub struct List {"],
    );
}

#[test]
fn what_no_type_has_is_a_value_with_its_schema() {
    check(
        json!({ "dotted": { "type": "object", "properties": { "a.b": { "type": "string" } } } }),
        &[
            r##"#[api(schema = r#"{"properties":{"a.b":{"type":"string"}},"type":"object"}"#)]"##,
            "pub dotted: Option<Value>,",
        ],
    );
    check(
        json!({ "port": { "type": "integer", "format": "int32", "maximum": 5_000_000_000_i64 } }),
        &[
            r##"#[api(schema = r#"{"format":"int32","maximum":5000000000,"type":"integer"}"#)]"##,
            "pub port: Option<Value>,",
        ],
    );
}

#[test]
fn texts_in_attributes_are_literals() {
    check(
        json!({ "a": { "type": "string", "pattern": "\"#\\d", "default": "\"#7\\\u{1F600}\n" } }),
        &[r###"#[api(default = "\"#7\\😀\n", pattern = r##""#\d"##)]"###],
    );
}

#[test]
fn what_cannot_be_said_is_reported_with_its_path() {
    loses(
        &definition(
            json!({ "a": { "type": "integer", "format": "uint8" }, "b": { "type": "string", "format": "odd" } }),
        ),
        &["v1: spec.a: format \"uint8\" is left out"],
    );
    let mut columns = definition(json!({ "a": { "type": "string" } }));
    columns["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        { "name": "A", "type": "string", "jsonPath": ".spec.a" },
        { "name": "A", "type": "string", "jsonPath": ".spec.a" },
        { "name": "B", "type": "string", "jsonPath": ".spec.b" },
        { "name": "C", "type": "string", "jsonPath": "..a" },
    ]);
    columns["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".spec" }]);
    columns["spec"]["versions"][0]["subresources"] =
        json!({ "scale": { "specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b" } });
    loses(
        &columns,
        &[
            "v1: column \"A\" at .spec.a: there is another column of this name",
            "v1: column \"B\" at .spec.b: the schema has nothing there",
            "v1: column \"C\" at ..a: `..a` is not the path of a column: a name is missing",
            "v1: selectable field .spec: the types have no such text, integer or boolean",
            "v1: the subresource scale: its paths lead to no integers, or its selector to no text",
        ],
    );
}

#[test]
fn columns_at_escaped_keys_are_kept() {
    let mut columns = definition(
        json!({ "a": { "type": "object", "additionalProperties": { "type": "string" } } }),
    );
    columns["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        { "name": "A", "type": "string", "jsonPath": r".metadata.labels.example\.com/x" },
        { "name": "B", "type": "string", "jsonPath": r".spec.a['example\.com/x']" },
        { "name": "C", "type": "string", "jsonPath": r".spec.a['a.b/c']" },
        { "name": "D", "type": "string, wide", "jsonPath": ".spec.a.b" },
    ]);
    let imported = import(&columns);
    assert_eq!(
        imported.lost,
        [
            "v1: column \"D\" at .spec.a.b: the type \"string, wide\" is none of boolean, date, integer, number, string"
        ]
    );
    for path in [
        r#"json_path = r".metadata.labels.example\.com/x""#,
        r#"json_path = r".spec.a['example\.com/x']""#,
        r#"json_path = ".spec.a['a.b/c']""#,
    ] {
        assert!(
            imported.modules[0].1.contains(path),
            "{path} in\n{}",
            imported.modules[0].1
        );
    }
}

#[test]
fn names_that_no_package_can_have_are_refused() {
    for version in [
        "lib",
        "main",
        "bin",
        "generated",
        "core",
        "std",
        "apiloom",
        "fn",
        "gen",
    ] {
        let mut broken = definition(json!({}));
        broken["spec"]["versions"][0]["name"] = version.into();
        let told = format!(
            "things.example.com: version {version:?} cannot be the name of a module\n  help: import a copy with another version, such as v1"
        );
        assert_eq!(imported_kind(&broken), Err(told));
    }
    for place in [
        "/group",
        "/names/plural",
        "/names/kind",
        "/names/singular",
        "/names/listKind",
        "/names/shortNames/0",
        "/versions/0/name",
    ] {
        let mut broken = definition(json!({}));
        let spec = &mut broken["spec"];
        spec["names"]["shortNames"] = json!(["t"]);
        spec["names"]["singular"] = "thing".into();
        spec["names"]["listKind"] = "ThingList".into();
        *spec.pointer_mut(place).expect(place) = "a\n}".into();
        let error = imported_kind(&broken).expect_err(place);
        assert!(
            error.contains("\"a\\n}\" is no name in Kubernetes: "),
            "{place}: {error}"
        );
    }
}

#[test]
fn kinds_with_names_of_rust_get_others() {
    for kind in [
        "Clone", "Send", "Vec", "Option", "String", "Self", "Box", "Iterator", "Result",
    ] {
        let mut named =
            definition(json!({ "names": { "type": "array", "items": { "type": "string" } } }));
        named["spec"]["names"]["kind"] = kind.into();
        let code = import(&named).modules.remove(0).1;
        let root = format!("pub struct {kind}Type {{");
        assert!(
            code.contains(&root) && code.contains(&format!("kind = {kind:?}")),
            "{code}"
        );
    }
}

#[test]
fn schemas_that_kubernetes_refuses_are_reported() {
    let error =
        imported_kind(&definition(json!({ "a": { "type": "strng" } }))).expect_err("no type");
    assert_eq!(error, "things.example.com v1: spec.a: unknown type `strng`");
    let error = imported_kind(&definition(
        json!({ "a": { "type": "string", "pattern": "(" } }),
    ))
    .expect_err("no pattern");
    assert!(
        error.starts_with("things.example.com v1: spec.a: pattern `(` is not a regular expression"),
        "{error}"
    );
    let no_items = imported_kind(&definition(json!({ "a": { "type": "array" } })))
        .expect("a value")
        .lost;
    assert_eq!(
        no_items,
        ["v1: spec.a: items {\"x-kubernetes-preserve-unknown-fields\":true} is added"]
    );
}

#[test]
fn definitions_that_are_none_are_refused() {
    let check = |change: fn(&mut Value), told: &str| {
        let mut broken = definition(json!({}));
        change(&mut broken["spec"]);
        assert_eq!(imported_kind(&broken).expect_err("broken"), told);
    };
    check(
        |spec| spec["versions"] = json!([]),
        "spec.versions has no version",
    );
    check(
        |spec| spec["names"] = json!({}),
        "spec.names.kind is missing",
    );
    check(
        |spec| spec["scope"] = json!("Global"),
        "spec.scope is \"Global\", which is neither \"Namespaced\" nor \"Cluster\"",
    );
    check(
        |spec| spec["versions"][0]["schema"] = json!(null),
        "spec.versions[0].schema.openAPIV3Schema is missing",
    );
    check(
        |spec| spec["versions"] = json!([spec["versions"][0], spec["versions"][0]]),
        "version \"v1\" is there twice",
    );
}

#[test]
fn order_and_documentation_do_not_count() {
    let a = definition(
        json!({ "a": { "type": "string", "enum": ["x", "y"], "description": "A." }, "b": { "type": "integer", "format": "int64" } }),
    );
    let b = definition(
        json!({ "b": { "type": "integer", "nullable": false }, "a": { "enum": ["y", "x"], "minLength": 0, "type": "string" } }),
    );
    assert_eq!(definition_differences(&a, &b), Ok(Vec::new()));
    let c =
        definition(json!({ "a": { "type": "string", "enum": ["x"] }, "c": { "type": "integer" } }));
    assert_eq!(
        definition_differences(&a, &c),
        Ok(vec![
            "v1: spec.a: enum [\"x\",\"y\"] became [\"x\"]".to_owned(),
            "v1: spec.b: the field is left out".to_owned(),
            "v1: spec.c: the field is added".to_owned(),
        ])
    );
}

#[test]
fn a_part_with_a_shorter_list_of_values_leaves_those() {
    let both = definition(
        json!({ "a": { "type": "string", "enum": ["x", "y", "z"], "allOf": [{ "enum": ["z", "x"] }] } }),
    );
    let one = definition(json!({ "a": { "type": "string", "enum": ["x", "z"] } }));
    assert_eq!(definition_differences(&both, &one), Ok(Vec::new()));
    assert_eq!(import(&both).lost, [""; 0]);
    let none = definition(
        json!({ "a": { "type": "string", "enum": ["x"], "allOf": [{ "enum": ["z"] }] } }),
    );
    let one = definition(json!({ "a": { "type": "string", "enum": ["x"] } }));
    let differences = definition_differences(&none, &one).unwrap_or_default();
    assert_eq!(
        differences,
        ["v1: spec.a: allOf [{\"enum\":[\"z\"]}] is left out"]
    );
}

#[test]
fn a_choice_of_one_may_say_of_a_field_what_the_field_says() {
    let with = |values: &[&str], part: Value| {
        let fields =
            json!({ "mode": { "type": "string", "enum": values }, "to": { "type": "object" } });
        definition(json!({ "a": { "type": "object", "properties": fields, "oneOf": [part] } }))
    };
    let of_mode = |values: Value| json!({ "required": ["to"], "properties": { "mode": values } });
    let same = with(&["x", "y"], of_mode(json!({ "enum": ["x", "y"] })));
    assert_eq!(import(&same).lost, [""; 0]);
    let fewer = with(&["x", "y"], of_mode(json!({ "enum": ["x"] })));
    let one = with(&["x"], json!({ "required": ["to"] }));
    assert_eq!(definition_differences(&fewer, &one), Ok(Vec::new()));
    let other = with(&["x", "y"], of_mode(json!({ "enum": ["z"] })));
    let lost = definition_differences(&other, &one).unwrap_or_default();
    assert!(lost.iter().any(|line| line.contains("allOf [")), "{lost:?}");
}

#[test]
fn a_required_field_may_be_one_that_no_schema_has() {
    let open = json!({ "x-kubernetes-preserve-unknown-fields": true, "required": ["to"] });
    let schema = "#[api(schema = r#\"{\"required\":[\"to\"]}\"#)]";
    check(json!({ "a": open }), &[schema, "pub a: Option<Value>,"]);
}

#[test]
fn an_int_or_string_with_a_type_is_of_that_type() {
    check(
        json!({ "a": { "type": "integer", "x-kubernetes-int-or-string": true } }),
        &["pub a: Option<i64>,"],
    );
}

#[test]
fn an_int_or_string_keeps_several_patterns() {
    let patterns =
        json!([{ "pattern": compare::QUANTITY }, { "pattern": "^[1-9][0-9]*(Ki|Mi)?$" }]);
    check(
        json!({ "a": { "x-kubernetes-int-or-string": true, "allOf": patterns } }),
        &["pub a: Option<IntOrString>,"],
    );
}

#[test]
fn a_union_is_a_choice_of_required_fields() {
    let fields = json!({ "a": { "type": "object", "properties": { "x": { "type": "string" } } }, "b": { "type": "object", "properties": { "x": { "type": "string" } } } });
    let with = |name: &str, value: Value| {
        let mut object = json!({ "type": "object", "properties": fields });
        object[name] = value;
        definition(json!({ "s": object }))
    };
    let one_of = with(
        "oneOf",
        json!([{ "required": ["b"] }, { "required": ["a"] }]),
    );
    let rule = |text: &str| {
        with(
            "x-kubernetes-validations",
            json!([{ "rule": text, "message": "m" }]),
        )
    };
    let union = rule("(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1");
    assert_eq!(definition_differences(&one_of, &union), Ok(Vec::new()));
    for other in [
        "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1",
        "(has(self.a) ? 1 : 0) == 1",
    ] {
        let differences = definition_differences(&one_of, &rule(other)).expect("definitions");
        assert!(!differences.is_empty(), "{other}");
    }
}

#[test]
fn versions_share_types_and_have_their_own_subresources() {
    let version = |name: &str, subresources: Value, part: &str| {
        json!({ "name": name, "served": true, "storage": name == "v1",
        "subresources": subresources,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": {
                "replicas": { "type": "integer" },
                "same": { "type": "object", "properties": { "a": { "type": "string" } } },
                "part": { "type": "object", "properties": { part: { "type": "string" } } },
            } },
            "status": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
        } } } })
    };
    let scale = json!({ "status": {}, "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" } });
    let mut several = definition(json!({}));
    several["spec"]["versions"] = json!([
        version("v1", scale, "b"),
        version("v1beta1", json!({}), "c")
    ]);
    let imported = import(&several);
    assert_eq!(
        imported.lost,
        [
            "v1beta1: conversion of Part.c: it is dropped; write convert(rename = ..) or convert(with = (to, from))",
            "v1beta1: conversion of Part.b: only the stored version has it",
        ]
    );
    let (hub, other) = (&imported.modules[0].1, &imported.modules[1].1);
    let scale = "scale(spec = spec.replicas, status = status.replicas),";
    assert!(
        hub.contains("    status,\n") && hub.contains(scale),
        "{hub}"
    );
    assert!(
        !other.contains("    status,\n") && !other.contains("scale("),
        "{other}"
    );
    for code in [
        "use crate::v1::thing as stored;\nuse crate::v1::thing::{Same, ThingStatus};\n",
        "spoke_of = stored::Thing",
        "#[apiloom::api(convert(peer = stored::Part, hub_only(b = None)))]\npub struct Part {\n    #[api(convert(drop, default = None))]\n",
    ] {
        assert!(other.contains(code), "{code} in\n{other}");
    }
}
