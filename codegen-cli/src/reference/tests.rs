//! The reference of small documents.

use serde_json::json;

use super::*;
use crate::render::Renderer;

fn rendered(documents: &Value) -> String {
    let view = ReferenceView::new("p", documents.as_object().expect("an object"));
    let renderer = Renderer::new("header".to_owned()).expect("the templates parse");
    let text = renderer.markdown("reference.md.tera", &view.expect("a kind"));
    String::from_utf8(text.expect("it renders")).expect("UTF-8")
}

/// A document with one kind that has these fields.
fn document(properties: &Value) -> Value {
    let operation = |verb: &str| {
        json!({"x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": {"group": "a.com", "kind": "Thing", "version": "v1"}})
    };
    let mut list = operation("list");
    list["parameters"] = json!([{"name": "limit"}, {"name": "watch"}]);
    json!({"openapi/v3/apis/a.com/v1.json": {
        "paths": {
            "/apis/a.com/v1/": {"get": {}},
            "/apis/a.com/v1/things": {"get": list},
            "/apis/a.com/v1/namespaces/{namespace}/things": {"post": operation("post")},
            "/apis/a.com/v1/namespaces/{namespace}/things/{name}/status": {"put": operation("put")},
        },
        "components": {"schemas": {
            "com.a.v1.Thing": {"description": "Thing is <one>.", "type": "object", "properties": properties,
                "x-kubernetes-group-version-kind": [{"group": "a.com", "kind": "Thing", "version": "v1"}]},
            "com.a.v1.ThingList": {"type": "object", "properties": {
                "items": {"type": "array", "items": {"$ref": "#/components/schemas/com.a.v1.Thing"}},
                "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}]},
            }},
            "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta": {"type": "object"},
        }},
    }, "crds/things.a.com": {"spec": {"names": {"shortNames": ["th"]}}}})
}

#[test]
fn a_kind_has_its_facts_and_fields() {
    let text = rendered(&document(&json!({
        "kind": {"type": "string"},
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "format": "int32", "default": 1, "minimum": 0, "description": "How large."}}},
    })));
    assert_eq!(
        text,
        r#"<!-- header -->
# API reference of p

- a.com/v1
  - [Thing](#a-com-v1-thing)

## a.com/v1

<a id="a-com-v1-thing"></a>

### Thing

Thing is \<one>.

- `apiVersion: a.com/v1`, `kind: Thing`
- Resource: `things`, in a namespace
- Verbs: `create`, `list`, `watch`
- Subresources: `status`
- Short names: `th`

| field | type | description |
|---|---|---|
| `spec` | object |  |
| `spec.size` | integer (int32) | Required. How large. Default: `1`. Value `>= 0`. |
"#
    );
}

#[track_caller]
fn check(schema: &Value, row: &str) {
    let text = rendered(&document(&json!({ "f": schema })));
    let found = text.lines().find(|line| line.starts_with("| `f` |"));
    assert_eq!(found, Some(row), "{text}");
}

#[test]
fn types_are_said() {
    check(&json!({}), "| `f` | any value |  |");
    check(
        &json!({"type": "array", "items": {"type": "string"}}),
        "| `f` | list of string |  |",
    );
    check(
        &json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
        "| `f` | map of list of integer |  |",
    );
    check(
        &json!({"x-kubernetes-int-or-string": true}),
        "| `f` | integer or string |  |",
    );
    check(
        &json!({"allOf": [{"$ref": "#/components/schemas/com.a.v1.Thing"}], "description": "Another."}),
        "| `f` | [Thing](#a-com-v1-thing) | Another. |",
    );
    check(
        &json!({"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}),
        "| `f` | ListMeta |  |",
    );
}

#[test]
fn rules_are_said() {
    check(
        &json!({"type": "string", "enum": ["A", "B"], "default": "A"}),
        "| `f` | string | Default: `\"A\"`. One of `\"A\"`, `\"B\"`. |",
    );
    check(
        &json!({"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^(a|b)`$"}),
        "| `f` | string | Minimum length: 1. Maximum length: 5. Pattern: <code>&#94;&#40;a&#124;b&#41;&#96;&#36;</code>. |",
    );
    check(
        &json!({"type": "number", "maximum": 5, "exclusiveMaximum": true}),
        "| `f` | number | Value `< 5`. |",
    );
    check(
        &json!({"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2, "x-kubernetes-list-type": "set"}),
        "| `f` | list of string | Maximum number of items: 2. No two items are equal. Each item: Maximum length: 3. |",
    );
    check(
        &json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}),
        "| `f` | list of object | Items have different `a` and `b`. |",
    );
    check(
        &json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        "| `f` | object | Exactly one of `a`, `b`. |",
    );
}

#[test]
fn fields_of_items_and_values_have_paths() {
    let field = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let text = rendered(&document(&json!({
        "list": {"type": "array", "items": field},
        "map": {"type": "object", "additionalProperties": field},
    })));
    for row in ["| `list[].a` | string |  |", "| `map{}.a` | string |  |"] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn documents_without_kinds_have_no_reference() {
    let documents = json!({"openapi/v3/apis/a.com/v1.json": {"openapi": "3.0.0"}, "crds/a.b": {}, "openapi/v3/x": {}});
    assert!(ReferenceView::new("p", documents.as_object().expect("an object")).is_none());
}
