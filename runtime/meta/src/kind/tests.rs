//! References to owners.

use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Parent {
    metadata: ObjectMeta,
}

impl Resource for Parent {
    const GROUP: &'static str = "ex.io";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Parent";
    const PLURAL: &'static str = "parents";
    fn definition() -> ResourceDef {
        unreachable!("a reference needs no definition")
    }
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[test]
fn an_owner_is_referred_to_by_kind_name_and_uid() {
    let metadata = ObjectMeta {
        name: Some("p".to_owned()),
        uid: Some("U".to_owned()),
        ..ObjectMeta::default()
    };
    let reference = OwnerReference::to(&Parent { metadata });
    let plain = json!({"apiVersion": "ex.io/v1", "kind": "Parent", "name": "p", "uid": "U"});
    assert_eq!(serde_json::to_value(&reference).unwrap(), plain);
    let controller: Value = serde_json::to_value(reference.as_controller()).unwrap();
    assert_eq!(
        (&controller["controller"], &controller["blockOwnerDeletion"]),
        (&json!(true), &json!(true))
    );
}
