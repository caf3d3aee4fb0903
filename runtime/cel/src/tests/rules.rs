//! Rules of schemas: their errors, values that are evaluated, budgets, and declarations that are refused.

use apiloom_schema::field::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Value as Json, json};

use crate::{blocks_rules, compile, not_checked};

/// A schema of objects with `spec`.
fn with_spec(spec: Json) -> Json {
    json!({"type": "object", "properties": {"spec": spec}})
}

/// The problems of a schema's rules.
fn problems(schema: &Json) -> Vec<String> {
    let at = FieldPath::new("schema");
    let errors = compile(schema, &at).errors;
    errors.iter().map(ToString::to_string).collect()
}

/// The errors of a document, or of a change.
#[track_caller]
fn errors(schema: &Json, new: &Json, old: Option<&Json>) -> Vec<FieldError> {
    let compiled = compile(schema, &FieldPath::root());
    assert_eq!(compiled.errors, []);
    compiled.rules.unwrap().validate(new, old)
}

#[track_caller]
fn texts(schema: &Json, new: &Json, old: Option<&Json>) -> Vec<String> {
    let found = errors(schema, new, old);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_schema_without_rules_has_none() {
    let compiled = compile(&with_spec(json!({"type": "object"})), &FieldPath::root());
    assert!(compiled.rules.is_none() && compiled.errors.is_empty());
}

#[test]
fn errors_are_those_of_the_rule() {
    let schema = with_spec(json!({"type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.a <= self.b"},
            {"rule": "self.a <= self.b", "message": " too big ", "fieldPath": ".a"},
            {"rule": "self.a <= self.b", "messageExpression": "'a is ' + self.e", "reason": "FieldValueForbidden"},
            {"rule": "self.a <= self.b", "message": "needed", "reason": "FieldValueRequired", "fieldPath": "['c.d']"},
            {"rule": "self.a <= self.b", "message": "twice", "reason": "FieldValueDuplicate"},
            {"rule": "self.a <= self.b", "message": "own", "messageExpression": "'line' + '\\n' + 'break'"},
            {"rule": "self.a <= self.b", "message": "own", "messageExpression": "string(1 / (self.a - 3))"}],
        "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self != 3", "message": "not 3"}]},
            "b": {"type": "integer"}, "c.d": {"type": "integer"}, "e": {"type": "string", "maxLength": 9}}}));
    let found = errors(&schema, &json!({"spec": {"a": 3, "b": 2, "e": "3"}}), None);
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec: Invalid value: failed rule: self.a <= self.b",
            "spec.a: Invalid value: too big",
            "spec: Forbidden: a is 3",
            "spec.c.d: Required value: needed",
            "spec: Duplicate value",
            "spec: Invalid value: own",
            "spec: Invalid value: own",
            "spec.a: Invalid value: 3: not 3",
        ]
    );
    assert_eq!(found[3].kind, FieldErrorKind::Required);
    assert_eq!(
        errors(&schema, &json!({"spec": {"a": 1, "b": 2}}), None),
        []
    );
    assert_eq!(errors(&schema, &json!({}), None), []);
}

#[test]
fn errors_of_an_evaluation_name_the_rule() {
    let schema = with_spec(json!({"type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.a == 1"},
            {"rule": "1 / self.b == 1", "message": "b divides"},
            {"rule": "self.port > 3"}],
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
            "port": {"x-kubernetes-int-or-string": true}}}));
    assert_eq!(
        texts(&schema, &json!({"spec": {"b": 0, "port": "http"}}), None),
        [
            "spec: Invalid value: \"object\": no such key: a evaluating rule: self.a == 1",
            "spec: Invalid value: \"object\": division by zero evaluating rule: b divides",
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, \
             function or macro signature for rule: self.port > 3",
        ]
    );
}

#[test]
fn rules_about_changes() {
    let schema = with_spec(json!({"type": "object",
        "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "shrinks"}]},
            "b": {"type": "integer", "x-kubernetes-validations": [
                {"rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": true, "message": "starts at 1"}]},
            "ports": {"type": "array", "maxItems": 10, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "port": {"type": "integer"}},
                    "x-kubernetes-validations": [{"rule": "self.port == oldSelf.port", "message": "fixed"}]}},
            "map": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "integer",
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]}}}}));
    let spec = |spec: Json| json!({ "spec": spec });
    let old = spec(
        json!({"a": 5, "b": 7, "ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}], "map": {"k": 1}}),
    );
    let new = spec(
        json!({"a": 4, "b": 8, "ports": [{"name": "z", "port": 9}, {"name": "y", "port": 3}], "map": {"k": 2, "l": 3}}),
    );
    assert_eq!(
        texts(&schema, &new, Some(&old)),
        [
            "spec.a: Invalid value: 4: shrinks",
            "spec.map[k]: Invalid value: 2: fixed",
            "spec.ports[1]: Invalid value: fixed",
        ]
    );
    // On create, only the rule that asks for it.
    assert_eq!(
        texts(&schema, &new, None),
        ["spec.b: Invalid value: 8: starts at 1"]
    );
    assert_eq!(errors(&schema, &old, Some(&old)), []);
}

#[test]
fn unchanged_values_are_not_refused() {
    let schema = with_spec(json!({"type": "object",
        "x-kubernetes-validations": [{"rule": "self.a < 10", "message": "a is too big"}],
        "properties": {"a": {"type": "integer"}, "list": {"type": "array", "maxItems": 5, "items": {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self < 10", "message": "too big"}]}},
            "keyed": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.v < 10", "message": "too big"}]}}}}));
    let object =
        |spec: Json, label: &str| json!({"metadata": {"labels": {"l": label}}, "spec": spec});
    let spec =
        json!({"a": 11, "list": [1, 11], "keyed": [{"k": "x", "v": 11}, {"k": "y", "v": 1}]});
    let old = object(spec.clone(), "old");
    assert_eq!(
        errors(&schema, &object(spec.clone(), "new"), Some(&old)),
        []
    );
    let rules = compile(&schema, &FieldPath::root()).rules.unwrap();
    let found = rules.check(&object(spec.clone(), "new"), Some(&old));
    let tolerated: Vec<String> = found.tolerated.iter().map(ToString::to_string).collect();
    assert_eq!(
        tolerated,
        [
            "spec: Invalid value: a is too big",
            "spec.keyed[0]: Invalid value: too big",
            "spec.list[1]: Invalid value: 11: too big"
        ]
    );
    let mut changed = spec;
    changed["keyed"][1]["v"] = json!(2);
    changed["list"][0] = json!(2);
    assert_eq!(
        texts(&schema, &object(changed, "new"), Some(&old)),
        [
            "spec: Invalid value: a is too big",
            "spec.list[1]: Invalid value: 11: too big"
        ]
    );
}

#[test]
fn names_of_the_object_are_known_at_its_root() {
    let schema = json!({"type": "object", "properties": {"metadata": {"type": "object"}},
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name.startsWith('a') && self.kind == 'A' && self.apiVersion == 'g/v1'", "message": "m"}]});
    let object = |name: &str| json!({"apiVersion": "g/v1", "kind": "A", "metadata": {"name": name, "labels": {}}});
    assert_eq!(
        texts(&schema, &object("b"), None),
        ["<nil>: Invalid value: m"]
    );
    assert_eq!(errors(&schema, &object("a"), None), []);
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "has(self.metadata.labels)"}]});
    assert!(problems(&schema)[0].contains("undefined field 'labels'"));
}

#[test]
fn rules_in_all_of_are_evaluated() {
    let schema = with_spec(
        json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "allOf": [{"properties": {"a": {"x-kubernetes-validations": [{"rule": "self > 1", "message": "small"}]}}}]}),
    );
    assert_eq!(
        texts(&schema, &json!({"spec": {"a": 1}}), None),
        ["spec.a: Invalid value: 1: small"]
    );
}

#[test]
fn budgets() {
    let items = json!({"type": "integer"});
    let expensive = json!({"type": "object", "x-kubernetes-validations": [
            {"rule": "self.list.all(x, self.list.all(y, x != y || x == y))", "message": "m"}, {"rule": "false"}],
        "properties": {"list": {"type": "array", "maxItems": 400, "items": items}}});
    let list: Vec<i64> = (0..2_000).collect();
    assert_eq!(
        texts(
            &with_spec(expensive),
            &json!({"spec": {"list": list}}),
            None
        ),
        [
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules \
          will be run due to call cost exceeds limit for rule: m"
        ]
    );
    // Each rule is within its limit, all together are not.
    let rule =
        json!({"rule": "self.list.all(x, self.list.all(y, x != y || x == y))", "message": "m"});
    let rules = vec![rule; 40];
    let many = json!({"type": "object", "x-kubernetes-validations": rules,
        "properties": {"list": {"type": "array", "maxItems": 300, "items": {"type": "integer"}}}});
    let list: Vec<i64> = (0..300).collect();
    let found = texts(&with_spec(many), &json!({"spec": {"list": list}}), None);
    assert_eq!(
        found,
        [
            "spec: Invalid value: \"object\": validation failed due to running out of cost budget, no further validation rules \
          will be run"
        ]
    );
}

#[test]
fn rules_that_are_refused() {
    let declared = |rule: Json| {
        problems(&with_spec(
            json!({"type": "object", "x-kubernetes-validations": [rule],
            "properties": {"a": {"type": "integer"}, "list": {"type": "array", "items": {"type": "string"}}}}),
        ))
    };
    let at = "schema.properties[spec].x-kubernetes-validations[0]";
    let cases = [
        (
            json!({"rule": " "}),
            format!("{at}.rule: Required value: rule is not specified"),
        ),
        (
            json!({"rule": "true", "message": " "}),
            format!("{at}.message: Invalid value: \" \": must be non-empty if specified"),
        ),
        (
            json!({"rule": "true", "message": "a\nb"}),
            format!("{at}.message: Invalid value: \"a\\nb\": must not contain line breaks"),
        ),
        (json!({"rule": "true\n"}), String::new()),
        (
            json!({"rule": "true ||\nfalse"}),
            format!(
                "{at}.message: Required value: message must be specified if rule contains line breaks"
            ),
        ),
        (
            json!({"rule": "true", "messageExpression": " "}),
            format!(
                "{at}.messageExpression: Required value: messageExpression must be non-empty if specified"
            ),
        ),
        (
            json!({"rule": "true", "reason": "Other"}),
            format!(
                "{at}.reason: Unsupported value: \"Other\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
            ),
        ),
        (
            json!({"rule": "true", "fieldPath": ".b"}),
            format!("{at}.fieldPath: Invalid value: \".b\": must be a valid path"),
        ),
        (
            json!({"rule": "true", "fieldPath": "a"}),
            format!("{at}.fieldPath: Invalid value: \"a\": must be a valid path"),
        ),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            format!(
                "{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
            ),
        ),
        (
            json!({"rule": "self.a"}),
            format!(
                "{at}.rule: Invalid value: {{\"Rule\":\"self.a\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}: cel expression must evaluate to a bool"
            ),
        ),
        (
            json!({"rule": "true", "messageExpression": "self.a"}),
            format!(
                "{at}.messageExpression: Invalid value: {{\"Rule\":\"true\",\"Message\":\"\",\"MessageExpression\":\"self.a\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}: messageExpression must evaluate to a string"
            ),
        ),
    ];
    for (rule, expected) in cases {
        let found = declared(rule.clone());
        assert_eq!(
            found.first().cloned().unwrap_or_default(),
            expected,
            "{rule}"
        );
    }
    let found = declared(json!({"rule": "self.bogus"}));
    assert!(found[0].ends_with("compilation failed: ERROR: <input>:1:5: undefined field 'bogus'\n | self.bogus\n | ....^"), "{found:?}");
}

#[test]
fn expensive_rules_are_refused() {
    let schema = with_spec(json!({"type": "object", "x-kubernetes-validations": [
            {"rule": "self.list.all(x, self.list.exists(y, x == y))"}],
        "properties": {"list": {"type": "array", "items": {"type": "string"}}}}));
    let found = problems(&schema);
    assert_eq!(
        found[0],
        "schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor \
         of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, \
         and strings are declared)"
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].ends_with(
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    ));
    assert!(found[2].starts_with(
        "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget"
    ));
    // A rule in a list counts as often as the list may have items.
    let nested = |most: Json| {
        let mut list = json!({"type": "array", "items": {"type": "string", "maxLength": 100,
            "x-kubernetes-validations": [{"rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')"}]}});
        if !most.is_null() {
            list["maxItems"] = most;
        }
        problems(&with_spec(
            json!({"type": "object", "properties": {"list": list}}),
        ))
    };
    assert_eq!(nested(json!(1000)), [""; 0]);
    assert!(nested(Json::Null)[0].contains("estimated rule cost exceeds budget by factor of"));
}

#[test]
fn old_values_of_lists_without_keys_are_unknown() {
    let schema = with_spec(
        json!({"type": "array", "maxItems": 3, "items": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
    );
    assert_eq!(
        problems(&schema),
        [
            "schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot \
          be used on the uncorrelatable portion of the schema within schema.properties[spec]"
        ]
    );
    let list = |rule: &str| {
        with_spec(
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "maxItems": 3, "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 3},
                "list": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 3,
                    "x-kubernetes-validations": [{"rule": rule}]}}},
                "x-kubernetes-validations": [{"rule": rule}]}}),
        )
    };
    assert_eq!(
        problems(&list("self == oldSelf")),
        [
            "schema.properties[spec].items.properties[list].items.x-kubernetes-validations[0].rule: Invalid value: \
             \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within \
             schema.properties[spec].items.properties[list]"
        ]
    );
    assert_eq!(problems(&list("string(self) != 'oldSelf'"))[1..], [""; 0]);
}

#[test]
fn an_estimate_is_told_beside_the_use_of_old_values() {
    let schema = with_spec(json!({"type": "array", "items": {"type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}));
    let found = problems(&schema);
    let has = |text: &str| found.iter().any(|line| line.contains(text));
    assert!(has("estimated rule cost exceeds budget"), "{found:?}");
    assert!(has("uncorrelatable portion"), "{found:?}");
}

#[test]
fn some_errors_of_the_schema_keep_rules_from_being_evaluated() {
    let path = FieldPath::new("spec");
    assert!(blocks_rules(&[FieldError::required(&path, "")]));
    assert!(!blocks_rules(&[
        FieldError::invalid(&path, "x", "should match"),
        FieldError::duplicate(&path, "x")
    ]));
    assert_eq!(
        not_checked().to_string(),
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
         existing errors to complete validation"
    );
}

#[test]
fn rules_are_those_of_defaults() {
    let schema = with_spec(
        json!({"type": "object", "default": {"a": 3, "l": [{"b": 1}]}, "properties": {
        "a": {"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]},
        "l": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {
            "b": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "small"}]}}}},
        "o": {"type": "integer", "default": 1, "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self == 2", "optionalOldSelf": true}]},
        }}),
    );
    let at = FieldPath::new("schema");
    let rules = compile(&schema, &at).rules.unwrap();
    let errors = rules.default_errors(&schema, &at);
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "schema.properties[spec].default.l[0].b: Invalid value: 1: small",
            "schema.properties[spec].properties[a].default: Invalid value: 1: failed rule: self > 1",
            "schema.properties[spec].properties[o].default: Invalid value: 1: failed rule: oldSelf.hasValue() || self == 2",
        ]
    );
}
