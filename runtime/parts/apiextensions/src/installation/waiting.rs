//! Waits until the kinds of applied definitions are served.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_kinds::definition_files::DefinitionFile;
use apiloom_registry::{Endpoint, Registry};
use apiloom_server::host::{Follower, Update};
use tokio::time::Instant;

use super::step::{Step, problem};
use crate::definitions::Progress;

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
    pub(super) async fn run(mut self, endpoint: Arc<Endpoint>) -> Vec<String> {
        let follower = Follower::new(endpoint, Progress::read).retry_after(RETRY);
        // What is left is reported, for whichever reason it is.
        let _ = tokio::time::timeout(PATIENCE, self.follow(follower)).await;
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
    async fn follow(&mut self, mut follower: Follower<String, Progress>) {
        let mut generations = self.registry.generations();
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
                return;
            }
            tokio::select! {
                update = follower.next() => {
                    if let Update::Begun = update {
                        refusal.as_mut().reset(Instant::now() + REFUSAL);
                    }
                    self.take(follower.endpoint(), update).await;
                }
                // An error means that the registry has ended; the watch ends then, too.
                _ = generations.changed() => {}
                () = &mut refusal, if !refusal.is_elapsed() => {}
            }
        }
    }

    /// Notes what the follower tells.
    async fn take(&mut self, endpoint: &Endpoint, update: Update<String, Progress>) {
        match update {
            Update::Added(progress) | Update::Modified(progress) => {
                if let Some((_, present)) = self.pending.get_mut(progress.name()) {
                    *present = Some(progress);
                }
            }
            // It was being deleted when it was applied.
            Update::Deleted(name) => {
                let Some((file, present)) = self.pending.get_mut(&*name) else {
                    return;
                };
                *present = None;
                if let Err(lines) = Step::Apply.run(endpoint, file).await {
                    tracing::warn!("{}", problem(file, &lines.join("; ")));
                }
            }
            Update::Ended(error) => {
                let error = error.as_ref().map(tracing::field::display);
                tracing::debug!(error, "cannot watch the definitions; to be tried again");
            }
            Update::Begun | Update::Complete(_) | Update::Alive => {}
        }
    }
}
