//! How often a document is decoded, and that its typed form says what the document says.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::*;
use crate::kind::{ApiType, Hooks, ResourceDef};
use crate::object::Object;
use crate::schema::Schema;
use crate::types::ObjectMeta;

thread_local! {
    static DECODED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
struct Spec {
    size: i64,
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            size: i64,
        }
        DECODED.set(DECODED.get() + 1);
        Fields::deserialize(deserializer).map(|Fields { size }| Self { size })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Lamp {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Shade {
    metadata: ObjectMeta,
}

macro_rules! resource {
    ($kind:ty) => {
        impl ApiType for $kind {}
        impl Resource for $kind {
            const GROUP: &'static str = "";
            const VERSION: &'static str = "v1";
            const KIND: &'static str = stringify!($kind);
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
    };
}
resource!(Lamp);
resource!(Shade);

fn lamp() -> Object {
    let document = json!({"metadata": {"name": "a"}, "spec": {"size": 1, "unknown": true}});
    Object::from_value(document).unwrap()
}

/// How often `run` decoded a spec.
fn decoded(run: impl FnOnce()) -> usize {
    let before = DECODED.get();
    run();
    DECODED.get() - before
}

#[test]
fn it_is_decoded_once_until_a_field_changes() {
    let mut object = lamp();
    let times = decoded(|| {
        assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 1);
        assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 1);
    });
    assert_eq!(times, 1);
    object.fields_mut()["spec"]["size"] = json!(2);
    let times = decoded(|| assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 2));
    assert_eq!(times, 1);
}

#[test]
fn metadata_is_decoded_alone() {
    let mut object = lamp();
    object.typed::<Lamp>().unwrap();
    let held = object.typed::<Lamp>().unwrap();
    object.set_meta_str("uid", "u");
    object.set_type("v1", "Lamp");
    let times = decoded(|| {
        let typed = object.typed::<Lamp>().unwrap();
        assert_eq!(typed.metadata.uid.as_deref(), Some("u"));
        assert_eq!(typed.spec.size, 1);
    });
    assert_eq!(times, 0);
    assert_eq!(
        held.metadata.uid, None,
        "a value that is held does not change"
    );

    object.meta_mut().insert("labels".to_owned(), json!(5));
    object.typed::<Lamp>().expect_err("labels are no number");
    object.meta_mut().remove("labels");
    assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 1);
}

#[test]
fn empty_metadata_that_is_dropped_is_not_in_the_typed_form() {
    let mut object = lamp();
    object
        .meta_mut()
        .insert("generateName".to_owned(), json!(""));
    assert_eq!(
        object
            .typed::<Lamp>()
            .unwrap()
            .metadata
            .generate_name
            .as_deref(),
        Some("")
    );
    object.drop_empty_metadata();
    assert_eq!(object.typed::<Lamp>().unwrap().metadata.generate_name, None);
}

#[test]
fn each_type_reads_the_document_its_own_way() {
    let object = lamp();
    assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 1);
    assert_eq!(
        object.typed::<Shade>().unwrap().metadata.name.as_deref(),
        Some("a")
    );
    assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 1);
}

#[test]
fn a_clone_and_another_document_have_a_typed_form_of_their_own() {
    let object = lamp();
    object.typed::<Lamp>().unwrap();
    let mut copy = object.clone();
    copy.fields_mut()["spec"]["size"] = json!(7);
    assert_eq!(copy.typed::<Lamp>().unwrap().spec.size, 7);
    assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 1);
    assert_ne!(object, copy);
    copy.fields_mut()["spec"]["size"] = json!(1);
    assert_eq!(object, copy, "only documents are compared");
}

#[test]
fn defaults_change_it_only_where_there_are_some_to_put_in() {
    let size = json!({"type": "integer", "default": 3});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}});
    let schema = Schema::from_json(&schema, &Hooks::default()).unwrap();
    let mut object = lamp();
    object.typed::<Lamp>().unwrap();
    assert_eq!(decoded(|| object.default_by(&schema)), 0);
    assert_eq!(decoded(|| _ = object.typed::<Lamp>().unwrap()), 0);
    let mut object = Object::from_value(json!({"metadata": {}, "spec": {}})).unwrap();
    object.typed::<Lamp>().expect_err("the size is missing");
    object.default_within(&schema, 100).unwrap();
    object.meta_mut();
    assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 3);

    object.fields_mut()["spec"] = json!({});
    object
        .default_within(&schema, 2)
        .expect_err("3 takes three bytes");
}

#[test]
fn a_change_of_the_typed_form_changes_the_document_and_keeps_what_the_type_does_not_know() {
    let mut object = lamp();
    let times = decoded(|| {
        let is_changed = object.edit(|lamp: &mut Lamp| lamp.spec.size += 1).unwrap();
        assert!(is_changed);
        assert!(!object.edit(|_: &mut Lamp| {}).unwrap());
        assert_eq!(object.typed::<Lamp>().unwrap().spec.size, 2);
    });
    assert_eq!(times, 1);
    assert_eq!(
        object.as_value()["spec"],
        json!({"size": 2, "unknown": true})
    );
}

#[test]
fn an_object_of_another_shape_is_left_as_it_is() {
    let mut object = Object::from_value(json!({"spec": {"size": "large"}})).unwrap();
    let before = object.clone();
    object
        .edit(|_: &mut Lamp| panic!("there is nothing to change"))
        .expect_err("a text is no size");
    assert_eq!(object, before);
}
