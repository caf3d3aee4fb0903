//! The subresource `scale`: writes the number of replicas by an object of the kind Scale.
//!
//! The present object is shown as a Scale, the request changes the Scale, and its number of replicas goes back into the
//! object. The result is then written like any other update of the object. Admission sees the Scale.

use apiloom_meta::field::go_quote;
use apiloom_meta::kind::ScalePaths;
use apiloom_meta::managed_fields::{FieldSet, FieldsError, ManagedEntry, ManagedFields, Manager};
use apiloom_meta::{ApiError, JsonPath, Object};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::Writes;
use super::change::{Change, Input, PassedStages};
use super::request::WriteRequest;
use super::results::WrittenObject;
use crate::objects::scale::{scale_of, scale_or};

/// The number in the Scale of an object without a number of replicas, by which a request that sets none is noticed.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// A change of the Scale of an object.
pub(super) struct ScaleChange<'a> {
    change: &'a dyn Change,
    /// The writes of Scales.
    scales: &'a Writes,
    paths: &'a ScalePaths,
}

impl Writes {
    /// The writes of the bodies of a subresource of another kind; those of the object itself for others.
    pub(super) fn bodies(&self, subresource: &str) -> &Self {
        match &self.scale {
            Some(scale) if self.is_scale(subresource) => scale,
            _ => self,
        }
    }

    /// Whether a subresource is read and written as a Scale.
    pub fn is_scale(&self, subresource: &str) -> bool {
        self.scale_paths(subresource).is_some()
    }

    fn scale_paths(&self, subresource: &str) -> Option<&ScalePaths> {
        self.resource.def().subresource(subresource)?.scale_paths()
    }

    /// The object as the response to a request shows it.
    ///
    /// # Errors
    /// InternalError for the Scale of an object without replicas.
    pub fn shown(&self, subresource: &str, object: &Object) -> Result<Object, ApiError> {
        match self.scale_paths(subresource) {
            Some(paths) => scale_of(paths, object),
            None => Ok(object.clone()),
        }
    }

    /// A change as one of the Scale, if that is what a subresource shows.
    pub(super) fn change_of_scale<'a>(
        &'a self,
        subresource: &str,
        change: &'a dyn Change,
    ) -> Option<ScaleChange<'a>> {
        let paths = self.scale_paths(subresource)?;
        Some(ScaleChange {
            change,
            scales: self.scale.as_deref().unwrap_or(self),
            paths,
        })
    }
}

impl Change for ScaleChange<'_> {
    fn on_present<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        self.scaled(writes, request, present).boxed()
    }

    fn admit<'a>(
        &'a self,
        _writes: &'a Writes,
        request: WriteRequest<'a>,
        new: &'a mut Object,
        shown: &'a Object,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        let admit = async move {
            let mut scale = scale_of(self.paths, new)?;
            let rules = &self.scales.rules;
            rules
                .admit_validation(request, &mut scale, Some(shown))
                .await
        };
        admit.boxed()
    }

    fn response(&self, written: WrittenObject) -> Result<WrittenObject, ApiError> {
        Ok(scale_of(self.paths, &written)?.into())
    }

    /// The rules of an update apply to its replicas too.
    fn is_update_of_object(&self, _request: WriteRequest<'_>) -> bool {
        true
    }
}

impl ScaleChange<'_> {
    /// The present object with the number of replicas of the changed Scale, after the mutating phase of admission.
    ///
    /// # Errors
    /// Those of the change; BadRequest if neither it nor the object has a number of replicas.
    async fn scaled(
        &self,
        writes: &Writes,
        request: WriteRequest<'_>,
        present: &Object,
    ) -> Result<Input, ApiError> {
        let Self {
            change,
            scales,
            paths,
        } = self;
        let mut shown = scale_or(paths, present, NO_REPLICAS)?;
        let owners = ReplicaOwners { writes, paths };
        let mut managed = ManagedFields::read(present).unwrap_or_default();
        let of_scale = owners.of_scale(&managed).unwrap_or_else(|error| {
            tracing::warn!(name = request.name, %error, "managedFields cannot be read and are dropped");
            managed = ManagedFields::default();
            ManagedFields::default()
        });
        of_scale.write(&mut shown);
        // A Scale has no references to owners and no fields that are pruned late.
        let Input {
            object: mut new,
            passed,
            is_patched: _,
            is_unpruned: _,
            shown: _,
        } = change.on_scale(scales, request, &shown).await?;
        scales
            .pass_input(request, &mut new, Some(&shown), passed)
            .await?;
        let replicas = sent_replicas(&new)?;
        if replicas == NO_REPLICAS {
            let path = go_quote(&paths.spec.to_string());
            return Err(ApiError::bad_request(format!(
                "the spec replicas field {path} cannot be empty"
            )));
        }
        let mut object = present.clone();
        paths.spec.put_in(object.fields_mut(), replicas.into());
        if !new.resource_version().is_empty() {
            object.set_meta_str("resourceVersion", new.resource_version());
        }
        let of_scale = ManagedFields::read(&new).map_err(ApiError::internal_text)?;
        let managed = owners
            .of_object(managed, &of_scale)
            .map_err(|error| ApiError::internal_text(error.to_string()))?;
        writes.owners.write_owners(managed, &mut object);
        Ok(Input {
            passed: PassedStages::Admission,
            shown: Some(shown),
            ..Input::new(object)
        })
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
struct ReplicaOwners<'a> {
    writes: &'a Writes,
    paths: &'a ScalePaths,
}

impl ReplicaOwners<'_> {
    /// The set of the number of replicas in a version of the object; `None` for an unknown version.
    fn replicas_in(&self, api_version: &str) -> Option<FieldSet> {
        let versions = &self.writes.resource.kind.versions;
        let version = versions.find(api_version)?;
        let paths = versions[version].def.scale_paths();
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
