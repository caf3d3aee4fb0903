//! Waits until the kinds of applied definitions are served.

use std::collections::HashMap;
use std::time::Duration;

use apiloom_apis::definition_files::DefinitionFile;
use apiloom_meta::ApiError;
use apiloom_registry::{
    Endpoint, ListOptions, Registry, RequestContext, WatchEvent, WatchEventKind,
};
use tokio::time::Instant;

use super::step::{Step, problem};
use crate::server::parts::apiextensions::definitions::Progress;

/// How long it may take until the kinds are served. Beside other servers over the same store it takes 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a refusal is not reported: the conditions of a stored definition may be older than what was applied.
const REFUSAL: Duration = Duration::from_secs(2);

/// Time between attempts to watch the definitions.
const RETRY: Duration = Duration::from_millis(100);

/// The applied definitions whose kinds are not served yet.
pub(super) struct Waiting<'a> {
    registry: &'a Registry,
    /// The definitions whose kinds are not served yet, with their last state.
    pending: HashMap<&'a str, (&'a DefinitionFile, Option<Progress>)>,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(registry: &'a Registry, files: &'a [DefinitionFile]) -> Self {
        let pending = files.iter().map(|file| (file.name.as_str(), (file, None)));
        Self {
            registry,
            pending: pending.collect(),
        }
    }

    /// Returns when all kinds are served, or the problems of those that are not.
    pub(super) async fn run(mut self, endpoint: &Endpoint) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        let followed = tokio::time::timeout_at(end, async {
            while let Err(error) = self.follow(endpoint).await {
                tracing::debug!(%error, "cannot watch the definitions; to be tried again");
                tokio::time::sleep(RETRY).await;
            }
        });
        // What is left is reported, for whichever reason it is.
        let _ = followed.await;
        let mut left: Vec<_> = self.pending.into_values().collect();
        left.sort_by_key(|(file, _)| &file.place);
        let lines = left.into_iter().map(|(file, progress)| {
            let refusal = progress.and_then(|progress| progress.refusal);
            problem(
                file,
                refusal.as_deref().unwrap_or("its kind is not served yet"),
            )
        });
        lines.collect()
    }

    /// Follows the definitions until nothing is pending, or one is refused.
    async fn follow(&mut self, endpoint: &Endpoint) -> Result<(), ApiError> {
        let mut generations = self.registry.generations();
        let options = ListOptions {
            send_initial_events: Some(true),
            allow_watch_bookmarks: true,
            ..ListOptions::default()
        };
        let ctx = RequestContext::default();
        let mut events = endpoint.reads().watch(&ctx, None, &options).await?;
        let refusal = tokio::time::sleep(REFUSAL);
        tokio::pin!(refusal);
        loop {
            let registry = self.registry;
            self.pending.retain(|_, (_, progress)| {
                !progress
                    .as_ref()
                    .is_some_and(|progress| progress.is_served(registry))
            });
            let mut states = self
                .pending
                .values()
                .filter_map(|(_, progress)| progress.as_ref());
            let is_refused = refusal.is_elapsed() && states.any(|state| state.refusal.is_some());
            if self.pending.is_empty() || is_refused {
                return Ok(());
            }
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.take(endpoint, event?).await,
                    None => return Err(ApiError::internal_text("the watch has ended")),
                },
                // An error means that the registry has ended; the watch ends then, too.
                _ = generations.changed() => {}
                () = &mut refusal, if !refusal.is_elapsed() => {}
            }
        }
    }

    /// Notes an event.
    async fn take(&mut self, endpoint: &Endpoint, event: WatchEvent) {
        if event.kind == WatchEventKind::Bookmark {
            return;
        }
        let Ok(progress) = Progress::of(endpoint, &event.object) else {
            return;
        };
        let Some((file, present)) = self.pending.get_mut(progress.name()) else {
            return;
        };
        // It was being deleted when it was applied.
        if event.kind == WatchEventKind::Deleted {
            *present = None;
            if let Err(lines) = Step::Apply.run(endpoint, file).await {
                tracing::warn!("{}", problem(file, &lines.join("; ")));
            }
            return;
        }
        *present = Some(progress);
    }
}
