//! The watch by which a controller follows all objects of a kind.

use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_registry::{Endpoint, ListOptions, RequestContext, StoredEvents, StoredReads};

/// Lifetime of a watch: it begins with a list of all objects, which is not repeated without need.
const LIFETIME_SECONDS: u64 = 24 * 3600;

/// The reads of a stored kind.
///
/// # Errors
/// MethodNotAllowed for a kind without a store, of which controllers read nothing.
pub(in crate::server) fn stored(endpoint: &Endpoint) -> Result<&Arc<StoredReads>, ApiError> {
    let resource = endpoint.resource().group_resource();
    let stored = endpoint.reads().stored();
    stored.ok_or_else(|| ApiError::method_not_supported(resource, "watch"))
}

/// Begins to watch all objects of a kind that can be read. A bookmark follows those that are there.
pub(in crate::server) async fn watch_all(endpoint: &Endpoint) -> Result<StoredEvents, ApiError> {
    let options = ListOptions {
        send_initial_events: Some(true),
        allow_watch_bookmarks: true,
        timeout_seconds: Some(LIFETIME_SECONDS),
        ..ListOptions::default()
    };
    let ctx = RequestContext::default();
    let events = stored(endpoint)?.watch(&ctx, None, &options).await?;
    Ok(events.without_unreadable())
}
