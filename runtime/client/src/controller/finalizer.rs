//! Finalizers: cleaning up before an object is deleted.

use std::sync::Arc;

use apiloom_meta::kind::verbs;
use apiloom_meta::{ObjectMeta, Resource};
use serde_json::{Value, json};

use super::reconcile::{Context, ReconcileError};
use crate::client::{ObjectScope, Patch, ResourceClient};
use crate::error::Error;

/// Most attempts to change the finalizers of an object that others change too.
const MAX_ATTEMPTS: u32 = 5;

/// The outcome of [`Context::finalizer`]: what a reconcile function has to do for the object.
#[derive(Clone, Debug, PartialEq)]
pub enum FinalizerOutcome<K> {
    /// The object lives and has the finalizer: work on it.
    Live(Arc<K>),
    /// The object is being deleted, and is cleaned up: there is nothing more to do.
    Deleted,
}

impl Context {
    /// Adds a finalizer to an object that lives. If the object is being deleted, and still has the finalizer, calls
    /// `clean_up` and then removes it. The finalizer is a name with a domain, such as `example.com/volumes`.
    ///
    /// Entries of others in the list of finalizers are never changed: the patches test what they replace, and are made
    /// anew from the object on the server if it has changed. `clean_up` may be called more than once for an object, also
    /// if it succeeded.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use apiloom_client::{Namespaced, ResourceClient};
    /// # use apiloom_client::controller::{Action, Context, FinalizerOutcome, ReconcileError};
    /// # use apiloom_meta::Resource;
    /// # async fn reconcile<Flunder: Resource + apiloom_client::verbs::All>(
    /// #     context: &Context, flunders: &ResourceClient<Flunder, Namespaced>, flunder: Arc<Flunder>,
    /// # ) -> Result<Action, ReconcileError> {
    /// let clean_up = async |flunder: Arc<Flunder>| {
    ///     println!("releasing what {:?} uses", flunder.metadata().name);
    ///     Ok(())
    /// };
    /// let name = "wardle.example.com/cleanup";
    /// let flunder = match context.finalizer(flunders, flunder, name, clean_up).await? {
    ///     FinalizerOutcome::Live(flunder) => flunder,
    ///     FinalizerOutcome::Deleted => return Ok(Action::Done),
    /// };
    /// # let _ = flunder;
    /// # Ok(Action::Done)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// That of `clean_up`, and those of the patches; after an error the finalizer is still there.
    pub async fn finalizer<K, S, C>(
        &self,
        client: &ResourceClient<K, S>,
        object: Arc<K>,
        finalizer: &str,
        clean_up: C,
    ) -> Result<FinalizerOutcome<K>, ReconcileError>
    where
        K: Resource + verbs::Get + verbs::Patch,
        S: ObjectScope,
        C: AsyncFnOnce(Arc<K>) -> Result<(), ReconcileError>,
    {
        let metadata = object.metadata();
        let has_finalizer = position(metadata, finalizer).is_some();
        match (metadata.deletion_timestamp.is_some(), has_finalizer) {
            (true, false) => return Ok(FinalizerOutcome::Deleted),
            (true, true) => clean_up(Arc::clone(&object)).await?,
            (false, true) => return Ok(FinalizerOutcome::Live(object)),
            (false, false) => {}
        }
        let is_deleting = has_finalizer;
        let make_patch = if is_deleting {
            removing_patch
        } else {
            adding_patch
        };
        let uid = metadata.uid.clone();
        let name = metadata.name.clone().unwrap_or_default();
        let mut newest = object;
        for attempt in 1.. {
            let metadata = newest.metadata();
            // Another object of the same name, or what another call has done already.
            if metadata.uid != uid || (!is_deleting && metadata.deletion_timestamp.is_some()) {
                break;
            }
            let Some(patch) = make_patch(metadata, finalizer) else {
                break;
            };
            match client.patch(&name, Patch::json(&patch)).await {
                Ok(patched) => {
                    self.writes().record(&patched);
                    newest = Arc::new(patched);
                    break;
                }
                Err(error) if error.is_not_found() => return Ok(FinalizerOutcome::Deleted),
                Err(error) if has_changed(&error) && attempt < MAX_ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
            match client.get(&name).optional().await? {
                Some(found) => newest = Arc::new(found),
                None => return Ok(FinalizerOutcome::Deleted),
            }
        }
        let metadata = newest.metadata();
        let is_live = metadata.uid == uid && metadata.deletion_timestamp.is_none();
        Ok(if is_live && !is_deleting {
            FinalizerOutcome::Live(newest)
        } else {
            FinalizerOutcome::Deleted
        })
    }
}

/// Whether a patch failed because the object is not as its tests say: servers respond with 422, and with 409 if the
/// object changed while it was patched.
fn has_changed(error: &Error) -> bool {
    error.is_conflict() || error.code() == Some(422)
}

fn position(metadata: &ObjectMeta, finalizer: &str) -> Option<usize> {
    let finalizers = metadata.finalizers.iter();
    finalizers.into_iter().position(|name| name == finalizer)
}

fn test(path: &str, value: &Option<String>) -> Option<Value> {
    let value = value.as_ref()?;
    Some(json!({"op": "test", "path": path, "value": value}))
}

/// A JSON patch that adds a finalizer; `None` if the object has it. The patch fails if the object has changed at all: a
/// list of finalizers that does not exist cannot be tested in another way.
fn adding_patch(metadata: &ObjectMeta, finalizer: &str) -> Option<Value> {
    if position(metadata, finalizer).is_some() {
        return None;
    }
    let add = if metadata.finalizers.is_empty() {
        json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]})
    } else {
        json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer})
    };
    let version = test("/metadata/resourceVersion", &metadata.resource_version);
    let operations = [test("/metadata/uid", &metadata.uid), version, Some(add)];
    Some(operations.into_iter().flatten().collect())
}

/// A JSON patch that removes a finalizer; `None` if the object does not have it. The patch fails if the entry is not at
/// the same place any more; other changes of the object do not matter.
fn removing_patch(metadata: &ObjectMeta, finalizer: &str) -> Option<Value> {
    let path = format!("/metadata/finalizers/{}", position(metadata, finalizer)?);
    let entry = json!({"op": "test", "path": path, "value": finalizer});
    let remove = json!({"op": "remove", "path": path});
    let operations = [
        test("/metadata/uid", &metadata.uid),
        Some(entry),
        Some(remove),
    ];
    Some(operations.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests;
