//! Which changes of a typed value are seen, in a document and in stored JSON.

use serde::{Deserialize, Serialize};
use serde_json::json;

use schemars::JsonSchema;

use super::*;
use crate::kind::{ApiType, Hooks, ResourceDef};
use crate::types::ObjectMeta;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Lamp {
    metadata: ObjectMeta,
    size: f64,
    names: Vec<String>,
}

impl ApiType for Lamp {}
impl Resource for Lamp {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Lamp";
    const PLURAL: &'static str = "lamps";
    fn definition() -> ResourceDef {
        unreachable!("no test asks for it")
    }
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn lamp() -> Value {
    json!({
        "metadata": {"name": "a", "labels": {"b": "c"}, "managedFields": [
            {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:size": {}}},
        ]},
        "size": 1.0,
        "names": ["d", "e"],
    })
}

/// Changes a lamp both ways; `pointer` leads to what is another value then, and `after` is that value.
fn check(change: impl Fn(&mut Lamp), pointer: &str, after: Option<&Value>) {
    let lamp = lamp();
    let schema = Schema::from_json(&json!({"type": "object"}), &Hooks::default()).unwrap();
    let json = serde_json::to_vec(&lamp).unwrap();
    let is_changed = lamp.pointer(pointer) != after;
    let is_unchanged = leaves_unchanged(&json, &schema, |lamp: &mut Lamp| change(lamp));
    assert_eq!(is_unchanged, !is_changed, "{pointer}");
    let mut object = Object::from_value(lamp).unwrap();
    let edited = object.edit(|lamp: &mut Lamp| change(lamp)).unwrap();
    assert_eq!(edited, is_changed, "{pointer}");
    assert_eq!(object.as_value().pointer(pointer), after);
    let typed = serde_json::to_value(&*object.typed::<Lamp>().unwrap()).unwrap();
    assert_eq!(typed.pointer(pointer), after, "the typed value is kept");
}

#[test]
fn a_change_of_any_part_is_seen() {
    check(|lamp| lamp.size = 2.5, "/size", Some(&json!(2.5)));
    check(
        |lamp| lamp.names.reverse(),
        "/names",
        Some(&json!(["e", "d"])),
    );
    check(|lamp| lamp.names.clear(), "/names", Some(&json!([])));
    check(
        |lamp| lamp.metadata.labels.clear(),
        "/metadata/labels",
        None,
    );
    let generation = |lamp: &mut Lamp| lamp.metadata.generation = Some(1);
    check(generation, "/metadata/generation", Some(&json!(1)));
    let manager = |lamp: &mut Lamp| lamp.metadata.managed_fields[0].manager = Some("n".to_owned());
    check(
        manager,
        "/metadata/managedFields/0/manager",
        Some(&json!("n")),
    );
    check(
        |lamp| lamp.metadata.managed_fields.clear(),
        "/metadata/managedFields",
        None,
    );
}

#[test]
fn no_change_is_seen_where_the_json_stays() {
    for pointer in [
        "/size",
        "/names",
        "/metadata/labels",
        "/metadata/managedFields",
    ] {
        let same = lamp().pointer(pointer).cloned();
        check(|_| {}, pointer, same.as_ref());
        let write_again = |lamp: &mut Lamp| {
            lamp.names = lamp.names.clone();
            lamp.metadata.managed_fields = lamp.metadata.managed_fields.clone();
        };
        check(write_again, pointer, same.as_ref());
    }
}
