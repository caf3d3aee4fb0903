//! The way of a change to the store: its input, the rules for it, its validation, and the write.
//!
//! An attempt starts from the present object, and its write has the revision of that as its precondition. After a
//! conflict the attempt is repeated with the new present object. Every step, admission included, is repeated, so that
//! the object is validated against the one that it replaces.

use std::sync::Arc;

use apiloom_meta::{ApiError, Object, ResourceDef};

use super::by_code::CodeWrite;
use super::change::Change;
use super::commit::Attempt;
use super::create::Creation;
use super::delete::has_own_finalizers;
use super::preconditions::check_version;
use super::request::WriteRequest;
use super::results::WrittenObject;
use super::{Writes, stamp};
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
            let write = CodeWrite {
                writes: self,
                code: code.as_ref(),
                request,
            };
            return Box::pin(write.write(change)).await;
        }
        let key = self
            .resource
            .kind
            .keys
            .key(request.namespace, request.name)?;
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
                if present.is_unchanged_by(&self.resource.kind, &prepared) {
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
        let is_stored = self.resource.version == self.resource.kind.versions.stored;
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
            if !present.is_unchanged_by(&self.resource.kind, &prepared) {
                self.commit.check_size(&prepared, Some(present))?;
            }
            return Ok(StoreAction::Nothing(shown));
        }
        Ok(StoreAction::Write {
            object: new,
            stored,
        })
    }
}

/// Whether an object that is being deleted has no finalizers any more, so that it can be removed.
fn is_deletion_complete(def: &ResourceDef, new: &Object, old: &Object) -> bool {
    old.is_deleting()
        && stamp::meta_number(old, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && new.finalizers().is_empty()
        && !has_own_finalizers(def, new)
}
