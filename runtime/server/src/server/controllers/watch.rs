//! The watch by which a controller follows all objects of a kind.

use apiloom_meta::ApiError;

use crate::registry::{
    Document, Endpoint, ListOptions, RequestContext, WatchEventKind, WatchEvents,
};

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

/// All objects of a kind that can be read, and why one cannot. A list would fail because of that one.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn read_all(
    endpoint: &Endpoint,
) -> Result<(Vec<Document>, Option<String>), ApiError> {
    let mut events = watch_all(endpoint).await?;
    let mut objects = Vec::new();
    while let Some(event) = events.next().await {
        let event = event?;
        if event.kind == WatchEventKind::Bookmark {
            let problem = events.unreadable().map(str::to_owned);
            return Ok((objects, problem));
        }
        objects.push(event.object);
    }
    let resource = endpoint.resource().group_resource();
    Err(ApiError::internal(format!(
        "the watch of {resource} ended before all objects were read"
    )))
}

/// Logs objects that a watch leaves out because they cannot be read, each problem once.
#[derive(Default)]
pub(super) struct UnreadableLog(Option<String>);

impl UnreadableLog {
    /// Notes the present problem of the objects of a kind.
    pub(super) fn note(&mut self, kind: &str, problem: Option<&str>) {
        if self.0.as_deref() == problem {
            return;
        }
        if let Some(problem) = problem {
            tracing::warn!(problem, "a {kind} cannot be read");
        }
        self.0 = problem.map(str::to_owned);
    }
}
