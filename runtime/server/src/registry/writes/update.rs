//! update: replaces the present object; and the code that update and patch share.
//!
//! An attempt starts from the present object, and its write has the revision of that as its precondition. After a
//! conflict the attempt is repeated with the new present object. Every step, admission included, is repeated, so that
//! the object is validated against the one that it replaces.

use std::sync::Arc;

use apiloom_meta::kind::{self, GenerationRule};
use apiloom_meta::patch::Patch;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, Object};
use apiloom_storage::Revision;

use super::Writes;
use super::attempt::Attempt;
use super::create::Creation;
use super::delete::has_own_finalizers;
use super::draft::{Draft, HubObject, PresentVersions};
use super::field_manager::Applied;
use super::managed;
use super::results::WrittenObject;
use super::stamp;
use super::target::{Target, wipe_input};
use crate::registry::error;
use crate::registry::objects::present_object::PresentObject;
use crate::registry::options::{FieldValidation, Preconditions, RequestContext, UpdateOptions};

/// The change of a request to the present object.
pub(crate) enum Change<'a> {
    /// Replaces it.
    Replace(Object),
    /// Patches it.
    Patch(&'a Patch, FieldValidation),
    /// Applies the fields of a manager to it, or creates it with them.
    Apply(Applied<'a>),
    /// Changes it by code of the program, which handles a subresource, if it meets the preconditions.
    Edit(EditFn<'a>, &'a Preconditions),
}

/// A change of an object by code; fails if the object cannot be decoded.
pub(crate) type EditFn<'a> =
    &'a (dyn Fn(&mut Object) -> Result<(), serde_json::Error> + Send + Sync);

/// The object after a change, up to the mutating phase of admission.
struct Changed {
    new: Object,
    /// The object as it was sent, if the change is applied to other versions too.
    sent: Option<Object>,
    /// Whether the object is pruned only after its validation.
    is_unpruned: bool,
}

/// The operation of the store for a change.
enum StoreAction {
    /// Store the object. `stored` is the object in the storage version, if that is another one.
    Write {
        object: Object,
        stored: Option<Object>,
    },
    /// Delete the object: it is being deleted, and the change removed its last finalizer.
    Delete(Object),
    /// None, because the request is a dry run.
    Nothing(Object),
    /// None, because the present object stays as it is, and the cache alone can say whether it is still stored.
    Keep(Object),
}

impl Writes {
    /// Replaces an object, or the fields of a subresource if `subresource` is not empty. Returns `true` if the object
    /// was created.
    ///
    /// # Errors
    /// Those of update in the API, such as NotFound, Invalid and Conflict.
    pub async fn update(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        mut object: Object,
        options: &UpdateOptions,
    ) -> Result<(WrittenObject, bool), ApiError> {
        let bodies = self.bodies(subresource);
        bodies.set_type(&mut object);
        bodies.match_name(&object, name)?;
        bodies.match_namespace(&mut object, namespace)?;
        let target = Target::of_write(ctx, namespace, name, subresource, options);
        self.write(target, &Change::Replace(object)).await
    }

    /// Changes the present object by code ([`Change::Edit`]), as an update would.
    pub(crate) async fn change(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        options: &UpdateOptions,
        change: Change<'_>,
    ) -> Result<WrittenObject, ApiError> {
        let target = Target::of_write(ctx, namespace, name, subresource, options);
        let written = self.write(target, &change).await?;
        Ok(written.0)
    }

    /// Checks the preconditions of a request for a subresource, before its handler is called.
    ///
    /// # Errors
    /// Conflict, with the texts of an update.
    pub(crate) fn check_present(
        &self,
        preconditions: &Preconditions,
        namespace: Option<&str>,
        present: &Object,
    ) -> Result<(), ApiError> {
        let uid = preconditions.uid.as_deref().unwrap_or_default();
        let key = self.resource.kind.key(namespace, present.name())?;
        self.check_uid(uid, present.uid(), present.name(), &key)?;
        match &preconditions.resource_version {
            Some(version) if version != present.resource_version() => {
                Err(self.modified(present.name()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Update and patch. Returns `true` if the object was created.
    pub(crate) async fn write(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
    ) -> Result<(WrittenObject, bool), ApiError> {
        if !target.subresource.is_empty()
            && self
                .resource
                .def()
                .subresource(target.subresource)
                .is_none()
        {
            return Err(ApiError::no_such_resource());
        }
        let key = self.resource.kind.key(target.namespace, target.name)?;
        let mut created = false;
        let attempt = |present: Option<PresentObject>| {
            created = present.is_none();
            self.attempt(target, change, &key, present)
        };
        let mut written = self.retry_on_conflict(&key, "update", attempt).await?;
        if self.is_scale(target.subresource) {
            written = self.shown(target.subresource, &written)?.into();
        }
        Ok((written, created))
    }

    async fn attempt_create(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        key: &str,
    ) -> Result<Attempt<WrittenObject>, ApiError> {
        let not_found = || Err(self.resource.not_found(target.name));
        if !target.subresource.is_empty() {
            return not_found();
        }
        let mut is_unpruned = false;
        let mut object = match change {
            Change::Replace(object) if self.resource.def().create_on_update => {
                self.check_uid(object.uid(), "", target.name, key)?;
                object.clone()
            }
            Change::Apply(applied) => {
                let created = self.created_by_apply(target, applied).await?;
                is_unpruned = created.is_unpruned;
                created.object
            }
            Change::Replace(_) | Change::Patch(..) | Change::Edit(..) => return not_found(),
        };
        stamp::wipe_for_create(&mut object);
        object.set_meta_str("resourceVersion", "");
        self.default_input(target, &mut object)?;
        if let Change::Replace(_) = change {
            self.own_changes(target, &mut object, None).await;
        }
        self.admit_mutation(target, &mut object, None).await?;
        Ok(match self.create_once(target, object, is_unpruned).await? {
            Creation::Created(written) => Attempt::Written(written),
            Creation::Exists(entry) => Attempt::Conflict(Some(PresentObject::Stored(entry))),
        })
    }

    async fn attempt(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        key: &str,
        present: Option<PresentObject>,
    ) -> Result<Attempt<WrittenObject>, ApiError> {
        let Some(present) = present else {
            return self.attempt_create(target, change, key).await;
        };
        self.resource.reserve(target.ctx, present.len()).await;
        let revision = present.revision();
        let action = match self.plan_change(target, change, key, &present).await {
            Ok(action) => action,
            Err(error) => return Ok(Attempt::Decided(Err(error))),
        };
        match action {
            StoreAction::Write {
                mut object,
                mut stored,
            } => {
                let is_converted = stored.is_some();
                let stored = stored.as_mut().unwrap_or(&mut object);
                let prepared = match self.resource.kind.encode(stored) {
                    Ok(prepared) => Arc::new(prepared),
                    Err(error) => return Ok(Attempt::Decided(Err(error))),
                };
                if present.is_unchanged_by(&prepared) {
                    if is_converted {
                        object = self
                            .resource
                            .kind
                            .present_in(&present, self.resource.version)
                            .await?;
                    }
                    object.set_meta_str("resourceVersion", &revision.to_string());
                    let json = (!is_converted).then(|| prepared.served(revision));
                    let unchanged = WrittenObject { object, json };
                    return Ok(Attempt::Unchanged(unchanged, Some(prepared)));
                }
                if let Err(error) = self.check_size(&prepared, Some(&present)) {
                    return Ok(Attempt::Decided(Err(error)));
                }
                match self.store(key, &prepared, Some(revision)).await {
                    Ok(revision) => {
                        target.ctx.settle(revision);
                        let written = self.written(key, &prepared, revision, object);
                        written.await.map(Attempt::Written)
                    }
                    Err(error) => self.conflict_or_error(error, "update"),
                }
            }
            StoreAction::Delete(object) => match self.delete_stored(key, revision).await {
                // The change itself is not stored, so the response has the old resourceVersion.
                Ok(_) => Ok(Attempt::Written(object.into())),
                Err(error) => self.conflict_or_error(error, "update"),
            },
            StoreAction::Nothing(object) => Ok(Attempt::Decided(Ok(object.into()))),
            StoreAction::Keep(object) => {
                let json = present.cached().map(|cached| cached.json().into_owned());
                Ok(Attempt::Unchanged(WrittenObject { object, json }, None))
            }
        }
    }

    /// Applies a change to the present object, prepares and validates the result, and returns the operation of the store
    /// for it.
    async fn plan_change(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        key: &str,
        present: &PresentObject,
    ) -> Result<StoreAction, ApiError> {
        let before = self.present_versions(present).await?;
        let old = &before.object;
        let scaled = self.scaled(target, change, old, key).await?;
        let (changed, old_scale) = if let Some(scaled) = scaled {
            let (new, old_scale) = scaled.into_parts();
            let changed = Changed {
                sent: before.is_merged().then(|| new.clone()),
                new,
                is_unpruned: false,
            };
            (changed, Some(old_scale))
        } else {
            (self.changed(target, change, &before, key).await?, None)
        };
        let Changed {
            mut new,
            sent,
            is_unpruned,
        } = changed;
        target.ctx.pause().await?;
        self.check_version(&new, present.revision(), target.name)?;
        let draft = self.before_update(target, &mut new, &before, sent.as_ref());
        new.set_meta_str("resourceVersion", old.resource_version());
        target.ctx.pause().await?;
        let draft = self.validate_update(target, &new, old, draft)?;
        target.ctx.pause().await?;
        match &old_scale {
            Some(old_scale) => self.admit_scale(target, &new, old_scale).await?,
            None => self.admit_validation(target, &mut new, Some(old)).await?,
        }
        if is_unpruned {
            new = self.decoded_again(new)?;
        }
        managed::keep_times(&mut new, old);
        if self.is_deletion_complete(&new, old) {
            return Ok(if target.dry_run {
                StoreAction::Nothing(new)
            } else {
                StoreAction::Delete(new)
            });
        }
        let is_kept = || {
            let cached = present.cached();
            cached.is_some_and(|cached| self.is_known_by_cache(cached)) && new == *old
        };
        let is_stored = self.resource.version == self.resource.kind.storage_version;
        if !target.dry_run && is_stored && is_kept() {
            return Ok(StoreAction::Keep(new));
        }
        let stored = self.to_store(&new, draft).await?;
        if target.dry_run {
            let shown = self.as_read(new, stored.as_ref()).await?;
            let prepared = self
                .resource
                .kind
                .encode(&mut stored.unwrap_or_else(|| shown.clone()))?;
            if !present.is_unchanged_by(&prepared) {
                self.check_size(&prepared, Some(present))?;
            }
            return Ok(StoreAction::Nothing(shown));
        }
        Ok(StoreAction::Write {
            object: new,
            stored,
        })
    }

    /// Applies a change to the present object, up to the mutating phase of admission.
    async fn changed(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        before: &PresentVersions,
        key: &str,
    ) -> Result<Changed, ApiError> {
        let old = &before.object;
        let (mut is_changed, mut is_unpruned) = (true, false);
        let mut new = match change {
            Change::Replace(object) => {
                self.check_uid(object.uid(), old.uid(), target.name, key)?;
                object.clone()
            }
            Change::Patch(patch, validation) => self.patched(target, old, patch, *validation)?,
            Change::Apply(applied) => {
                let merged = self.applied(target, applied, Some(old)).await?;
                (is_changed, is_unpruned) = (merged.is_changed, merged.is_unpruned);
                merged.object
            }
            Change::Edit(change, preconditions) => {
                self.check_present(preconditions, target.namespace, old)?;
                let mut new = old.clone();
                change(&mut new).map_err(|error| ApiError::internal_text(error.to_string()))?;
                new
            }
        };
        let sent = before.is_merged().then(|| new.clone());
        target.ctx.pause().await?;
        if let Change::Patch(..) = change {
            // Of a patch kube-apiserver looks at the result alone, and says so.
            stamp::dedup_owner_references(target.ctx, &mut new, true);
        }
        if is_changed || self.resource.kind.has_hub() {
            self.default_input(target, &mut new)?;
        } else {
            // An apply that changes nothing adds no defaults, of which another version than the stored one may have others.
            wipe_input(target, &mut new);
        }
        if !matches!(change, Change::Apply(_)) {
            self.own_changes(target, &mut new, Some(old)).await;
        }
        self.admit_mutation(target, &mut new, Some(old)).await?;
        Ok(Changed {
            new,
            sent,
            is_unpruned,
        })
    }

    /// Conflict if a body has another uid than the present object.
    pub(crate) fn check_uid(
        &self,
        uid: &str,
        present: &str,
        name: &str,
        key: &str,
    ) -> Result<(), ApiError> {
        if uid.is_empty() || uid == present {
            return Ok(());
        }
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: {uid}, UID in object meta: {present}"
        );
        Err(ApiError::conflict(
            self.resource.group_resource(),
            name,
            &why,
        ))
    }

    /// Conflict if the new object has another resourceVersion than the present one. It may be absent if the kind allows
    /// unconditional updates.
    fn check_version(&self, new: &Object, present: Revision, name: &str) -> Result<(), ApiError> {
        let given =
            error::parse_version(new.resource_version()).map_err(ApiError::internal_text)?;
        if given == present.0 || (given == 0 && self.resource.def().unconditional_update) {
            return Ok(());
        }
        if given != 0 {
            return Err(self.modified(name));
        }
        let path = FieldPath::new("metadata").child("resourceVersion");
        let error = FieldError::invalid(&path, 0, "must be specified for an update");
        // kube-apiserver has the resource in place of the kind in this error.
        let resource = GroupKind::new(
            &self.resource.group_resource().group,
            &self.resource.group_resource().resource,
        );
        Err(ApiError::invalid(&resource, name, &[error]))
    }

    fn modified(&self, name: &str) -> ApiError {
        ApiError::conflict(self.resource.group_resource(), name, error::MODIFIED)
    }

    /// Restores fields that the request may not change, runs `prepare_for_update` of the strategy, and sets the
    /// generation. Returns the object in the other versions.
    fn before_update<'a>(
        &'a self,
        target: Target<'_>,
        new: &mut Object,
        before: &'a PresentVersions,
        sent: Option<&Object>,
    ) -> Result<Draft<'a>, ApiError> {
        let old = &before.object;
        self.restore_unwritten_fields(target.subresource, new, old);
        let generation = stamp::meta_number(old, "generation");
        stamp::set_meta_number(new, "generation", generation);
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if !old.meta_str(field).is_empty() {
                let value = old.meta_str(field).to_owned();
                new.set_meta_str(field, &value);
            }
        }
        if stamp::meta_number(new, "deletionGracePeriodSeconds").is_none() {
            stamp::set_meta_number(
                new,
                "deletionGracePeriodSeconds",
                stamp::meta_number(old, "deletionGracePeriodSeconds"),
            );
        }
        if new.uid().is_empty() {
            new.set_meta_str("uid", old.uid());
        }
        let draft = self.prepare_update(target, new, before, sent);
        if self.resource.def().generation == GenerationRule::Spec
            && self.draft_differs(new, before, &draft)
        {
            stamp::set_meta_number(new, "generation", Some(generation.unwrap_or(0) + 1));
        }
        draft
    }

    /// Runs `prepare_for_update` of the strategy, in its version.
    fn prepare_update<'a>(
        &'a self,
        target: Target<'_>,
        new: &mut Object,
        before: &'a PresentVersions,
        sent: Option<&Object>,
    ) -> Result<Draft<'a>, ApiError> {
        let Target {
            ctx, subresource, ..
        } = target;
        // The rules of an update apply to its replicas too.
        let is_update = subresource.is_empty() || self.is_scale(subresource);
        if is_update {
            self.prepare(new, |strategy, new| {
                strategy.prepare_for_update(ctx, new, &before.object)
            });
        }
        let comparable = self.comparable(subresource, before, sent);
        let comparable = comparable.as_ref();
        let mut hub = self.changed_in_hub(subresource, new, before, comparable)?;
        if let Some(hub) = hub.as_mut().filter(|_| is_update) {
            self.prepare_in_hub(new, hub, |strategy, HubObject { new, old }| {
                let old = old.get();
                old.is_some_and(|old| strategy.prepare_for_update(ctx, new, old))
            })?;
        }
        Ok(self.draft(subresource, new, hub, before, comparable))
    }

    /// Restores the fields that the path of the request does not write: those of the other subresources and, for a
    /// subresource that writes only one field, all others but managedFields, or but the metadata.
    pub(crate) fn restore_unwritten_fields(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
    ) {
        let def = self.resource.def();
        let writes = def.subresource(subresource).map(|sub| &sub.writes);
        match writes {
            Some(kind::Writes::Nothing) => {
                let replaced = std::mem::replace(new, old.clone());
                managed::copy_managed(new, &replaced);
            }
            Some(kind::Writes::Only(field)) => {
                let value = new.fields_mut().remove(field.as_str());
                let replaced = std::mem::replace(new, old.clone());
                new.set_field(field, value);
                managed::copy_managed(new, &replaced);
            }
            Some(kind::Writes::WithMetadata(field)) => {
                let written = [field.as_str(), "metadata"];
                let values = written.map(|field| new.fields_mut().remove(field));
                *new = old.clone();
                for (field, value) in written.into_iter().zip(values) {
                    new.set_field(field, value);
                }
            }
            // The new object is the present one with other replicas.
            Some(kind::Writes::Replicas(_)) => {}
            Some(kind::Writes::Also(_)) | None => {
                let fields = def.subresources.iter().filter_map(|sub| sub.writes.field());
                for field in fields.filter(|field| !self.is_written(subresource, field)) {
                    new.set_field(field, old.fields().get(field).cloned());
                }
            }
        }
    }

    /// Whether any field differs besides metadata and the fields of subresources.
    pub(crate) fn spec_differs(&self, new: &Object, old: &Object) -> bool {
        let counts = |name: &&String| {
            *name != "metadata"
                && !self
                    .resource
                    .def()
                    .fields_of_subresources()
                    .any(|own| own == *name)
        };
        let (new, old) = (new.fields(), old.fields());
        new.keys().filter(counts).count() != old.keys().filter(counts).count()
            || new
                .iter()
                .any(|(name, value)| counts(&name) && old.get(name) != Some(value))
    }

    /// Whether an object that is being deleted has no finalizers any more, so that it can be removed.
    fn is_deletion_complete(&self, new: &Object, old: &Object) -> bool {
        old.is_deleting()
            && stamp::meta_number(old, "deletionGracePeriodSeconds").unwrap_or(0) == 0
            && new.finalizers().is_empty()
            && !has_own_finalizers(self.resource.def(), new)
    }
}
