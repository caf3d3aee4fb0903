//! update: a changed object over the present one, and what update and patch share.
//!
//! An attempt changes what is there and writes if nothing else was written meanwhile; else there is another one with
//! what is there now. Every step, admission included, is repeated, so what is written was judged against what it
//! replaces.

use std::sync::Arc;

use apiloom_meta::kind::{self, GenerationRule};
use apiloom_meta::patch::Patch;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, Object};
use apiloom_storage::Revision;

use super::Writes;
use super::attempt::Attempt;
use super::create::Creation;
use super::delete::has_own_finalizers;
use super::draft::{Before, Draft, InHub};
use super::stamp;
use super::stamp::put_field;
use super::target::Target;
use super::written::Written;
use crate::registry::error;
use crate::registry::objects::present::Present;
use crate::registry::options::{FieldValidation, RequestContext, UpdateOptions};

/// What a write does to the present object.
pub(crate) enum Change<'a> {
    /// Puts another in its place.
    Replace(Object),
    /// Changes parts of it.
    Patch(&'a Patch, FieldValidation),
}

/// What is to be done for a change.
enum Step {
    /// To write the object, or in its place the document that it is in the version that is stored.
    Write {
        object: Object,
        stored: Option<Object>,
    },
    /// To remove the object, as this state of it has nothing more that holds it back.
    Remove(Object),
    /// Nothing: the change is only tried, or changes nothing.
    Nothing(Object),
}

impl Writes {
    /// Replaces an object, or its status with `subresource == "status"`; `true` when it was created.
    ///
    /// # Errors
    /// The errors of the API's update.
    pub async fn update(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        mut object: Object,
        options: &UpdateOptions,
    ) -> Result<(Written, bool), ApiError> {
        self.set_type(&mut object);
        self.match_name(&object, name)?;
        self.match_namespace(&mut object, namespace)?;
        let target = Target {
            ctx,
            namespace,
            name,
            subresource,
            dry_run: options.dry_run,
        };
        self.write(target, &Change::Replace(object)).await
    }

    /// What update and patch do; `true` when the object was created.
    pub(crate) async fn write(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
    ) -> Result<(Written, bool), ApiError> {
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
        let attempt = |present: Option<Present>| {
            created = present.is_none();
            self.attempt(target, change, &key, present)
        };
        let written = self.carry_out(&key, "update", attempt).await?;
        // A creation shows its own.
        if !created {
            self.warn(target.ctx, &written.object);
        }
        Ok((written, created))
    }

    async fn attempt_create(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        key: &str,
    ) -> Result<Attempt<Written>, ApiError> {
        let Change::Replace(object) = change else {
            return Err(self.resource.not_found(target.name));
        };
        if !self.resource.def().create_on_update || !target.subresource.is_empty() {
            return Err(self.resource.not_found(target.name));
        }
        self.check_uid(object, "", target.name, key)?;
        let mut object = object.clone();
        stamp::wipe_for_create(&mut object);
        object.set_meta_str("resourceVersion", "");
        self.admit_mutation(target, &mut object, None).await?;
        Ok(match self.create_once(target, object).await? {
            Creation::Created(written) => Attempt::Done(written),
            Creation::Taken(entry) => Attempt::Raced(Some(Present::Stored(entry))),
        })
    }

    async fn attempt(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        key: &str,
        present: Option<Present>,
    ) -> Result<Attempt<Written>, ApiError> {
        let Some(present) = present else {
            return self.attempt_create(target, change, key).await;
        };
        self.resource.reserve(target.ctx, present.len()).await;
        let revision = present.revision();
        let step = match self.judge_change(target, change, key, &present).await {
            Ok(step) => step,
            Err(error) => return Ok(Attempt::Judged(Err(error))),
        };
        match step {
            Step::Write {
                mut object,
                mut stored,
            } => {
                let is_converted = stored.is_some();
                let stored = stored.as_mut().unwrap_or(&mut object);
                let prepared = match self.resource.kind.encode(stored) {
                    Ok(prepared) => Arc::new(prepared),
                    Err(error) => return Ok(Attempt::Judged(Err(error))),
                };
                if present.holds(&prepared) {
                    if is_converted {
                        object = self
                            .resource
                            .kind
                            .present_in(&present, self.resource.version)
                            .await?;
                    }
                    object.set_meta_str("resourceVersion", &revision.to_string());
                    return Ok(Attempt::Judged(Ok(object.into())));
                }
                if let Err(error) = self.check_size(&prepared, Some(&present)) {
                    return Ok(Attempt::Judged(Err(error)));
                }
                match self.store(key, &prepared, Some(revision)).await {
                    Ok(revision) => self
                        .written(key, &prepared, revision, object)
                        .await
                        .map(Attempt::Done),
                    Err(error) => self.raced(error, "update"),
                }
            }
            Step::Remove(object) => match self.resource.kind.store_delete(key, revision).await {
                // The change itself is not written, so the answer shows the old resourceVersion.
                Ok(_) => Ok(Attempt::Done(object.into())),
                Err(error) => self.raced(error, "update"),
            },
            Step::Nothing(object) => Ok(Attempt::Judged(Ok(object.into()))),
        }
    }

    /// Everything between what is present and what is to be written.
    async fn judge_change(
        &self,
        target: Target<'_>,
        change: &Change<'_>,
        key: &str,
        present: &Present,
    ) -> Result<Step, ApiError> {
        let mut before = self.read_before(present).await?;
        let old = &before.object;
        let mut new = match change {
            Change::Replace(object) => {
                self.check_uid(object, old.uid(), target.name, key)?;
                object.clone()
            }
            Change::Patch(patch, validation) => self.patched(target, old, patch, *validation)?,
        };
        let sent = before.is_converted().then(|| new.clone());
        target.ctx.pause().await;
        self.admit_mutation(target, &mut new, Some(old)).await?;
        target.ctx.pause().await;
        self.check_version(&new, present.revision(), target.name)?;
        let draft = self.before_update(target, &mut new, &before, sent.as_ref());
        let old = &mut before.object;
        new.set_meta_str("resourceVersion", old.resource_version());
        target.ctx.pause().await;
        let draft = self.validate_update(target.ctx, &mut new, old, draft)?;
        target.ctx.pause().await;
        self.admit_validation(target, &mut new, Some(old)).await?;
        if self.is_released(&new, old) {
            return Ok(match target.dry_run {
                true => Step::Nothing(new),
                false => Step::Remove(new),
            });
        }
        let stored = self.to_store(&new, draft).await?;
        if target.dry_run {
            let shown = self.as_read(new, stored.as_ref()).await?;
            let prepared = self
                .resource
                .kind
                .encode(&mut stored.unwrap_or_else(|| shown.clone()))?;
            if !present.holds(&prepared) {
                self.check_size(&prepared, Some(present))?;
            }
            return Ok(Step::Nothing(shown));
        }
        Ok(Step::Write {
            object: new,
            stored,
        })
    }

    /// The uid of a body, when it has one, must be the present object's.
    fn check_uid(
        &self,
        object: &Object,
        present: &str,
        name: &str,
        key: &str,
    ) -> Result<(), ApiError> {
        let uid = object.uid();
        if uid.is_empty() || uid == present {
            return Ok(());
        }
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: {uid}, UID in object meta: {present}"
        );
        Err(ApiError::conflict(&self.resource.kind.resource, name, &why))
    }

    /// The resourceVersion of the new object must be the present one's, or be unset where the kind allows that.
    fn check_version(&self, new: &Object, present: Revision, name: &str) -> Result<(), ApiError> {
        let given =
            error::parse_version(new.resource_version()).map_err(ApiError::internal_text)?;
        if given == present.0 || (given == 0 && self.resource.def().unconditional_update) {
            return Ok(());
        }
        if given != 0 {
            return Err(ApiError::conflict(
                &self.resource.kind.resource,
                name,
                error::MODIFIED,
            ));
        }
        let path = FieldPath::new("metadata").child("resourceVersion");
        let error = FieldError::invalid(&path, 0, "must be specified for an update");
        // The resource stands where the kind should: upstream does not know the kind there, and clients see it so.
        let resource = GroupKind::new(
            &self.resource.kind.resource.group,
            &self.resource.kind.resource.resource,
        );
        Err(ApiError::invalid(&resource, name, &[error]))
    }

    /// Keeps what the request may not change, then lets the kind's rules prepare the object; gives it in the other versions.
    fn before_update(
        &self,
        target: Target<'_>,
        new: &mut Object,
        before: &Before,
        sent: Option<&Object>,
    ) -> Result<Draft, ApiError> {
        let old = &before.object;
        self.isolate(target.subresource, new, old);
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

    /// Lets the kind's rules prepare a changed object, in the version that they are of.
    fn prepare_update(
        &self,
        target: Target<'_>,
        new: &mut Object,
        before: &Before,
        sent: Option<&Object>,
    ) -> Result<Draft, ApiError> {
        let Target {
            ctx, subresource, ..
        } = target;
        if subresource.is_empty() {
            self.prepare(new, |strategy, new| {
                strategy.prepare_for_update(ctx, new, &before.object)
            });
        }
        let comparable = self.comparable(subresource, before, sent);
        let comparable = comparable.as_ref();
        let mut hub = self.changed_in_hub(subresource, new, before, comparable)?;
        if let Some(hub) = hub.as_mut().filter(|_| subresource.is_empty()) {
            self.prepare_in_hub(new, hub, |strategy, InHub { new, old }| {
                let old = old.as_ref();
                old.is_some_and(|old| strategy.prepare_for_update(ctx, new, old))
            })?;
        }
        Ok(self.draft(subresource, new, hub, before, comparable))
    }

    /// Undoes what the path does not write: what belongs to a subresource on the others, and all else on one that writes
    /// a field only.
    pub(crate) fn isolate(&self, subresource: &str, new: &mut Object, old: &Object) {
        let def = self.resource.def();
        let writes = def.subresource(subresource).map(|sub| &sub.writes);
        match writes {
            Some(kind::Writes::Nothing) => *new = old.clone(),
            Some(kind::Writes::Only(field)) => {
                let value = new.fields_mut().remove(field.as_str());
                *new = old.clone();
                put_field(new, field, value);
            }
            Some(kind::Writes::Also(_)) | None => {
                let own = writes.and_then(kind::Writes::field);
                let fields = def.subresources.iter().filter_map(|sub| sub.writes.field());
                for field in fields.filter(|field| Some(*field) != own) {
                    put_field(new, field, old.fields().get(field).cloned());
                }
            }
        }
    }

    /// Whether anything but metadata and the fields of subresources differs.
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

    /// Whether the last thing that held back a deletion is gone.
    fn is_released(&self, new: &Object, old: &Object) -> bool {
        old.is_deleting()
            && stamp::meta_number(old, "deletionGracePeriodSeconds").unwrap_or(0) == 0
            && new.finalizers().is_empty()
            && !has_own_finalizers(self.resource.def(), new)
    }
}
