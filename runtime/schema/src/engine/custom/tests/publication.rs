//! What OpenAPI says of custom resources.

use serde_json::{Value, json};

use super::of;
use crate::engine::Metadata;

fn document() -> Value {
    json!({"type": "object", "description": "A thing.", "required": ["spec"], "properties": {
        "metadata": {"type": "object"},
        "spec": {"type": "object", "required": ["a", "n"], "properties": {
            "a": {"x-kubernetes-int-or-string": true},
            "b": {"x-kubernetes-int-or-string": true, "anyOf": [{"pattern": "^a"}]},
            "n": {"type": "array", "nullable": true, "items": {"type": "string"}},
            "o": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"p": {"type": "string"}}},
            "e": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
            "u": {"type": "string", "oneOf": [{"minLength": 1}], "x-kubernetes-validations": [{"rule": "self != ''"}]},
        }},
    }})
}

#[test]
fn v3_has_everything_and_the_fields_of_every_object() {
    let published = of(&document()).to_openapi(&Metadata::Ref("#/components/schemas/Meta"));
    assert_eq!(published["description"], "A thing.");
    assert_eq!(
        published["properties"]["metadata"]["allOf"],
        json!([{"$ref": "#/components/schemas/Meta"}])
    );
    assert_eq!(published["properties"]["kind"]["type"], "string");
    let spec = &published["properties"]["spec"]["properties"];
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    assert_eq!(spec["a"]["anyOf"], either);
    assert_eq!(spec["b"]["allOf"], json!([{"anyOf": either}]));
    assert_eq!(spec["b"]["anyOf"], json!([{"pattern": "^a"}]));
    assert_eq!(
        spec["u"],
        document()["properties"]["spec"]["properties"]["u"]
    );
    assert_eq!(spec["e"]["required"], json!(["kind", "apiVersion"]));
    assert_eq!(spec["e"]["properties"]["apiVersion"]["type"], "string");
    assert_eq!(spec["n"]["nullable"], true);
}

#[test]
fn v2_leaves_out_what_clients_would_misread() {
    let published = of(&document()).to_openapi_v2(&Metadata::Ref("#/definitions/Meta"));
    assert_eq!(
        published["properties"]["metadata"]["$ref"],
        "#/definitions/Meta"
    );
    let spec = &published["properties"]["spec"];
    assert_eq!(spec["required"], json!(["a"]));
    let fields = &spec["properties"];
    assert_eq!(fields["a"], json!({"x-kubernetes-int-or-string": true}));
    assert_eq!(fields["n"], json!({}));
    assert_eq!(
        fields["o"],
        json!({"x-kubernetes-preserve-unknown-fields": true})
    );
    assert_eq!(
        fields["u"],
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]})
    );
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}});
    assert_eq!(
        of(&open).to_openapi_v2(&Metadata::Inline),
        json!({"type": "object"})
    );
}

#[test]
fn a_definition_gets_the_document_as_it_was() {
    assert_eq!(of(&document()).to_crd().schema, document());
}
