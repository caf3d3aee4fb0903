//! The stages that an object passes between a change and the store: defaults, owners, admission, the strategy, validation.

use apiloom_meta::kind::GenerationRule;
use apiloom_meta::{ApiError, Object};

use super::change::{Change, Input, PassedStages};
use super::request::WriteRequest;
use super::rules::wipe_input;
use super::versions::{Draft, HubObject, PresentVersions};
use super::{Writes, fields, managed, stamp};
use crate::error;

/// The objects of an update: that of the request in all versions that it needs, and the change of it.
struct Update<'a> {
    request: WriteRequest<'a>,
    change: &'a dyn Change,
    before: &'a PresentVersions,
    /// The object as it was sent, if the change is applied to other versions too.
    sent: Option<Object>,
}

impl Writes {
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
        self.pass_input(request, &mut object, None, input.passed)
            .await?;
        Ok((object, input.is_unpruned))
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
        let Input {
            object: mut new,
            passed,
            is_patched,
            is_unpruned,
            shown,
        } = change.on_present(self, request, old).await?;
        let sent = before.is_merged().then(|| new.clone());
        request.ctx.pause().await?;
        if is_patched {
            stamp::dedup_owner_references(request.ctx, &mut new, true);
        }
        self.pass_input(request, &mut new, Some(old), passed)
            .await?;
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

    /// Passes an object through the steps of an input that it has not passed yet: defaults, owners, the mutating phase of
    /// admission. `old` is the present object.
    ///
    /// # Errors
    /// RequestEntityTooLarge if the defaults make it too large, and those of admission.
    pub(super) async fn pass_input(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
        old: Option<&Object>,
        passed: PassedStages,
    ) -> Result<(), ApiError> {
        match passed {
            PassedStages::Admission => return Ok(()),
            // An apply that changes nothing adds no defaults, of which another version than the stored one may have others.
            PassedStages::Owners { is_changed: false }
                if !self.resource.kind.versions.has_hub() =>
            {
                wipe_input(request, object);
            }
            _ => self.rules.default_input(request, object)?,
        }
        if passed == PassedStages::None {
            self.owners.own_changes(request, object, old).await;
        }
        self.rules.admit_mutation(request, object, old).await
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

    /// Prepares and validates a new object, then runs the validating phase of admission. Returns the object in the
    /// other versions.
    pub(super) async fn prepare_and_validate(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
    ) -> Result<Draft<'static>, ApiError> {
        self.decoder.match_namespace(object, request.namespace)?;
        request.ctx.pause().await?;
        let draft = self.before_create(request, object);
        request.ctx.pause().await?;
        let draft = self.judge.validate_create(request, object, draft)?;
        request.ctx.pause().await?;
        self.rules.admit_validation(request, object, None).await?;
        if error::parse_version(object.resource_version()).is_ok_and(|version| version != 0) {
            return Err(ApiError::internal_text(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        object.set_meta_str("resourceVersion", "");
        Ok(draft)
    }

    /// Sets uid, creation time and generation, resets the fields of subresources, and runs `prepare_for_create` of the
    /// strategy. Returns the object in the other versions.
    fn before_create(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
    ) -> Result<Draft<'static>, ApiError> {
        stamp::stamp_created(object, self.now());
        if self.resource.def().generation == GenerationRule::Spec {
            stamp::set_meta_number(object, "generation", Some(1));
        }
        let mut is_reset = false;
        for field in self.resource.def().fields_of_subresources() {
            is_reset |= object.fields().contains_key(field);
            object.set_field(field, None);
        }
        if is_reset && !self.resource.def().dialect.defaults_reset_fields_late {
            self.resource
                .kind
                .versions
                .default(object, self.resource.version);
        }
        self.prepare_create(request, object)
    }

    /// Runs `prepare_for_create` of the strategy, in its version.
    pub(super) fn prepare_create(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
    ) -> Result<Draft<'static>, ApiError> {
        self.rules.prepare(object, |strategy, object| {
            strategy.prepare_for_create(request.ctx, object)
        });
        let mut hub = self.versions.new_in_hub(object)?;
        if let Some(hub) = &mut hub {
            self.rules
                .prepare_in_hub(object, hub, |strategy, HubObject { new, .. }| {
                    strategy.prepare_for_create(request.ctx, new)
                })?;
        }
        Ok(Draft::of_new(hub))
    }
}
