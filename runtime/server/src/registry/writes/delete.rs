//! delete: removes an object, or sets its deletionTimestamp if it has finalizers.

use std::sync::Arc;

use apiloom_meta::kind::DeletionRule;
use apiloom_meta::{ApiError, GroupResource, JsonPath, Object, ResourceDef, StatusDetails};
use apiloom_storage::Revision;
use serde_json::Value;

use super::Writes;
use super::attempt::Attempt;
use super::results::DeleteResult;
use super::stamp;
use super::target::Target;
use crate::registry::objects::present_object::PresentObject;
use crate::registry::options::{DeleteOptions, Preconditions, PropagationPolicy, RequestContext};

/// The finalizer that makes the garbage collector orphan the dependents.
const ORPHAN: &str = "orphan";

/// The finalizer that makes the garbage collector delete the dependents first.
const FOREGROUND: &str = "foregroundDeletion";

impl Writes {
    /// Deletes an object, or marks it for deletion if it has finalizers.
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
        let key = self.resource.kind.key(namespace, name)?;
        let target = Target {
            ctx,
            namespace,
            name,
            subresource: "",
            manager: "",
            dry_run: options.dry_run,
        };
        let attempt = |present| self.attempt_delete(target, options, &key, present);
        self.retry_on_conflict(&key, "delete", attempt).await
    }

    async fn attempt_delete(
        &self,
        target: Target<'_>,
        options: &DeleteOptions,
        key: &str,
        present: Option<PresentObject>,
    ) -> Result<Attempt<DeleteResult>, ApiError> {
        let present = present.ok_or_else(|| self.resource.not_found(target.name))?;
        self.resource.reserve(target.ctx, present.len()).await;
        let (stored, old) = match self.check_deletion(target, options, &present).await {
            Ok(objects) => objects,
            Err(error) => return Ok(Attempt::Decided(Err(error))),
        };
        let marked = match &self.resource.kind.stored_def().deletion {
            DeletionRule::Object => marked_for_deletion(&stored, options),
            DeletionRule::Container { finalizers, phase } => {
                marked_container(&stored, finalizers, phase)
            }
        };
        let revision = present.revision();
        match marked {
            Some(marked) => self.mark(target, &stored, marked, key, revision).await,
            None => self.remove(target, old, key, revision).await,
        }
    }

    /// Checks preconditions and admission. Returns the object in the storage version and in that of the request.
    async fn check_deletion(
        &self,
        target: Target<'_>,
        options: &DeleteOptions,
        present: &PresentObject,
    ) -> Result<(Object, Object), ApiError> {
        // The object is marked in the storage version, so that no field is lost by conversion.
        let stored_version = self.resource.kind.storage_version;
        let stored = self
            .resource
            .kind
            .present_in(present, stored_version)
            .await?;
        let old = self
            .resource
            .kind
            .object_in(stored.clone(), stored_version, self.resource.version)
            .await?;
        self.check_preconditions(&options.preconditions, &old)?;
        self.admit_deletion(target, &old).await?;
        Ok((stored, old))
    }

    /// Conflict if the uid or resourceVersion of the preconditions is another one. As in kube-apiserver, the error has
    /// the kind in place of the resource.
    fn check_preconditions(
        &self,
        preconditions: &Preconditions,
        present: &Object,
    ) -> Result<(), ApiError> {
        let kind = GroupResource::new(
            &self.resource.group_kind().group,
            &self.resource.group_kind().kind,
        );
        if let Some(uid) = preconditions
            .uid
            .as_deref()
            .filter(|uid| *uid != present.uid())
        {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
                 deleted and then recreated",
                present.uid()
            );
            return Err(ApiError::conflict(&kind, present.name(), &why));
        }
        let version = preconditions.resource_version.as_deref();
        if let Some(version) = version.filter(|version| *version != present.resource_version()) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
                 The object might have been modified",
                present.resource_version()
            );
            return Err(ApiError::conflict(&kind, present.name(), &why));
        }
        Ok(())
    }

    /// Stores an object that is marked for deletion and stays until its finalizers are removed.
    async fn mark(
        &self,
        target: Target<'_>,
        stored: &Object,
        mut marked: Object,
        key: &str,
        revision: Revision,
    ) -> Result<Attempt<DeleteResult>, ApiError> {
        let unchanged = marked == *stored;
        let (from, to) = (self.resource.kind.storage_version, self.resource.version);
        let mut answer = match self.resource.kind.object_in(marked.clone(), from, to).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Attempt::Decided(Err(error))),
        };
        if unchanged || target.dry_run {
            return Ok(Attempt::Decided(Ok(DeleteResult::Pending(answer))));
        }
        let prepared = Arc::new(self.resource.kind.encode(&mut marked)?);
        match self.store(key, &prepared, Some(revision)).await {
            Ok(revision) => {
                answer.set_meta_str("resourceVersion", &revision.to_string());
                Ok(Attempt::Written(DeleteResult::Pending(answer)))
            }
            Err(error) => self.conflict_or_error(error, "delete"),
        }
    }

    async fn remove(
        &self,
        target: Target<'_>,
        old: Object,
        key: &str,
        revision: Revision,
    ) -> Result<Attempt<DeleteResult>, ApiError> {
        if target.dry_run {
            return Ok(Attempt::Decided(Ok(self.delete_result(old, None))));
        }
        match self.delete_stored(key, revision).await {
            Ok(revision) => Ok(Attempt::Written(self.delete_result(old, Some(revision)))),
            Err(error) => self.conflict_or_error(error, "delete"),
        }
    }

    fn delete_result(&self, mut old: Object, revision: Option<Revision>) -> DeleteResult {
        if let DeletionRule::Container { .. } = self.resource.def().deletion {
            if let Some(revision) = revision {
                old.set_meta_str("resourceVersion", &revision.to_string());
            }
            return DeleteResult::LastState(old);
        }
        DeleteResult::Gone(StatusDetails {
            name: old.name().to_owned(),
            group: self.resource.group_resource().group.clone(),
            kind: self.resource.group_resource().resource.clone(),
            uid: old.uid().to_owned(),
            ..StatusDetails::default()
        })
    }
}

/// The object marked for deletion; `None` if it has no finalizers, so that it can be removed.
fn marked_for_deletion(stored: &Object, options: &DeleteOptions) -> Option<Object> {
    let finalizers = finalizers_for(stored, options);
    if finalizers.is_empty() {
        return None;
    }
    let mut marked = stored.clone();
    let list = finalizers.into_iter().map(Value::from).collect();
    marked
        .meta_mut()
        .insert("finalizers".to_owned(), Value::Array(list));
    if !marked.is_deleting() {
        marked
            .meta_mut()
            .insert("deletionTimestamp".to_owned(), stamp::now());
        let generation = stamp::meta_number(&marked, "generation").filter(|g| *g > 0);
        if let Some(generation) = generation {
            stamp::set_meta_number(&mut marked, "generation", Some(generation + 1));
        }
    }
    // No kind has graceful deletion yet.
    stamp::set_meta_number(&mut marked, "deletionGracePeriodSeconds", Some(0));
    Some(marked)
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

/// A container, such as a namespace, marked for deletion; `None` if it has no finalizers, so that it can be removed.
fn marked_container(stored: &Object, finalizers: &JsonPath, phase: &JsonPath) -> Option<Object> {
    let held = is_nonempty_list(stored, finalizers) || !stored.finalizers().is_empty();
    if stored.is_deleting() {
        return held.then(|| stored.clone());
    }
    if !held {
        return None;
    }
    let mut marked = stored.clone();
    marked
        .meta_mut()
        .insert("deletionTimestamp".to_owned(), stamp::now());
    phase.put_in(marked.fields_mut(), DeletionRule::TERMINATING.into());
    Some(marked)
}

/// The finalizers of an object that is being deleted. Those of the garbage collector are replaced by the one of the
/// propagation policy, at the end of the list. Without a policy, the one that the object has is kept.
fn finalizers_for(stored: &Object, options: &DeleteOptions) -> Vec<String> {
    let present = stored.finalizers();
    let chosen = match (options.orphan_dependents, options.propagation_policy) {
        (Some(true), _) | (None, Some(PropagationPolicy::Orphan)) => Some(ORPHAN),
        (None, Some(PropagationPolicy::Foreground)) => Some(FOREGROUND),
        (Some(false), _) | (None, Some(PropagationPolicy::Background)) => None,
        (None, None) => [ORPHAN, FOREGROUND]
            .into_iter()
            .find(|name| present.contains(name)),
    };
    let others = present
        .into_iter()
        .filter(|name| *name != ORPHAN && *name != FOREGROUND);
    others.chain(chosen).map(str::to_owned).collect()
}
