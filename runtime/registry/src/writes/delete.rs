//! delete: removes an object, or sets its deletionTimestamp if it has finalizers or a grace period.

use std::sync::Arc;

use apiloom_meta::kind::{DeletionRule, Dependents, ObjectDeletion};
use apiloom_meta::{ApiError, GroupResource, JsonPath, Object, ResourceDef, StatusDetails, Time};
use apiloom_storage::{Revision, StorageError};
use serde_json::Value;

use super::by_code::CodeWrite;
use super::commit::Attempt;
use super::graceful::{self, Grace};
use super::request::WriteRequest;
use super::results::DeleteResult;
use super::{Writes, stamp};
use crate::objects::code::Write;
use crate::objects::present_object::PresentObject;
use crate::options::{DeleteOptions, PropagationPolicy, RequestContext};

/// The finalizer that makes the garbage collector orphan the dependents.
const ORPHAN: &str = "orphan";

/// The finalizer that makes the garbage collector delete the dependents first.
const FOREGROUND: &str = "foregroundDeletion";

/// What a delete does to an object in the store.
enum Deletion {
    /// It stays, in this state.
    Marked(Object),
    /// It gets this state, which watches show, and is then removed.
    MarkedThenRemoved(Object),
    /// It is removed.
    Removed,
}

impl Writes {
    /// Deletes an object, or marks it for deletion if it has finalizers or a grace period.
    ///
    /// # Errors
    /// NotFound, Conflict if a precondition fails, and those of admission.
    pub async fn delete(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteResult, ApiError> {
        let key = self.resource.kind.keys.key(namespace, name)?;
        let request = WriteRequest::new(ctx, namespace, name).dry(options.dry_run);
        let delete = Delete {
            writes: self,
            request,
            options,
            key: &key,
        };
        if let Some(code) = self.resource.writer() {
            return Box::pin(delete.by_code(code.as_ref())).await;
        }
        let attempt = |present| delete.attempt(present);
        self.commit.retry_on_conflict(&key, "delete", attempt).await
    }
}

/// A request to delete an object, which may take several attempts.
#[derive(Clone, Copy)]
struct Delete<'a> {
    writes: &'a Writes,
    request: WriteRequest<'a>,
    options: &'a DeleteOptions,
    key: &'a str,
}

impl Delete<'_> {
    async fn attempt(
        self,
        present: Option<PresentObject>,
    ) -> Result<Attempt<DeleteResult>, ApiError> {
        let resource = &self.writes.resource;
        let present = present.ok_or_else(|| resource.not_found(self.request.name))?;
        resource.reserve(self.request.ctx, present.len()).await;
        let (stored, old) = match self.check(&present).await {
            Ok(objects) => objects,
            Err(error) => return Ok(Attempt::Decided(Err(error))),
        };
        let deletion = match &resource.kind.versions.stored_version().def.deletion {
            DeletionRule::Object(rule) => self.of_object(rule, &stored, &old).await,
            DeletionRule::Container { finalizers, phase } => {
                let now = self.writes.now();
                Ok(container_deletion(&stored, finalizers, phase, now))
            }
        };
        let revision = present.revision();
        match deletion {
            Ok(Deletion::Marked(marked)) => self.mark(&stored, marked, revision, false).await,
            Ok(Deletion::MarkedThenRemoved(marked)) => {
                self.mark(&stored, marked, revision, true).await
            }
            Ok(Deletion::Removed) => self.remove(old, revision).await,
            Err(error) => Ok(Attempt::Decided(Err(error))),
        }
    }

    /// Deletes an object by code, after the checks.
    async fn by_code(self, code: &dyn Write) -> Result<DeleteResult, ApiError> {
        let (writes, request) = (self.writes, self.request);
        let write = CodeWrite {
            writes,
            code,
            request,
        };
        let present = write.present().await?;
        let present = present.ok_or_else(|| writes.resource.not_found(request.name))?;
        self.check_preconditions(&present)?;
        writes.rules.admit_deletion(request, &present).await?;
        let left = code.delete(request.ctx, &present, self.options).await?;
        Ok(match left {
            Some(left) => DeleteResult::Pending(write.kept(left)?),
            None => self.delete_result(present, None),
        })
    }

    /// The deletion of an object that is no container; `old` is the stored object in the version of the request.
    async fn of_object(
        self,
        rule: &ObjectDeletion,
        stored: &Object,
        old: &Object,
    ) -> Result<Deletion, ApiError> {
        let requested = graceful::requested(self.options.grace_period_seconds);
        let (now, rules) = (self.writes.now(), &self.writes.rules);
        let prepared = rules.prepared_for_delete(self.request, stored);
        if let Some(marked) = prepared.as_ref().filter(|one| !one.finalizers().is_empty()) {
            return Ok(Deletion::Marked(graceful::held(marked.clone(), now)));
        }
        let stored = prepared.as_ref().unwrap_or(stored);
        let mut marked = stored.clone();
        let grace = match rule.grace_seconds {
            None => Grace::Over,
            Some(_) if stored.is_deleting() => graceful::shorten(&mut marked, requested, now),
            Some(default) => {
                let seconds = rules.grace_seconds(self.request, stored, old, requested);
                let seconds = seconds.await?;
                graceful::begin(&mut marked, seconds.unwrap_or_else(|| default.into()), now)
            }
        };
        // Without a change of the grace period the finalizers do not change either.
        if grace == Grace::Pending {
            return Ok(Deletion::Marked(marked));
        }
        set_finalizers(
            &mut marked,
            finalizers_for(stored, self.options, rule.dependents),
        );
        let is_held = !marked.finalizers().is_empty();
        Ok(match grace {
            Grace::Over if is_held => {
                graceful::mark_now(&mut marked, now);
                Deletion::Marked(marked)
            }
            Grace::Over => Deletion::Removed,
            Grace::Set(0) if !is_held => Deletion::MarkedThenRemoved(marked),
            Grace::Set(_) | Grace::Pending => Deletion::Marked(marked),
        })
    }

    /// Checks preconditions and admission. Returns the object in the version in which it is marked, and in that of the request.
    async fn check(self, present: &PresentObject) -> Result<(Object, Object), ApiError> {
        let resource = &self.writes.resource;
        let (kind, version) = (&resource.kind, resource.version);
        // The object is marked in the storage version, so that no field is lost by conversion; that of a kind without a hub in
        // the version of the request, as every write.
        let versions = &kind.versions;
        let (stored, old) = if versions.has_hub() {
            let stored = kind.present_in(present, versions.stored).await?;
            let old = versions.convert(stored.clone(), versions.stored, version)?;
            (stored, old)
        } else {
            let old = kind.present_in(present, version).await?;
            (old.clone(), old)
        };
        self.check_preconditions(&old)?;
        self.writes.rules.admit_deletion(self.request, &old).await?;
        Ok((stored, old))
    }

    /// Conflict if the uid or resourceVersion of the preconditions is another one. As in kube-apiserver, the error has
    /// the kind in place of the resource, unless the kind checks them by itself.
    fn check_preconditions(self, present: &Object) -> Result<(), ApiError> {
        let (preconditions, resource) = (&self.options.preconditions, &self.writes.resource);
        let wanted_uid = ("UID", &preconditions.uid, present.uid());
        let wanted_version = &preconditions.resource_version;
        let wanted_version = (
            "ResourceVersion",
            wanted_version,
            present.resource_version(),
        );
        for (what, wanted, found) in [wanted_uid, wanted_version] {
            let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) else {
                continue;
            };
            if self.writes.rules.begins_deletion() {
                let why = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                );
                let resource = resource.group_resource();
                return Err(ApiError::conflict(resource, present.name(), &why));
            }
            let happened = match what {
                "UID" => "deleted and then recreated",
                _ => "modified",
            };
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object \
                 might have been {happened}"
            );
            let kind = resource.group_kind();
            let kind = GroupResource::new(&kind.group, &kind.kind);
            return Err(ApiError::conflict(&kind, present.name(), &why));
        }
        Ok(())
    }

    /// Converts a marked object to the storage version, and returns it as a read in the version of the request shows it.
    ///
    /// # Errors
    /// The error of a conversion.
    async fn stored_and_shown(self, marked: &mut Object) -> Result<Object, ApiError> {
        let resource = &self.writes.resource;
        let (versions, version) = (&resource.kind.versions, resource.version);
        if !versions.has_hub() {
            *marked = versions
                .stored_object(std::mem::take(marked), version)
                .await?;
        }
        versions
            .object_in(marked.clone(), versions.stored, version)
            .await
    }

    /// Stores an object that is marked for deletion. It stays until its finalizers are removed, or until a client removes it at
    /// the end of its grace period; if the period `is_over`, it is removed now.
    async fn mark(
        self,
        stored: &Object,
        mut marked: Object,
        revision: Revision,
        is_over: bool,
    ) -> Result<Attempt<DeleteResult>, ApiError> {
        let unchanged = marked == *stored;
        let mut answer = match self.stored_and_shown(&mut marked).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Attempt::Decided(Err(error))),
        };
        if self.request.dry_run || unchanged && !is_over {
            let result = if is_over {
                self.delete_result(answer, None)
            } else {
                DeleteResult::Pending(answer)
            };
            return Ok(Attempt::Decided(Ok(result)));
        }
        let prepared = Arc::new(self.writes.resource.kind.encode(&mut marked)?);
        let commit = &self.writes.commit;
        match commit.store(self.key, &prepared, Some(revision)).await {
            Ok(revision) => {
                answer.set_meta_str("resourceVersion", &revision.to_string());
                Ok(Attempt::Written(if is_over {
                    self.remove_marked(answer, revision).await?
                } else {
                    DeleteResult::Pending(answer)
                }))
            }
            Err(error) => commit.conflict_or_error(error, "delete"),
        }
    }

    /// Removes an object that was stored with a grace period of 0. Other clients may change or remove it meanwhile. After a
    /// failure it stays in the store with that period, and the next delete removes it.
    async fn remove_marked(
        self,
        mut last: Object,
        mut revision: Revision,
    ) -> Result<DeleteResult, ApiError> {
        let resource = &self.writes.resource;
        let kind = &resource.kind;
        loop {
            let present = match self.writes.commit.delete_stored(self.key, revision).await {
                Ok(revision) => return Ok(self.delete_result(last, Some(revision))),
                Err(StorageError::Conflict { present, .. }) => present.map(PresentObject::Stored),
                Err(error) => return Err(kind.error(error, "delete")),
            };
            let Some(present) = present else {
                return Ok(self.delete_result(last, None));
            };
            let object = kind.present_in(&present, resource.version).await?;
            // A new object has the name now: the old one is gone.
            if object.uid() != last.uid() {
                return Ok(self.delete_result(last, None));
            }
            // Another delete, with a propagation policy, came first.
            if !object.finalizers().is_empty() {
                return Ok(DeleteResult::Pending(object));
            }
            revision = present.revision();
            last = object;
        }
    }

    async fn remove(
        self,
        old: Object,
        revision: Revision,
    ) -> Result<Attempt<DeleteResult>, ApiError> {
        if self.request.dry_run {
            return Ok(Attempt::Decided(Ok(self.delete_result(old, None))));
        }
        match self.writes.commit.delete_stored(self.key, revision).await {
            Ok(revision) => Ok(Attempt::Written(self.delete_result(old, Some(revision)))),
            Err(error) => self.writes.commit.conflict_or_error(error, "delete"),
        }
    }

    fn delete_result(self, mut old: Object, revision: Option<Revision>) -> DeleteResult {
        let resource = &self.writes.resource;
        if resource.def().deletion.returns_object() {
            if let Some(revision) = revision {
                old.set_meta_str("resourceVersion", &revision.to_string());
            }
            return DeleteResult::LastState(old);
        }
        DeleteResult::Gone(StatusDetails {
            name: old.name().to_owned(),
            group: resource.group_resource().group.clone(),
            kind: resource.group_resource().resource.clone(),
            uid: old.uid().to_owned(),
            ..StatusDetails::default()
        })
    }
}

/// Sets the list of finalizers, or removes it if it is empty.
fn set_finalizers(object: &mut Object, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        object.meta_mut().remove("finalizers");
        return;
    }
    let list = finalizers.into_iter().map(Value::from).collect();
    object
        .meta_mut()
        .insert("finalizers".to_owned(), Value::Array(list));
}

/// Whether an object has finalizers in a field of its kind besides `metadata.finalizers`, as namespaces do.
pub(super) fn has_own_finalizers(def: &ResourceDef, object: &Object) -> bool {
    let path = def.deletion.own_finalizers();
    path.is_some_and(|path| is_nonempty_list(object, path))
}

fn is_nonempty_list(object: &Object, path: &JsonPath) -> bool {
    let list = path.get_in(object.fields()).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(Value::is_string))
}

/// The deletion of a container, such as a namespace.
fn container_deletion(
    stored: &Object,
    finalizers: &JsonPath,
    phase: &JsonPath,
    now: Time,
) -> Deletion {
    if !is_nonempty_list(stored, finalizers) && stored.finalizers().is_empty() {
        return Deletion::Removed;
    }
    let mut marked = stored.clone();
    if !stored.is_deleting() {
        marked
            .meta_mut()
            .insert("deletionTimestamp".to_owned(), stamp::time_value(now));
        phase.put_in(marked.fields_mut(), DeletionRule::TERMINATING.into());
    }
    Deletion::Marked(marked)
}

/// The finalizers of an object that is being deleted. Those of the garbage collector are replaced by the one of the
/// propagation policy, at the end of the list. Without a policy, the one that the object has is kept, or else the kind
/// decides.
fn finalizers_for(stored: &Object, options: &DeleteOptions, dependents: Dependents) -> Vec<String> {
    let present = stored.finalizers();
    let chosen = match (options.orphan_dependents, options.propagation_policy) {
        _ if dependents == Dependents::Unsupported => None,
        (Some(true), _) | (None, Some(PropagationPolicy::Orphan)) => Some(ORPHAN),
        (None, Some(PropagationPolicy::Foreground)) => Some(FOREGROUND),
        (Some(false), _) | (None, Some(PropagationPolicy::Background)) => None,
        (None, None) => [ORPHAN, FOREGROUND]
            .into_iter()
            .find(|name| present.contains(name))
            .or_else(|| (dependents == Dependents::Orphan).then_some(ORPHAN)),
    };
    let others = present
        .into_iter()
        .filter(|name| *name != ORPHAN && *name != FOREGROUND);
    others.chain(chosen).map(str::to_owned).collect()
}
