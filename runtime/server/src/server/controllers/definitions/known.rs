//! What the controller keeps of a definition: not its schemas, which are large.

use apiloom_apis::apiextensions::v1::{CustomResourceDefinition, CustomResourceDefinitionNames};
use apiloom_meta::GroupResource;
use apiloom_meta::kind::SmolStr;
use serde_json::Value;

use crate::registry::definition_rules::{CLEANUP, has_condition};

/// The path of a definition.
pub(super) fn path(name: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: u64,
    generation: i64,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) accepted: CustomResourceDefinitionNames,
    /// Whether the condition NamesAccepted is true.
    pub(super) has_all_names: bool,
    pub(super) is_established: bool,
    pub(super) is_deleting: bool,
    /// Whether it stays until its objects are deleted.
    pub(super) has_finalizer: bool,
}

impl Known {
    /// Of a stored document; empty for one that is no definition.
    pub(super) fn of(document: &Value) -> Self {
        // The schemas are left out before the rest is decoded.
        let mut fields = document.as_object().cloned().unwrap_or_default();
        if let Some(versions) = fields
            .get_mut("spec")
            .and_then(|spec| spec.get_mut("versions"))
        {
            *versions = Value::Array(Vec::new());
        }
        fields.remove("apiVersion");
        fields.remove("kind");
        let decoded = serde_json::from_value(Value::Object(fields));
        decoded.map_or_else(|_| Self::default(), |object| Self::of_object(&object))
    }

    pub(super) fn of_object(object: &CustomResourceDefinition) -> Self {
        let (metadata, status) = (&object.metadata, &object.status);
        let version = metadata.resource_version.as_deref().unwrap_or_default();
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: version.parse().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            group: object.spec.group.clone(),
            plural: object.spec.names.plural.clone(),
            accepted: status.accepted_names.clone().unwrap_or_default(),
            has_all_names: has_condition(&status.conditions, "NamesAccepted"),
            is_established: has_condition(&status.conditions, "Established"),
            is_deleting: metadata.deletion_timestamp.is_some(),
            has_finalizer: metadata.finalizers.iter().any(|known| known == CLEANUP),
        }
    }

    /// Whether its kind is to be served.
    pub(super) fn is_served(&self) -> bool {
        self.has_all_names || self.is_established
    }

    pub(super) fn resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// The state of all that decides how the kind is served. The generation of a spec that a deletion left alone changes too,
    /// so it is not counted then.
    pub(super) fn state(&self) -> SmolStr {
        let generation = self.generation - i64::from(self.is_deleting);
        SmolStr::new(format!("{}/{generation}/{:?}", self.uid, self.accepted))
    }
}
