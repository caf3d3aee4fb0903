//! Deletes the objects of a definition that is being deleted, then lets the definition go.

use std::time::Duration;

use apiloom_kinds::apiextensions::rules::CLEANUP;
use apiloom_kinds::apiextensions::v1::CustomResourceDefinition;
use apiloom_meta::{ApiError, Condition, Conditions as _, GroupResource};
use apiloom_registry::{DeleteOptions, Endpoint, ListOptions, PropagationPolicy, RequestContext};
use apiloom_server::host::{OtherServers, RequestError, Requests, ServedKind, SharedStore};
use serde_json::json;
use tokio::time::Instant;

use super::known::{Known, path};

/// Time until objects that are left are looked at again, and the longest.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Time after a failure.
const RETRY: Duration = Duration::from_millis(500);

/// Time for which objects are looked for after the deletion of a definition was observed, if there are other servers: these may
/// not know of it yet. As for namespaces.
const LATE_CREATES: Duration = Duration::from_secs(5);

/// Reason of the condition Terminating when no objects are left.
const COMPLETED: &str = "InstanceDeletionCompleted";

/// A definition to delete with its objects.
pub(super) struct Deletion {
    pub(super) name: String,
    /// Another definition may get the name while this one is deleted.
    pub(super) uid: String,
    /// Whether this server refused to serve its kind.
    pub(super) is_refused: bool,
}

/// Deletes the objects of a definition until none is left, then removes its finalizer.
pub(super) async fn run(requests: &Requests, shared: Option<&SharedStore>, deletion: &Deletion) {
    let observed = Instant::now();
    loop {
        // Looked at before the objects are.
        let rest = LATE_CREATES.saturating_sub(observed.elapsed());
        match step(requests, shared, rest, deletion).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                tracing::debug!(%error, definition = deletion.name, "to be tried again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// One attempt; returns whether the definition needs no more. Other servers may create objects for the rest of a time.
async fn step(
    requests: &Requests,
    shared: Option<&SharedStore>,
    rest: Duration,
    deletion: &Deletion,
) -> Result<bool, RequestError> {
    let Some(mut object) = requests
        .get::<CustomResourceDefinition>(&path(&deletion.name))
        .await?
    else {
        return Ok(true);
    };
    let known = Known::of_object(&object);
    if known.uid != deletion.uid || !known.is_deleting || !known.has_finalizer {
        return Ok(true);
    }
    let resource = known.resource();
    let catalog = requests.registry().catalog();
    if catalog.is_compiled(&resource) {
        let message = "instances overlap with built-in resources in storage";
        return end(requests, object, "OverlappingBuiltInResource", message).await;
    }
    let endpoint = catalog.stored_endpoint(requests.registry(), &resource);
    // A kind is served as soon as its names are accepted, so it may have objects before it is established.
    let is_served = known.is_served() && (known.is_established || !deletion.is_refused);
    if endpoint.is_none() && !is_served {
        let message = "resource was never established";
        return end(requests, object, "NeverEstablished", message).await;
    }
    // Another server may be about to remove the finalizer; it says that the deletion has ended, and so it stays said.
    if !has_ended(&object) {
        let message = "CustomResource deletion is in progress";
        let began = (true, "InstanceDeletionInProgress", message);
        match write(requests, object, began).await? {
            Some(written) => object = written,
            None => return Ok(true),
        }
    }
    let Some(endpoint) = endpoint else {
        // It is published soon, or its definition is wrong.
        tokio::time::sleep(RETRY).await;
        return Ok(false);
    };
    if catalog.is_terminating(&resource) != Some(true) {
        tokio::time::sleep(LOOK_AGAIN.0).await;
        return Ok(false);
    }
    if let Err(error) = delete_objects(&endpoint).await {
        // What cannot be read, such as an object of a version that the definition no longer has, is not deleted by reading it.
        return match endpoint.delete_unreadable().await {
            Ok(deleted) if deleted > 0 => {
                tracing::warn!(%resource, deleted, "deleted objects that cannot be read with their definition");
                Ok(false)
            }
            Ok(_) | Err(_) => failed(requests, object, &resource, &error).await,
        };
    }
    if !rest.is_zero()
        && let Some(shared) = shared
        && shared.other_servers().await == OtherServers::Some
    {
        tokio::time::sleep(rest).await;
        return Ok(false);
    }
    end(requests, object, COMPLETED, "removed all instances").await
}

/// Whether a server has found that no objects are left.
fn has_ended(object: &CustomResourceDefinition) -> bool {
    let condition = object.status.conditions.condition("Terminating");
    condition.is_some_and(|one| one.reason.as_deref() == Some(COMPLETED))
}

/// Deletes all objects, and waits until they are gone: those with finalizers stay until these are removed.
async fn delete_objects(endpoint: &Endpoint) -> Result<(), ApiError> {
    let ctx = RequestContext::default();
    let all = ListOptions::default();
    let options = DeleteOptions {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteOptions::default()
    };
    endpoint
        .delete_collection(&ctx, None, &all, &options)
        .await?;
    let (mut wait, longest) = LOOK_AGAIN;
    let one = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    loop {
        let mut left = endpoint.reads().list(&ctx, None, &one).await?.items;
        if left.next().is_none() {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
        endpoint
            .delete_collection(&ctx, None, &all, &options)
            .await?;
    }
}

/// Notes a failure, and waits.
async fn failed(
    requests: &Requests,
    object: CustomResourceDefinition,
    resource: &GroupResource,
    error: &ApiError,
) -> Result<bool, RequestError> {
    let message = format!(
        "could not delete instances of {resource}: {}",
        error.message
    );
    write(requests, object, (true, "InstanceDeletionFailed", &message)).await?;
    tokio::time::sleep(RETRY).await;
    Ok(false)
}

/// Sets the condition Terminating; `None` if the definition is gone.
async fn write(
    requests: &Requests,
    mut object: CustomResourceDefinition,
    (is_true, reason, message): (bool, &str, &str),
) -> Result<Option<CustomResourceDefinition>, RequestError> {
    let condition = Condition::new("Terminating", is_true, reason, message);
    if !object.status.conditions.set_condition(condition.into()) {
        return Ok(Some(object));
    }
    let name = object.metadata.name.clone().unwrap_or_default();
    requests
        .put(&format!("{}/status", path(&name)), &object)
        .await
}

/// Notes that no objects are left, and removes the finalizer. If another client changes the definition meanwhile, only this is
/// done again: there can be no new objects.
async fn end(
    requests: &Requests,
    mut object: CustomResourceDefinition,
    reason: &str,
    message: &str,
) -> Result<bool, RequestError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let uid = object.metadata.uid.clone();
    loop {
        match try_end(requests, object, (false, reason, message)).await {
            Err(error) if error.is_conflict() => {}
            ended => return ended.map(|()| true),
        }
        let changed: Option<CustomResourceDefinition> = requests.get(&path(&name)).await?;
        match changed {
            Some(changed) if changed.metadata.uid == uid => object = changed,
            // It is gone; another definition may have its name.
            _ => return Ok(true),
        }
    }
}

async fn try_end(
    requests: &Requests,
    object: CustomResourceDefinition,
    condition: (bool, &str, &str),
) -> Result<(), RequestError> {
    let Some(object) = write(requests, object, condition).await? else {
        return Ok(());
    };
    let name = object.metadata.name.clone().unwrap_or_default();
    let finalizers = object.metadata.finalizers.iter();
    let others: Vec<&String> = finalizers.filter(|one| *one != CLEANUP).collect();
    let others = if others.is_empty() {
        json!(null)
    } else {
        json!(others)
    };
    let served: ServedKind = requests.served("apiextensions.k8s.io", "CustomResourceDefinition")?;
    let target = served.target("", &name)?;
    requests
        .set(&target, &object.metadata, "finalizers", others)
        .await?;
    Ok(())
}
