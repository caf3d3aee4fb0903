//! CEL rules of schemas, and their texts.

use serde_json::{Value, json};

use super::text::{escape, literal, quote};
use super::*;
use crate::FieldPath;
use crate::engine::{Schema, structural};
use crate::hooks::Hooks;

/// The rules and the comments of a definition.
fn written(schema: &Value) -> (Value, Vec<String>) {
    let schema = Schema::from_json(schema, &Hooks::default()).expect("it is structural");
    let crd = schema.to_crd();
    let problems = structural::problems(&crd.schema, &FieldPath::new("schema"));
    assert_eq!(
        problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [""; 0]
    );
    (crd.schema, crd.unsaid)
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// The rules at the root, without their messages.
fn rules(schema: &Value) -> Vec<String> {
    let (printed, unsaid) = written(schema);
    assert_eq!(unsaid, [""; 0]);
    of(&printed)
}

fn of(printed: &Value) -> Vec<String> {
    let rules = printed["x-kubernetes-validations"].as_array();
    let text = |rule: &Value| rule["rule"].as_str().unwrap_or_default().to_owned();
    rules.into_iter().flatten().map(text).collect()
}

#[test]
fn an_immutable_field_is_compared_with_its_old_value() {
    let field = |kind: &str| json!({ "type": kind, "x-apiloom-update": ["Immutable"] });
    assert_eq!(
        rules(&object(
            json!({ "class": field("string"), "number": field("integer") })
        )),
        [
            "(has(self.class) && size(self.class) > 0) ? (has(oldSelf.class) && size(oldSelf.class) > 0) \
             && self.class == oldSelf.class : !(has(oldSelf.class) && size(oldSelf.class) > 0)",
            "(has(self.number)) ? (has(oldSelf.number)) && self.number == oldSelf.number : !(has(oldSelf.number))",
        ]
    );
}

#[test]
fn transitions_stand_at_the_object_around_the_field() {
    let one = |transition: &str, kind: Value| {
        let mut field = kind;
        field["x-apiloom-update"] = json!([transition]);
        let found = rules(&object(json!({ "a": field })));
        found.into_iter().next().unwrap_or_default()
    };
    let number = || json!({ "type": "integer" });
    assert_eq!(one("NoSet", number()), "!(has(self.a)) || (has(oldSelf.a))");
    assert_eq!(
        one("NoUnset", number()),
        "(has(self.a)) || !(has(oldSelf.a))"
    );
    assert_eq!(
        one("NoModify", number()),
        "!(has(self.a)) || !(has(oldSelf.a)) || self.a == oldSelf.a"
    );
    assert_eq!(
        one("Monotonic", number()),
        "!has(self.a) || !has(oldSelf.a) || self.a >= oldSelf.a"
    );
    let set = || {
        json!({ "type": "array", "maxItems": 10, "x-kubernetes-list-type": "set",
            "items": { "type": "string", "maxLength": 10 } })
    };
    assert_eq!(
        one("NoAddItem", set()),
        "!has(self.a) || self.a.all(x, has(oldSelf.a) && x in oldSelf.a)"
    );
    let map = json!({ "type": "array", "maxItems": 10, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "ip-family"],
        "items": { "type": "object", "required": ["name", "ip-family"],
            "properties": { "name": { "type": "string", "maxLength": 63 }, "ip-family": { "type": "string", "enum": ["4", "6"] } } } });
    assert_eq!(
        one("NoRemoveItem", map),
        "!has(oldSelf.a) || oldSelf.a.all(x, has(self.a) && \
         self.a.exists(y, y.name == x.name && y.ip__dash__family == x.ip__dash__family))"
    );
}

#[test]
fn siblings_and_forbidden_fields_are_told_by_what_is_set() {
    let schema = object(json!({
        "a": { "type": "string", "x-apiloom-requires": ["namespace"], "x-apiloom-conflicts": ["c"] },
        "namespace": { "type": "array", "items": { "type": "string" } },
        "c": { "type": "string", "format": "date-time" },
        "d": { "type": "boolean", "x-apiloom-forbidden": true },
    }));
    assert_eq!(
        rules(&schema),
        [
            "!(has(self.a) && size(self.a) > 0) || (has(self.__namespace__) && size(self.__namespace__) > 0)",
            "!(has(self.a) && size(self.a) > 0) || !(has(self.c))",
            "!(has(self.d))",
        ]
    );
    let (printed, _) = written(&schema);
    assert_eq!(
        printed["x-kubernetes-validations"][0]["message"],
        "namespace must be set when a is set"
    );
}

#[test]
fn unions_count_their_members_or_follow_their_tag() {
    let union = |tag: Value, allow_none: bool, kind: Value| {
        let mut schema = object(json!({
            "type": kind, "a": { "type": "integer" }, "b": { "type": "integer" },
        }));
        schema["x-apiloom-union"] = json!({ "discriminator": tag, "allowNone": allow_none,
            "members": { "a": ["A"], "b": ["B", "it's"] } });
        rules(&schema)
    };
    let text = || json!({ "type": "string" });
    assert_eq!(
        union(Value::Null, false, text()),
        ["(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1"]
    );
    assert_eq!(
        union(Value::Null, true, text()),
        ["(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1"]
    );
    let tag = "(has(self.type) ? self.type : '')";
    let members = [
        format!("(has(self.a)) == ({tag} in ['A'])"),
        format!("(has(self.b)) == ({tag} in ['B', 'it\\'s'])"),
    ];
    let open = [
        members[0].clone(),
        members[1].clone(),
        format!("{tag} != ''"),
        format!("{tag} in ['A', 'B', 'it\\'s', '']"),
    ];
    assert_eq!(union(json!("type"), false, text()), open);
    let closed = json!({ "type": "string", "enum": ["A", "B", "it's", "none"] });
    assert_eq!(union(json!("type"), true, closed), members);
}

#[test]
fn values_have_rules_of_their_own() {
    let schema = object(json!({
        "text": { "type": "string", "maxLength": 9, "x-apiloom-not-equal": "a'b\\", "x-apiloom-max-bytes": 9 },
        "float": { "type": "number", "x-apiloom-not-equal": 1 },
        "list": { "type": "array", "maxItems": 9, "x-apiloom-unique": true, "x-apiloom-required": true,
            "items": { "type": "integer", "x-apiloom-not-equal": -1 } },
    }));
    let (printed, unsaid) = written(&schema);
    assert_eq!(unsaid, [""; 0]);
    let properties = &printed["properties"];
    assert_eq!(
        of(&properties["text"]),
        ["self != 'a\\'b\\\\'", "size(bytes(self)) <= 9"]
    );
    assert_eq!(of(&properties["float"]), ["self != 1.0"]);
    assert_eq!(
        of(&properties["list"]),
        ["self.all(x, self.exists_one(y, x == y))"]
    );
    assert_eq!(properties["list"]["minItems"], 1);
    assert_eq!(of(&properties["list"]["items"]), ["self != -1"]);
}

#[test]
fn what_kubernetes_would_refuse_is_told_in_words() {
    let immutable = json!({ "type": "string", "x-apiloom-update": ["Immutable"] });
    let inner =
        object(json!({ "a": immutable, "b": { "type": "string", "x-apiloom-requires": ["a"] } }));
    let list = |keywords: Value| {
        let mut list = json!({ "type": "array", "items": inner });
        for (name, value) in keywords.as_object().into_iter().flatten() {
            list[name] = value.clone();
        }
        written(&object(json!({ "list": list })))
    };
    // An atomic list has no correlated old items, and the cost of an unbounded one is too high.
    let (printed, unsaid) = list(json!({ "maxItems": 4 }));
    assert_eq!(of(&printed["properties"]["list"]["items"]).len(), 1);
    assert_eq!(
        unsaid,
        [
            "list[]: `immutable` (a is immutable): kube-apiserver does not know the old items of a list without `list = map(..)`"
        ]
    );
    let (printed, unsaid) = list(json!({}));
    assert_eq!(of(&printed["properties"]["list"]["items"]), [""; 0]);
    assert_eq!(unsaid.len(), 2);
    assert!(
        unsaid[1]
            .starts_with("list[]: `requires` (a must be set when b is set): its cost has no bound")
    );
    // Nullable fields, and names that CEL cannot express.
    let (_, unsaid) = written(&object(json!({
        "n": { "type": "string", "nullable": true, "x-apiloom-update": ["Immutable"] },
        "1st": { "type": "string", "x-apiloom-update": ["Immutable"] },
        "any": { "x-kubernetes-preserve-unknown-fields": true, "x-apiloom-update": ["Immutable"] },
    })));
    for (line, field) in unsaid.iter().zip(["1st", "any", "n"]) {
        assert_eq!(
            *line,
            format!("{field}: rules about this field, which CEL cannot name")
        );
    }
    assert_eq!(unsaid.len(), 3);
}

#[test]
fn bytes_and_int_or_string_are_set_when_they_are_not_empty() {
    let schema = object(json!({
        "bytes": { "type": "string", "format": "byte", "x-apiloom-forbidden": true },
        "port": { "x-kubernetes-int-or-string": true, "x-apiloom-forbidden": true },
    }));
    assert_eq!(
        rules(&schema),
        [
            "!(has(self.bytes) && size(self.bytes) > 0)",
            "!(has(self.port) && self.port != '')",
        ]
    );
    let schema = object(json!({
        "bytes": { "type": "string", "format": "byte", "x-apiloom-required": true },
        "port": { "x-kubernetes-int-or-string": true, "x-apiloom-required": true },
        "list": { "type": "array", "x-apiloom-required": true,
            "items": { "x-kubernetes-preserve-unknown-fields": true } },
    }));
    let (printed, unsaid) = written(&schema);
    assert_eq!(unsaid, [""; 0]);
    let properties = &printed["properties"];
    assert_eq!(properties["bytes"]["minLength"], 1);
    assert_eq!(of(&properties["port"]), ["self != ''"]);
    assert_eq!(properties["list"]["minItems"], 1);
}

// kube-apiserver has no value for the first, and refuses every object that sets it; for the second, a rule cannot
// check whether it is empty.
#[test]
fn objects_without_fields_cannot_be_named() {
    let (_, unsaid) = written(&object(json!({
        "empty": { "type": "object", "properties": {}, "x-apiloom-forbidden": true },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-apiloom-forbidden": true },
    })));
    let line = |name: &str| format!("{name}: rules about this field, which CEL cannot name");
    assert_eq!(unsaid, [line("empty"), line("open")]);
}

// There is no object around the value on which the rule could be placed.
#[test]
fn transitions_of_items_and_of_values_are_told_in_words() {
    let number =
        json!({ "type": "integer", "x-apiloom-update": ["Immutable", "NoSet", "Monotonic"] });
    let (printed, unsaid) = written(&object(json!({
        "list": { "type": "array", "items": number },
        "map": { "type": "object", "additionalProperties": number },
    })));
    assert_eq!(of(&printed), [""; 0]);
    let line =
        |path: &str| format!("{path}: `immutable`, `update(..)` and `monotonic` inside of `each`");
    assert_eq!(unsaid, [line("list[]"), line("map{}")]);
}

#[test]
fn names_are_escaped_as_kubernetes_does() {
    for (name, escaped) in [
        ("plain", Some("plain")),
        ("namespace", Some("__namespace__")),
        ("in", Some("__in__")),
        ("type", Some("type")),
        ("x-y", Some("x__dash__y")),
        ("a.b/c", Some("a__dot__b__slash__c")),
        ("a__b", Some("a__underscores__b")),
        ("a___b", Some("a__underscores___b")),
        ("_a", Some("_a")),
        ("1a", None),
        ("", None),
        ("$ref", None),
        ("ä", None),
    ] {
        assert_eq!(escape(name).as_deref(), escaped, "{name}");
    }
}

#[test]
fn literals_are_those_of_cel() {
    assert_eq!(quote("a'b\\c\nd\u{1}"), "'a\\'b\\\\c\\nd\\u0001'");
    assert_eq!(
        literal(&json!(2), Some(Kind::Float)).as_deref(),
        Some("2.0")
    );
    assert_eq!(
        literal(&json!(2), Some(Kind::Integer)).as_deref(),
        Some("2")
    );
    assert_eq!(literal(&json!({}), Some(Kind::Other)), None);
}
