//! Printed schemas: OpenAPI v3, CRDs and swagger v2.

use serde_json::json;

use super::*;

fn round(schema_json: Value, v3: Value, v2: Value) {
    let mut with_type = schema_json;
    if with_type.get("properties").is_some() {
        with_type["type"] = json!("object");
    }
    let schema = schema(&with_type);
    assert_eq!(
        schema.to_openapi(&Metadata::Inline),
        v3,
        "v3 of {with_type}"
    );
    assert_eq!(
        schema.to_openapi_v2(&Metadata::Inline),
        v2,
        "v2 of {with_type}"
    );
}

#[test]
fn private_keywords_stay_private_and_defaults_are_printed() {
    let printed =
        json!({"type":"object","properties":{"p":{"type":"string","default":"x","maxLength":9}}});
    round(
        json!({"properties":{"p":{"type":"string","default":"serde","x-apiloom-default":"x","x-apiloom-max-bytes":9,"x-apiloom-update":["Immutable"]}},"x-apiloom-order":["p"]}),
        printed.clone(),
        printed,
    );
}

#[test]
fn what_swagger_cannot_say_loses_its_type() {
    round(
        json!({"type":"string","x-apiloom-nullable":true,"description":"d"}),
        json!({"type":"string","nullable":true,"description":"d"}),
        json!({"description":"d"}),
    );
    let structure = json!({"a":{"type":"string"},"b":{"type":"string"}});
    round(
        json!({"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}),
        json!({"type":"object","properties":structure,"oneOf":[{"required":["a"]},{"required":["b"]}]}),
        json!({}),
    );
    round(
        json!({"properties":{"a":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true}),
        json!({"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true}),
        json!({"type":"object","x-kubernetes-preserve-unknown-fields":true}),
    );
}

// Without the fields of a template's metadata, a CRD would prune its labels.
#[test]
fn metadata_inside_of_an_object_has_its_fields_in_a_crd() {
    let template = |extension: &str| json!({"type":"object","properties":{"metadata":{"$ref":"#/$defs/ObjectMeta"}}, extension: true});
    let schema = schema(&json!({"type":"object",
        "properties":{"plain":template("x-unknown"),"embedded":template("x-kubernetes-embedded-resource")},
        "$defs":{"ObjectMeta":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}}}}));
    let printed = schema.to_openapi(&Metadata::Open);
    assert_eq!(
        printed["properties"]["plain"]["properties"]["metadata"],
        json!({"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}})
    );
    assert_eq!(
        printed["properties"]["embedded"]["properties"]["metadata"],
        json!({"type":"object"})
    );
}

#[test]
fn bounds_are_spelled_as_in_openapi_3_0() {
    let printed = json!({"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":true,"multipleOf":3});
    round(
        json!({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":9,"multipleOf":3}),
        printed.clone(),
        printed,
    );
}

#[test]
fn list_and_map_topology_and_further_extensions_are_printed() {
    let printed = json!({"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"x-kubernetes-map-type":"atomic"},
        "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"k","x-kubernetes-other":1});
    round(printed.clone(), printed.clone(), printed);
}

#[test]
fn known_values_of_an_open_enum_are_documentation() {
    let printed =
        json!({"type":"string","description":"d\n\nKnown values:\n - `\"a\"`\n - `\"b\"`"});
    round(
        json!({"type":"string","description":"d","x-apiloom-open-enum":["a","b"]}),
        printed.clone(),
        printed,
    );
}

#[test]
fn a_schema_knows_where_queries_lead() {
    use crate::query::{Comparison, JsonQuery, QueryFilter, QueryStep};
    let schema = super::schema(&json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}},
        "free": {"type": "array"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "text": {"type": "string"},
        "any": {},
    }}));
    let path = |name: &str| crate::path::JsonPath::new([name]);
    let field = |name: &str| QueryStep::Field(name.to_owned());
    let filter =
        |name: &str| QueryStep::Where(QueryFilter::compares(path(name), Comparison::Equal, "x"));
    for (start, steps, expected) in [
        ("list", vec![filter("type"), field("status")], true),
        ("list", vec![filter("kind"), field("status")], false),
        ("list", vec![filter("type"), field("state")], false),
        ("list", vec![QueryStep::Item(0), field("type")], true),
        ("list", vec![field("type")], false),
        ("free", vec![filter("type"), field("status")], true),
        ("map", vec![QueryStep::Every], true),
        ("map", vec![QueryStep::Item(0)], false),
        ("map", vec![field("a.b/c")], true),
        ("text", vec![QueryStep::Every], false),
        ("any", vec![QueryStep::Item(0), field("b")], true),
        ("other", vec![QueryStep::Item(0)], false),
        ("list", vec![QueryStep::Items, field("type")], true),
        ("map", vec![QueryStep::Items], false),
    ] {
        let query = steps
            .into_iter()
            .fold(JsonQuery::new(path(start)), JsonQuery::then);
        assert_eq!(schema.has_query(&query), expected, "{query}");
    }
    for (path, expected) in [
        (".list[1:].type", true),
        (".list[1:].kind", false),
        (".list[0,'type'].type", true),
        (".text['a','b']", false),
        ("..type", true),
        (".list word", false),
    ] {
        let query = JsonQuery::parse(path).unwrap();
        assert_eq!(schema.has_query(&query), expected, "{path}");
    }
}

#[test]
fn what_is_printed_is_read_back_as_the_same_schema() {
    let first = schema(&json!({"type":"object","required":["a"],"properties":{
        "a":{"type":"string","enum":["x"],"x-apiloom-default":"x"},"m":{"type":"object","additionalProperties":{"type":"integer","format":"int32"}},
        "l":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},"i":{"x-kubernetes-int-or-string":true},"f":{"x-kubernetes-preserve-unknown-fields":true}}}));
    let printed = openapi(&first);
    let second = Schema::from_json(&printed, &Hooks::default()).expect("structural");
    assert_eq!(openapi(&second), printed);
}
