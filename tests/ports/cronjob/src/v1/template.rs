//! Kubernetes' job template, with less documentation and more rules than its crate gives it.

use std::borrow::Cow;

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// JobTemplate is what jobs are made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobTemplate(pub JobTemplateSpec);

/// The keys of Kubernetes' list maps, which k8s-openapi does not tell. Those with a key that Kubernetes defaults are left
/// out, as a schema of another crate cannot say defaults.
const KEYS: [(&str, &str); 9] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("schedulingGates", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("hostAliases", "ip"),
];

impl JsonSchema for JobTemplate {
    fn schema_name() -> Cow<'static, str> {
        "JobTemplate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // The definition, not a reference to it: what is said beside the field stays.
        let template = generator.subschema_for::<JobTemplateSpec>();
        for (name, definition) in generator.definitions_mut() {
            if name.starts_with("io.k8s.") {
                adapt(definition);
            }
        }
        template
    }
}

/// Takes out the documentation, which would make a definition larger than kubectl can apply, and puts in list types.
fn adapt(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    keywords.remove("description");
    for (keyword, below) in keywords {
        match (keyword.as_str(), below) {
            ("properties", Value::Object(fields)) => fields.iter_mut().for_each(|(name, field)| {
                if let Some((_, key)) = KEYS.iter().find(|(list, _)| list == name) {
                    field["x-kubernetes-list-type"] = json!("map");
                    field["x-kubernetes-list-map-keys"] = json!([key]);
                }
                adapt(field);
            }),
            ("items" | "additionalProperties", below) => adapt(below),
            _ => {}
        }
    }
}
