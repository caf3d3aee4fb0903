//! The kinds without which the server's controllers go on, because objects of them cannot be read: for the health check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apiloom_meta::{GroupResource, ResourceDef};
use parking_lot::Mutex;

/// A kind with objects that cannot be read.
#[derive(Debug)]
pub(super) struct UnreadableKind {
    pub(super) def: Arc<ResourceDef>,
    /// Why one of them cannot be read.
    pub(super) problem: String,
}

/// The kinds that the garbage collector has given up, shared with the health check.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadableKinds(Arc<Mutex<BTreeSet<GroupResource>>>);

impl UnreadableKinds {
    /// Fails while there are some. Names no object: health can be read without authentication.
    ///
    /// # Errors
    /// Names the kinds.
    pub(super) fn check(&self) -> Result<(), String> {
        let kinds = self.0.lock();
        if kinds.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = kinds.iter().map(GroupResource::to_string).collect();
        Err(format!(
            "the garbage collector goes on without objects that cannot be read, of {}",
            names.join(", ")
        ))
    }

    /// Begins to report kinds; those that were reported are withdrawn when this is dropped.
    pub(super) fn report(&self) -> Report<'_> {
        Report(self)
    }
}

/// What the garbage collector reports while it runs.
pub(super) struct Report<'a>(&'a UnreadableKinds);

impl Report<'_> {
    /// Sets the kinds that are given up; returns the new ones.
    pub(super) fn update(
        &mut self,
        given_up: BTreeMap<GroupResource, UnreadableKind>,
    ) -> Vec<UnreadableKind> {
        let mut known = self.0.0.lock();
        known.retain(|resource| given_up.contains_key(resource));
        let mut new = Vec::new();
        for (resource, kind) in given_up {
            if !known.contains(&resource) {
                let problem = &kind.problem;
                tracing::warn!(%resource, problem, "the garbage collector goes on without objects that cannot be read");
                known.insert(resource);
                new.push(kind);
            }
        }
        new
    }
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        self.0.0.lock().clear();
    }
}
