//! The kind of these tests, and its strategy.

use apiloom_meta::kind::{ApiType, Scope};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ObjectMeta, Resource, ResourceDef};
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use apiloom_registry::{RequestContext, Strategy};

/// A kind that has everything that a schema can say about lists and maps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Pile {
    metadata: ObjectMeta,
    #[schemars(schema_with = "spec_schema")]
    spec: serde_json::Map<String, Value>,
}

fn spec_schema(_: &mut SchemaGenerator) -> schemars::Schema {
    let item = json_schema!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "size": {"type": "integer", "maximum": 5}}});
    let strings = |format: &str| json_schema!({"type": "array", "items": {"type": "string", "format": format}});
    json_schema!({"type": "object", "properties": {
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "named": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "x-apiloom-update": ["NoRemoveItem"]},
        "unique": {"type": "array", "items": item, "uniqueItems": true},
        "atomic": {"type": "array", "items": item},
        "words": {"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]+$", "minLength": 1}},
        "numbers": {"type": "array", "items": {"type": "number", "minimum": 0}},
        "times": strings("date-time"),
        "labels": strings("qualified-name"),
        "quantities": {"type": "array", "items": {"format": "quantity", "type": "string"}},
        "texts": {"type": "object", "additionalProperties": {"type": "string"}},
        "keyed": {"type": "object", "propertyNames": {"maxLength": 3}, "additionalProperties": {"type": "string"},
            "x-apiloom-update": ["NoRemoveItem"]},
        "objects": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": item}},
        "defaulted": {"type": "array", "items": {"type": "object", "properties": {
            "color": {"type": "string", "x-apiloom-default": "red"}}}},
        "choices": {"type": "array", "items": {"oneOf": [
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
            {"type": "object", "required": ["b"], "properties": {"b": {"type": "integer"}}}]}},
        "text": {"type": "string", "pattern": "^(a|b)*$"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

impl ApiType for Pile {}
impl Resource for Pile {
    const GROUP: &'static str = "wardle.example.com";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "Pile";
    const PLURAL: &'static str = "piles";

    fn definition() -> ResourceDef {
        ResourceDef {
            scope: Scope::Cluster,
            description: "A kind for tests.".into(),
            ..ResourceDef::of_type::<Self>(Schema::for_resource::<Self>)
        }
    }
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Changes the last item of every list, so that items must be matched, and warns about each.
pub(super) struct PileRules;

impl Strategy<Pile> for PileRules {
    fn prepare_for_create(&self, _: &RequestContext, pile: &mut Pile) {
        for list in ["atomic", "unique", "named"] {
            let last = pile.spec.get_mut(list).and_then(Value::as_array_mut);
            if let Some(last) = last.and_then(|list| list.last_mut()) {
                last["size"] = Value::from(5);
            }
        }
    }
    fn warnings(&self, _: &RequestContext, pile: &Pile) -> Vec<String> {
        let items = pile.spec.get("atomic").and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .map(|item| format!("{item} is odd"))
            .collect()
    }
}
