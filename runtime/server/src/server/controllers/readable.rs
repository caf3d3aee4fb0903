//! What the controllers of definitions and of APIServices read of their own kinds: all that can be read, and a log of the rest.

use apiloom_meta::ApiError;
use apiloom_registry::{Document, Endpoint, WatchEventKind};

use super::watch::{stored, watch_all};

/// All objects of a kind that can be read, and why one cannot. A list would fail because of that one.
///
/// # Errors
/// If the store cannot be read.
pub(in crate::server) async fn read_all(
    endpoint: &Endpoint,
) -> Result<(Vec<Document>, Option<String>), ApiError> {
    // A large store is read for longer than the registry waits at its start.
    stored(endpoint)?.filled().await;
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
pub(in crate::server) struct UnreadableLog(Option<String>);

impl UnreadableLog {
    /// Notes the present problem of the objects of a kind.
    pub(in crate::server) fn note(&mut self, kind: &str, problem: Option<&str>) {
        if self.0.as_deref() == problem {
            return;
        }
        if let Some(problem) = problem {
            tracing::warn!(problem, "a {kind} cannot be read");
        }
        self.0 = problem.map(str::to_owned);
    }
}
