//! Keywords that the decoder obeys, and metadata.

use serde_json::json;

use super::*;
use crate::path::JsonPath;
use crate::types::ObjectMeta;

#[test]
fn embedded_resources_keep_their_type_and_metadata() {
    let schema = schema(
        &json!({"type":"object","properties":{"template":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}}),
    );
    let document = json!({"template":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","bogus":1},"spec":{},"status":{}}});
    let decoded = decoded(&schema, &document).expect("decodes");
    assert_eq!(
        decoded.value,
        json!({"template":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"},"spec":{}}})
    );
    assert_eq!(
        decoded.strict,
        [
            r#"unknown field "template.metadata.bogus""#,
            r#"unknown field "template.status""#
        ]
    );
    assert_eq!(
        openapi(&schema)["properties"]["template"]["x-kubernetes-embedded-resource"],
        true
    );
}

#[test]
fn empty_lists_and_maps_that_are_left_out_are_absent() {
    let schema = schema(&json!({"type":"object","properties":{
        "list":{"type":"array","items":{"type":"string"},"x-apiloom-omit-empty":true},
        "map":{"type":"object","additionalProperties":{"type":"string"},"x-apiloom-omit-empty":true},
        "kept":{"type":"array","items":{"type":"string"}},
    }}));
    let document = json!({"list":[],"map":{},"kept":[]});
    let found = decoded(&schema, &document).expect("decodes");
    assert_eq!(found.value, json!({"kept":[]}));
    assert!(found.strict.is_empty());
    let twice = br#"{"list":["a"],"list":[]}"#;
    let found = Decoder::of(&schema).decode(twice).expect("decodes");
    assert_eq!(found.value, json!({}));
    assert_eq!(found.strict, ["duplicate field \"list\""]);
}

#[test]
fn metadata_is_open_a_reference_or_inline() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only the schema counts")]
    struct Kind {
        metadata: ObjectMeta,
        pod: Template,
    }
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only the schema counts")]
    struct Template {
        /// Labels and the like.
        metadata: ObjectMeta,
    }
    impl ApiType for Kind {}
    let schema = Schema::for_resource::<Kind>().expect("structural");
    let referring = schema.to_openapi(&Metadata::Ref("#/x"));
    assert_eq!(
        referring["properties"]["pod"]["properties"]["metadata"]["allOf"],
        json!([{"$ref":"#/x"}])
    );
    let metadata = |how: Metadata<'_>| schema.to_openapi(&how)["properties"]["metadata"].clone();
    assert_eq!(metadata(Metadata::Open), json!({"type":"object"}));
    assert_eq!(
        metadata(Metadata::Ref("#/x")),
        json!({"allOf":[{"$ref":"#/x"}],"default":{},"description":"The metadata that every object has."})
    );
    let inline = metadata(Metadata::Inline);
    assert_eq!(
        inline["properties"]["ownerReferences"]["x-kubernetes-list-map-keys"],
        json!(["uid"])
    );
    assert_eq!(
        inline["properties"]["finalizers"]["x-kubernetes-list-type"],
        "set"
    );
    assert_eq!(
        schema.to_openapi_v2(&Metadata::Ref("#/x"))["properties"]["metadata"]["$ref"],
        "#/x"
    );
    assert_eq!(
        schema.to_openapi(&Metadata::Open)["properties"]["kind"]["type"],
        "string"
    );
    for path in [
        ".metadata.name",
        ".metadata.labels.x",
        ".kind",
        "metadata.managedFields",
    ] {
        assert!(
            schema.has_path(&JsonPath::parse(path).expect("a path")),
            "{path}"
        );
    }
    assert!(!schema.has_path(&JsonPath::parse(".spec").expect("a path")));
}
