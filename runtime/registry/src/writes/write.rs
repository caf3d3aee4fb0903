//! The way of a change to the store: its input, the rules for it, its validation, and the write.
//!
//! An attempt starts from the present object, and its write has the revision of that as its precondition. After a
//! conflict the attempt is repeated with the new present object. Every step, admission included, is repeated, so that
//! the object is validated against the one that it replaces.

use std::sync::Arc;

use apiloom_meta::kind::GenerationRule;
use apiloom_meta::{ApiError, Object, ResourceDef};

use super::change::{Change, Input, PassedStages};
use super::commit::Attempt;
use super::create::Creation;
use super::delete::has_own_finalizers;
use super::preconditions::check_version;
use super::request::WriteRequest;
use super::results::WrittenObject;
use super::rules::wipe_input;
use super::versions::{Draft, HubObject, PresentVersions};
use super::{Writes, fields, managed, stamp};
use crate::objects::present_object::PresentObject;

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

/// The objects of an update: that of the request in all versions that it needs, and the change of it.
struct Update<'a> {
    request: WriteRequest<'a>,
    change: &'a dyn Change,
    before: &'a PresentVersions,
    /// The object as it was sent, if the change is applied to other versions too.
    sent: Option<Object>,
}

impl Writes {
    /// Writes a change of an object. Returns `true` if the object was created.
    pub(super) async fn write(
        &self,
        request: WriteRequest<'_>,
        change: &dyn Change,
    ) -> Result<(WrittenObject, bool), ApiError> {
        let def = self.resource.def();
        if !request.subresource.is_empty() && def.subresource(request.subresource).is_none() {
            return Err(ApiError::no_such_resource());
        }
        let of_scale = self.change_of_scale(request.subresource, change);
        let change = match &of_scale {
            Some(of_scale) => of_scale,
            None => change,
        };
        if let Some(code) = self.resource.writer() {
            return Box::pin(self.write_by_code(code.as_ref(), request, change)).await;
        }
        let key = self.resource.kind.key(request.namespace, request.name)?;
        let mut created = false;
        let attempt = |present: Option<PresentObject>| {
            created = present.is_none();
            self.attempt(request, change, &key, present)
        };
        let written = self
            .commit
            .retry_on_conflict(&key, "update", attempt)
            .await?;
        Ok((change.response(written)?, created))
    }

    async fn attempt_create(
        &self,
        request: WriteRequest<'_>,
        change: &dyn Change,
    ) -> Result<Attempt<WrittenObject>, ApiError> {
        let (object, is_unpruned) = self.absent_input(request, change).await?;
        let created = self.create_once(request, object, is_unpruned).await?;
        Ok(match created {
            Creation::Created(written) => Attempt::Written(written),
            Creation::Exists(entry) => Attempt::Conflict(Some(PresentObject::Stored(entry))),
        })
    }

    /// The new object of a change that finds none, after the mutating phase of admission, and whether it is not pruned yet.
    ///
    /// # Errors
    /// NotFound if the change creates no object, and those of the steps.
    pub(super) async fn absent_input(
        &self,
        request: WriteRequest<'_>,
        change: &dyn Change,
    ) -> Result<(Object, bool), ApiError> {
        let input = if request.subresource.is_empty() {
            change.on_absent(self, request).await?
        } else {
            None
        };
        let Some(input) = input else {
            return Err(self.resource.not_found(request.name));
        };
        let mut object = input.object;
        stamp::wipe_for_create(&mut object);
        object.set_meta_str("resourceVersion", "");
        self.rules.default_input(request, &mut object)?;
        if input.passed == PassedStages::None {
            self.owners.own_changes(request, &mut object, None).await;
        }
        self.rules
            .admit_mutation(request, &mut object, None)
            .await?;
        Ok((object, input.is_unpruned))
    }

    async fn attempt(
        &self,
        request: WriteRequest<'_>,
        change: &dyn Change,
        key: &str,
        present: Option<PresentObject>,
    ) -> Result<Attempt<WrittenObject>, ApiError> {
        let Some(present) = present else {
            return self.attempt_create(request, change).await;
        };
        self.resource.reserve(request.ctx, present.len()).await;
        let revision = present.revision();
        let action = match self.plan(request, change, &present).await {
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
                if let Err(error) = self.commit.check_size(&prepared, Some(&present)) {
                    return Ok(Attempt::Decided(Err(error)));
                }
                match self.commit.store(key, &prepared, Some(revision)).await {
                    Ok(revision) => {
                        request.ctx.settle(revision);
                        let written = self.commit.written(key, &prepared, revision, object);
                        written.await.map(Attempt::Written)
                    }
                    Err(error) => self.commit.conflict_or_error(error, "update"),
                }
            }
            StoreAction::Delete(object) => match self.commit.delete_stored(key, revision).await {
                // The change itself is not stored, so the response has the old resourceVersion.
                Ok(_) => Ok(Attempt::Written(object.into())),
                Err(error) => self.commit.conflict_or_error(error, "update"),
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
    async fn plan(
        &self,
        request: WriteRequest<'_>,
        change: &dyn Change,
        present: &PresentObject,
    ) -> Result<StoreAction, ApiError> {
        let before = self.versions.present_versions(present).await?;
        let old = &before.object;
        let check = |new: &Object| check_version(&self.resource, request, new, present.revision());
        let (new, draft) = self.judged(request, change, &before, &check).await?;
        if is_deletion_complete(self.resource.def(), &new, old) {
            return Ok(if request.dry_run {
                StoreAction::Nothing(new)
            } else {
                StoreAction::Delete(new)
            });
        }
        let is_kept = || {
            let cached = present.cached();
            cached.is_some_and(|cached| self.commit.is_known_by_cache(cached)) && new == *old
        };
        let is_stored = self.resource.version == self.resource.kind.storage_version;
        if !request.dry_run && is_stored && is_kept() {
            return Ok(StoreAction::Keep(new));
        }
        let stored = self.versions.to_store(&new, draft).await?;
        if request.dry_run {
            let shown = self.versions.as_read(new, stored.as_ref()).await?;
            let prepared = self
                .resource
                .kind
                .encode(&mut stored.unwrap_or_else(|| shown.clone()))?;
            if !present.is_unchanged_by(&prepared) {
                self.commit.check_size(&prepared, Some(present))?;
            }
            return Ok(StoreAction::Nothing(shown));
        }
        Ok(StoreAction::Write {
            object: new,
            stored,
        })
    }

    /// The object that a change makes of the present one: prepared, validated and admitted. `check` compares its
    /// resourceVersion with that of the present one.
    ///
    /// # Errors
    /// Those of the change and of the steps.
    pub(super) async fn judged<'a>(
        &'a self,
        request: WriteRequest<'a>,
        change: &'a dyn Change,
        before: &'a PresentVersions,
        check: &(dyn Fn(&Object) -> Result<(), ApiError> + Send + Sync),
    ) -> Result<(Object, Draft<'a>), ApiError> {
        let old = &before.object;
        let mut input = change.on_present(self, request, old).await?;
        let sent = before.is_merged().then(|| input.object.clone());
        request.ctx.pause().await?;
        let (is_unpruned, shown) = (input.is_unpruned, input.shown.take());
        let mut new = self.passed_input(request, input, old).await?;
        request.ctx.pause().await?;
        check(&new)?;
        let update = Update {
            request,
            change,
            before,
            sent,
        };
        let draft = self.before_update(&update, &mut new);
        new.set_meta_str("resourceVersion", old.resource_version());
        request.ctx.pause().await?;
        let draft = self.judge.validate_update(request, &new, old, draft)?;
        request.ctx.pause().await?;
        let shown = shown.as_ref().unwrap_or(old);
        change.admit(self, request, &mut new, shown).await?;
        if is_unpruned {
            new = self.decoder.decoded_again(new)?;
        }
        managed::keep_times(&mut new, old);
        Ok((new, draft))
    }

    /// The object of an input after the steps that it has not passed yet: defaults, owners, the mutating phase of admission.
    async fn passed_input(
        &self,
        request: WriteRequest<'_>,
        input: Input,
        old: &Object,
    ) -> Result<Object, ApiError> {
        let mut new = input.object;
        if input.passed == PassedStages::Admission {
            return Ok(new);
        }
        if input.is_patched {
            stamp::dedup_owner_references(request.ctx, &mut new, true);
        }
        match input.passed {
            // An apply that changes nothing adds no defaults, of which another version than the stored one may have others.
            PassedStages::Owners { is_changed: false } if !self.resource.kind.has_hub() => {
                wipe_input(request, &mut new);
            }
            _ => self.rules.default_input(request, &mut new)?,
        }
        if input.passed == PassedStages::None {
            self.owners.own_changes(request, &mut new, Some(old)).await;
        }
        self.rules
            .admit_mutation(request, &mut new, Some(old))
            .await?;
        Ok(new)
    }

    /// Restores fields that the request may not change, runs `prepare_for_update` of the strategy, and sets the
    /// generation. Returns the object in the other versions.
    fn before_update<'a>(
        &'a self,
        update: &Update<'a>,
        new: &mut Object,
    ) -> Result<Draft<'a>, ApiError> {
        let (def, old) = (self.resource.def(), &update.before.object);
        fields::restore_unwritten(def, update.request.subresource, new, old);
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
        let draft = self.prepare_update(update, new);
        if def.generation == GenerationRule::Spec
            && self.versions.draft_differs(new, update.before, &draft)
        {
            stamp::set_meta_number(new, "generation", Some(generation.unwrap_or(0) + 1));
        }
        draft
    }

    /// Runs `prepare_for_update` of the strategy, in its version.
    fn prepare_update<'a>(
        &'a self,
        update: &Update<'a>,
        new: &mut Object,
    ) -> Result<Draft<'a>, ApiError> {
        let Update {
            request, before, ..
        } = *update;
        let WriteRequest {
            ctx, subresource, ..
        } = request;
        let (rules, versions) = (&self.rules, &self.versions);
        let is_of_object = update.change.is_update_of_object(request);
        if is_of_object {
            rules.prepare(new, |strategy, new| {
                strategy.prepare_for_update(ctx, new, &before.object)
            });
        }
        let comparable = versions.comparable(subresource, before, update.sent.as_ref());
        let comparable = comparable.as_ref();
        let mut hub = versions.changed_in_hub(subresource, new, before, comparable)?;
        if let Some(hub) = hub.as_mut().filter(|_| is_of_object) {
            rules.prepare_in_hub(new, hub, |strategy, HubObject { new, old }| {
                let old = old.get();
                old.is_some_and(|old| strategy.prepare_for_update(ctx, new, old))
            })?;
        }
        Ok(versions.draft(subresource, new, hub, before, comparable))
    }
}

/// Whether an object that is being deleted has no finalizers any more, so that it can be removed.
fn is_deletion_complete(def: &ResourceDef, new: &Object, old: &Object) -> bool {
    old.is_deleting()
        && stamp::meta_number(old, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && new.finalizers().is_empty()
        && !has_own_finalizers(def, new)
}
