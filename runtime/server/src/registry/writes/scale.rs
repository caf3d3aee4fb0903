//! The subresource `scale`: writes the number of replicas by an object of the kind Scale.
//!
//! The present object is shown as a Scale, the request changes the Scale, and its number of replicas goes back into the
//! object. The result is then written like any other update of the object. Admission sees the Scale.

use apiloom_meta::field::go_quote;
use apiloom_meta::kind::ScalePaths;
use apiloom_meta::managed_fields::{FieldSet, FieldsError, ManagedEntry, ManagedFields, Manager};
use apiloom_meta::{ApiError, JsonPath, Object};
use serde_json::{Value, json};

use super::Writes;
use super::target::Target;
use super::update::Change;
use crate::registry::objects::scale::{scale_of, scale_or};

/// The number in the Scale of an object without a number of replicas, by which a request that sets none is noticed.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// An object whose Scale a request changed.
pub(crate) struct Scaled {
    /// The object with the new number of replicas.
    pub(crate) object: Object,
    /// Its Scale before the request.
    old_scale: Object,
}

impl Writes {
    /// The writes of the bodies of a subresource of another kind; those of the object itself for others.
    pub(crate) fn bodies(&self, subresource: &str) -> &Self {
        match &self.scale {
            Some(scale) if self.is_scale(subresource) => scale,
            _ => self,
        }
    }

    /// Whether a subresource is read and written as a Scale.
    pub(crate) fn is_scale(&self, subresource: &str) -> bool {
        self.scale_paths(subresource).is_some()
    }

    fn scale_paths(&self, subresource: &str) -> Option<&ScalePaths> {
        self.resource.def().subresource(subresource)?.scale_paths()
    }

    /// The object as the response to a request shows it.
    ///
    /// # Errors
    /// InternalError for the Scale of an object without replicas.
    pub(crate) fn shown(&self, subresource: &str, object: &Object) -> Result<Object, ApiError> {
        match self.scale_paths(subresource) {
            Some(paths) => scale_of(paths, object),
            None => Ok(object.clone()),
        }
    }

    /// The present object with the number of replicas of the changed Scale, after the mutating phase of admission. `None`
    /// if the subresource is no Scale.
    ///
    /// # Errors
    /// Those of the change; BadRequest if neither it nor the object has a number of replicas.
    pub(crate) async fn scaled(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        old: &Object,
        key: &str,
    ) -> Result<Option<Scaled>, ApiError> {
        let (Some(scales), Some(paths)) = (&self.scale, self.scale_paths(target.subresource))
        else {
            return Ok(None);
        };
        let mut live = scale_or(paths, old, NO_REPLICAS)?;
        let owners = Owners {
            writes: self,
            paths,
        };
        let mut managed = ManagedFields::read(old).unwrap_or_default();
        let of_scale = owners.of_scale(&managed).unwrap_or_else(|error| {
            tracing::warn!(name = target.name, %error, "managedFields cannot be read and are dropped");
            managed = ManagedFields::default();
            ManagedFields::default()
        });
        of_scale.write(&mut live);
        let mut new = match change {
            Change::Replace(scale) => {
                self.check_uid(scale.uid(), old.uid(), target.name, key)?;
                scale.clone()
            }
            Change::Patch(patch, validation) => {
                scales.patched(target, &live, patch, *validation)?
            }
            Change::Apply(applied) => scales.applied(target, applied, Some(&live)).await?.object,
            Change::Edit(..) => {
                let text = "a handler changes the number of replicas in the object itself";
                return Err(ApiError::internal_text(text));
            }
        };
        scales.default_input(target, &mut new)?;
        if !matches!(change, Change::Apply(_)) {
            scales.own_changes(target, &mut new, Some(&live)).await;
        }
        scales.admit_mutation(target, &mut new, Some(&live)).await?;
        let replicas = sent_replicas(&new)?;
        if replicas == NO_REPLICAS {
            let path = go_quote(&paths.spec.to_string());
            return Err(ApiError::bad_request(format!(
                "the spec replicas field {path} cannot be empty"
            )));
        }
        let mut object = old.clone();
        paths.spec.put_in(object.fields_mut(), replicas.into());
        if !new.resource_version().is_empty() {
            object.set_meta_str("resourceVersion", new.resource_version());
        }
        let of_scale = ManagedFields::read(&new).map_err(ApiError::internal_text)?;
        let managed = owners
            .of_object(managed, &of_scale)
            .map_err(|error| ApiError::internal_text(error.to_string()))?;
        self.write_owners(managed, &mut object);
        Ok(Some(Scaled {
            object,
            old_scale: live,
        }))
    }

    /// Runs the validating phase of admission for the Scale of an object.
    pub(crate) async fn admit_scale(
        &self,
        target: Target<'_>,
        object: &Object,
        old_scale: &Object,
    ) -> Result<(), ApiError> {
        let mut scale = self.shown(target.subresource, object)?;
        let scales = self.bodies(target.subresource);
        scales
            .admit_validation(target, &mut scale, Some(old_scale))
            .await
    }
}

impl Scaled {
    /// Splits it into the new object and the old Scale.
    pub(crate) fn into_parts(self) -> (Object, Object) {
        (self.object, self.old_scale)
    }
}

/// The number of replicas of a changed Scale: 0 if it is absent, as in Go.
fn sent_replicas(scale: &Object) -> Result<i64, ApiError> {
    let spec = scale.fields().get("spec");
    let replicas = spec.and_then(|spec| spec.get("replicas"));
    let Some(replicas) = replicas.filter(|value| !value.is_null()) else {
        return Ok(0);
    };
    let number = replicas
        .as_i64()
        .filter(|number| i32::try_from(*number).is_ok());
    number.ok_or_else(|| {
        ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal number {replicas} into Go struct \
             field ScaleSpec.spec.replicas of type int32"
        ))
    })
}

/// Translates the owners of the number of replicas between an object and its Scale.
struct Owners<'a> {
    writes: &'a Writes,
    paths: &'a ScalePaths,
}

impl Owners<'_> {
    /// The set of the number of replicas in a version of the object; `None` for an unknown version.
    fn replicas_in(&self, api_version: &str) -> Option<FieldSet> {
        let kind = &self.writes.resource.kind;
        let version = kind.version_of(api_version)?;
        let paths = kind.versions[version].def.scale_paths();
        Some(paths.map_or_else(FieldSet::default, |paths| set_of(&paths.spec)))
    }

    /// The entries that own the number of replicas, in terms of the Scale.
    fn of_scale(&self, managed: &ManagedFields) -> Result<ManagedFields, FieldsError> {
        let mut of_scale = ManagedFields::default();
        for entry in managed.entries() {
            let Some(replicas) = self.replicas_in(&entry.manager.api_version) else {
                continue;
            };
            if entry.fields()?.intersection(&replicas).is_empty() {
                continue;
            }
            let manager = Manager {
                api_version: SCALE_VERSION.to_owned(),
                ..entry.manager.clone()
            };
            // Update entries of several versions are one entry of the Scale.
            if of_scale.entry_mut(&manager).is_none() {
                let time = entry.time.clone();
                let entry = ManagedEntry::new(manager, time, set_of_scale());
                of_scale.entries_mut().push(entry);
            }
        }
        Ok(of_scale)
    }

    /// The entries of the object: those that no longer own the replicas of the Scale lose them, and new owners are added,
    /// without a time, as in kube-apiserver.
    fn of_object(
        &self,
        mut managed: ManagedFields,
        of_scale: &ManagedFields,
    ) -> Result<ManagedFields, FieldsError> {
        let in_scale = set_of_scale();
        let mut owners: Vec<Manager> = Vec::new();
        for entry in of_scale.entries() {
            if !entry.fields()?.intersection(&in_scale).is_empty() {
                owners.push(entry.manager.clone());
            }
        }
        let is_same = |a: &Manager, b: &Manager| {
            a.name == b.name && a.operation == b.operation && a.subresource == b.subresource
        };
        // Entries of versions that are not served any more go.
        let is_known =
            |entry: &ManagedEntry| self.replicas_in(&entry.manager.api_version).is_some();
        managed.entries_mut().retain(is_known);
        let mut kept: Vec<Manager> = Vec::new();
        for entry in managed.entries_mut() {
            let replicas = self.replicas_in(&entry.manager.api_version);
            let replicas = replicas.unwrap_or_default();
            let fields = entry.fields()?;
            if fields.intersection(&replicas).is_empty() {
                continue;
            }
            match owners.iter().find(|owner| is_same(owner, &entry.manager)) {
                Some(owner) => kept.push(owner.clone()),
                None => {
                    let fields = fields.difference(&replicas);
                    entry.set_fields(fields);
                }
            }
        }
        owners.retain(|owner| !kept.contains(owner));
        for owner in owners {
            let manager = Manager {
                api_version: self.writes.resource.version().api_version.clone(),
                ..owner
            };
            let replicas = set_of(&self.paths.spec);
            match managed.entry_mut(&manager) {
                Some(entry) => {
                    let fields = entry.fields()?.union(&replicas);
                    entry.set_fields(fields);
                }
                None => {
                    let entry = ManagedEntry::new(manager, None, replicas);
                    managed.entries_mut().push(entry);
                }
            }
        }
        Ok(managed)
    }
}

/// The version of Scale.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The set of the number of replicas in a Scale.
fn set_of_scale() -> FieldSet {
    set_of(&JsonPath::new(["spec", "replicas"]))
}

/// The set of one path.
fn set_of(path: &JsonPath) -> FieldSet {
    let value = path.names().iter().rev().fold(json!({}), |below, name| {
        Value::Object([(format!("f:{name}"), below)].into_iter().collect())
    });
    FieldSet::from_value(&value).unwrap_or_default()
}
