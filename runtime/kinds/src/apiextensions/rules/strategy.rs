//! The strategy of definitions as the registry calls it. Most hooks see a definition without its schemas: these are nearly all of
//! it, and would be copied, written and compared several times in each write.

use std::sync::LazyLock;
use std::time::Duration;

use apiloom_meta::kind::{ProtobufMessage, ProtobufType, Resource, StoredDefinition};
use apiloom_meta::schema::Schema;
use apiloom_meta::{FieldError, Object};
use apiloom_registry::{ErasedStrategy, RequestContext, TypedStrategy};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::schema::{format_warnings, unknown_formats};
use super::versions::ONE_STORAGE_VERSION;
use super::{DefinitionRules, accepted_names_errors};
use crate::apiextensions::v1::CustomResourceDefinition;

/// The field of a version that has its schema.
const SCHEMA: &str = "schema";

/// The strategy of definitions.
pub(super) struct DefinitionStrategy(TypedStrategy<CustomResourceDefinition, DefinitionRules>);

impl DefinitionStrategy {
    pub(super) fn new() -> Self {
        Self(TypedStrategy::new(DefinitionRules))
    }
}

impl ErasedStrategy for DefinitionStrategy {
    fn has_defaults(&self) -> bool {
        self.0.has_defaults()
    }
    fn ttl(&self) -> Option<Duration> {
        self.0.ttl()
    }
    fn is_defaulted(&self, stored: &[u8], _schema: &Schema) -> bool {
        let parsed = StoredDefinition::parse(&Bytes::copy_from_slice(stored));
        let document = parsed.map(|definition| definition.document().clone());
        let object = document.ok().and_then(Object::from_value);
        object.is_some_and(|mut object| {
            // Of a schema the document has no more than the description.
            take_schemas(&mut object);
            !self.default(&mut object)
        })
    }
    fn default(&self, object: &mut Object) -> bool {
        let is_normalized = normalize_spec(object);
        without_schemas(object, |object| self.0.default(object)) || is_normalized
    }
    fn blank(&self) -> Object {
        Object::from_value(json!({"spec": {"names": {}}})).unwrap_or_default()
    }
    fn prepare_for_create(&self, ctx: &RequestContext, object: &mut Object) -> bool {
        without_schemas(object, |object| self.0.prepare_for_create(ctx, object))
    }
    fn prepare_for_update(&self, ctx: &RequestContext, new: &mut Object, old: &Object) -> bool {
        let old = copy_without_schemas(old);
        without_schemas(new, |new| self.0.prepare_for_update(ctx, new, &old))
    }
    fn prepares_delete(&self) -> bool {
        self.0.prepares_delete()
    }
    fn prepare_for_delete(&self, ctx: &RequestContext, object: &mut Object) {
        without_schemas(object, |object| self.0.prepare_for_delete(ctx, object));
    }
    fn validate(&self, ctx: &RequestContext, object: &Object) -> Result<Vec<FieldError>, String> {
        let mut errors = self.0.validate(ctx, object)?;
        show_absent_versions(object, &mut errors);
        Ok(errors)
    }
    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, String> {
        // A spec that stays as it is is not validated.
        if new.fields().get("spec") == old.fields().get("spec") {
            let [new, old] = [new, old].map(copy_without_schemas);
            return self.0.validate_update(ctx, &new, &old);
        }
        let mut errors = self.0.validate_update(ctx, new, old)?;
        show_absent_versions(new, &mut errors);
        Ok(errors)
    }
    /// The status may say anything of versions, as in kube-apiserver; the next update of the definition finds what is wrong.
    fn validate_status(
        &self,
        _ctx: &RequestContext,
        new: &Object,
        _old: &Object,
    ) -> Result<Vec<FieldError>, String> {
        let typed = copy_without_schemas(new).typed::<CustomResourceDefinition>();
        let typed = typed.map_err(|error| error.to_string())?;
        Ok(accepted_names_errors(&typed.status))
    }
    fn warnings(&self, _ctx: &RequestContext, object: &Object) -> Vec<String> {
        format_warnings(&unknown_formats(schemas(object)))
    }
    /// As in kube-apiserver, what was warned about before is no news.
    fn update_warnings(&self, _ctx: &RequestContext, new: &Object, old: &Object) -> Vec<String> {
        let mut formats = unknown_formats(schemas(new));
        if !formats.is_empty() {
            let known = unknown_formats(schemas(old));
            formats.retain(|format| !known.contains(format));
        }
        format_warnings(&formats)
    }
    fn grace_seconds(
        &self,
        ctx: &RequestContext,
        object: &Object,
        requested: Option<i64>,
    ) -> Option<i64> {
        self.0.grace_seconds(ctx, object, requested)
    }
}

/// Shows absent versions as null in errors: the type has an empty list for them.
fn show_absent_versions(object: &Object, errors: &mut [FieldError]) {
    let spec = object.fields().get("spec");
    let versions = spec.and_then(|spec| spec.get("versions"));
    if versions.is_none_or(Value::is_null) {
        let of_versions = errors
            .iter_mut()
            .filter(|error| error.path.as_str() == "spec.versions");
        for error in of_versions {
            *error = FieldError::invalid(&error.path, Value::Null, ONE_STORAGE_VERSION);
        }
    }
}

/// The schemas of a definition's versions.
pub(super) fn schemas(object: &Object) -> impl Iterator<Item = &Value> {
    let spec = object.fields().get("spec");
    let versions = spec.and_then(|spec| spec.get("versions"));
    let versions = versions.and_then(Value::as_array).into_iter().flatten();
    versions.filter_map(|version| version.get(SCHEMA)?.get("openAPIV3Schema"))
}

/// Gives the spec the form that Kubernetes' type gives it; returns whether it changed. What is no spec stays as it is, for the
/// validation.
fn normalize_spec(object: &mut Object) -> bool {
    if versions(object).any(|version| version.is_none()) {
        return false;
    }
    static SPEC: LazyLock<Option<&ProtobufMessage>> = LazyLock::new(|| {
        let definition = CustomResourceDefinition::definition().protobuf?;
        let spec = definition
            .fields
            .iter()
            .find(|field| field.name == "spec")?;
        match spec.value {
            ProtobufType::Message(message) => Some(message()),
            _ => None,
        }
    });
    let is_new = !object.fields().contains_key("spec");
    let spec = object.fields_mut().entry("spec");
    let spec = spec.or_insert_with(|| json!({})).as_object_mut();
    let is_changed = spec
        .zip(*SPEC)
        .is_some_and(|(spec, message)| message.normalize(spec));
    is_changed || is_new
}

/// The versions of a definition, as far as it has the form of one.
fn versions(object: &mut Object) -> impl Iterator<Item = Option<&mut Map<String, Value>>> {
    let spec = object.fields_mut().get_mut("spec");
    let versions = spec.and_then(|spec| spec.get_mut("versions"));
    let versions = versions.and_then(Value::as_array_mut);
    versions.into_iter().flatten().map(Value::as_object_mut)
}

/// The list of versions, if it is there and empty.
fn empty_versions(object: &Object) -> Option<&Value> {
    let versions = object.fields().get("spec")?.get("versions")?;
    versions.as_array()?.is_empty().then_some(versions)
}

/// Takes the schemas of a definition away; they are in the order of its versions.
pub fn take_schemas(object: &mut Object) -> Vec<Option<Value>> {
    versions(object)
        .map(|version| version?.remove(SCHEMA))
        .collect()
}

/// Calls a hook, which leaves the list of versions as it is, with a definition whose schemas are taken away meanwhile.
fn without_schemas<T>(object: &mut Object, hook: impl FnOnce(&mut Object) -> T) -> T {
    let taken = take_schemas(object);
    let has_no_versions = empty_versions(object).is_some();
    let result = hook(object);
    if has_no_versions && let Some(Value::Object(spec)) = object.fields_mut().get_mut("spec") {
        // The type leaves an empty list out.
        spec.entry("versions").or_insert_with(|| json!([]));
    }
    for (version, schema) in versions(object).zip(taken) {
        if let (Some(version), Some(schema)) = (version, schema) {
            version.insert(SCHEMA.to_owned(), schema);
        }
    }
    result
}

/// A copy of a definition without its schemas.
fn copy_without_schemas(object: &Object) -> Object {
    let copy = copy_without(object.as_value(), &["spec", "versions", SCHEMA]);
    Object::from_value(copy).unwrap_or_default()
}

/// A copy of a value without the field at a path. A list on the way stands for its items.
fn copy_without(value: &Value, path: &[&str]) -> Value {
    match (value, path) {
        (Value::Array(items), _) => items.iter().map(|item| copy_without(item, path)).collect(),
        (Value::Object(fields), [name, below @ ..]) => {
            let kept = fields
                .iter()
                .filter(|(field, _)| field != name || !below.is_empty());
            let copied = kept.map(|(field, value)| {
                let value = if field == name {
                    copy_without(value, below)
                } else {
                    value.clone()
                };
                (field.clone(), value)
            });
            Value::Object(copied.collect())
        }
        (other, _) => other.clone(),
    }
}
