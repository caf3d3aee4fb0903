//! The schemas of definitions that were accepted.

use apiloom_kinds::apiextensions::rules::accepted::JudgedSchema;
use apiloom_meta::codec::Format;
use apiloom_meta::kind::StoredDefinition;
use apiloom_registry::FieldValidation;

use super::*;

#[tokio::test]
async fn a_schema_that_was_accepted_is_known_as_it_is_stored() {
    let store = Memory::new();
    let mut builder = apiloom_kinds::registry(store.clone());
    register_all(&mut builder);
    let registry = Arc::new(builder.build().unwrap());
    registry.start().await.unwrap();
    let group = "apiextensions.k8s.io";
    let endpoint = registry.endpoint(group, "v1", "customresourcedefinitions");
    let endpoint = endpoint.unwrap();
    // The order of the fields, and characters and numbers that are written in another way than they are sent.
    let schema = r#"{"type": "object", "description": "<a> & \u00e9", "properties": {
        "b": {"type": "number", "minimum": 1.0, "maximum": 1e3, "unknown": 1}, "a": {"type": "string", "default": "\u003c"}}}"#;
    let names = r#""names": {"plural": "accepted", "kind": "Accepted"}"#;
    let body = format!(
        r#"{{"metadata": {{"name": "accepted.ex.io"}}, "spec": {{"group": "ex.io", "scope": "Cluster", {names}, "versions": [
            {{"name": "v1", "served": true, "storage": true, "schema": {{"openAPIV3Schema": {schema}}}}}]}}}}"#
    );
    let (ctx, writes) = (RequestContext::default(), endpoint.writes());
    let object = writes.decode(&ctx, body.as_bytes(), Format::Json, FieldValidation::Warn);
    let options = CreateOptions::default();
    let object = object.unwrap();
    writes.create(&ctx, None, object, &options).await.unwrap();
    let key = endpoint.storage_key(None, "accepted.ex.io").unwrap();
    let (stored, _) = store.get(&key).await.unwrap();
    let stored = StoredDefinition::parse(&stored.unwrap().value).unwrap();
    let (_, schema) = stored.schemas().next().unwrap();
    assert!(JudgedSchema::new(&schema.json()).is_accepted_in_any());
    assert!(!JudgedSchema::new(br#"{"type":"object","x":1}"#).is_accepted_in_any());
}
