//! The watch by which a controller follows all objects of a kind.

use apiloom_meta::ApiError;

use crate::registry::{Endpoint, ListOptions, RequestContext, WatchEvents};

/// Lifetime of a watch: it begins with a list of all objects, which is not repeated without need.
const LIFETIME_SECONDS: u64 = 24 * 3600;

/// Begins to watch all objects of a kind that can be read. A bookmark follows those that are there.
pub(super) async fn watch_all(endpoint: &Endpoint) -> Result<WatchEvents, ApiError> {
    let options = ListOptions {
        send_initial_events: Some(true),
        allow_watch_bookmarks: true,
        timeout_seconds: Some(LIFETIME_SECONDS),
        ..ListOptions::default()
    };
    let ctx = RequestContext::default();
    let events = endpoint.reads().watch(&ctx, None, &options).await?;
    Ok(events.without_unreadable())
}
