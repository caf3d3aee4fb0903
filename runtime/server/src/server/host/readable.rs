//! What the controllers of definitions and of APIServices read of their own kinds: all that can be read, and a log of the rest.

use std::hash::Hash;
use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_registry::Endpoint;

use super::follower::{Follower, Read, Update, stored};

/// All objects of a kind that can be read, and why one cannot. A list would fail because of that one.
///
/// # Errors
/// If the store cannot be read.
pub async fn read_all<K: Eq + Hash, T>(
    endpoint: Arc<Endpoint>,
    read: Read<K, T>,
) -> Result<(Vec<T>, Option<String>), ApiError> {
    // A large store is read for longer than the registry waits at its start.
    stored(&endpoint)?.filled().await;
    let mut follower = Follower::new(endpoint, read);
    let mut objects = Vec::new();
    loop {
        match follower.next().await {
            Update::Added(object) | Update::Modified(object) => objects.push(object),
            Update::Complete(_) => {
                let problem = follower.unreadable().map(str::to_owned);
                return Ok((objects, problem));
            }
            Update::Ended(Some(error)) => return Err(error),
            Update::Ended(None) => {
                let resource = follower.endpoint().resource().group_resource();
                return Err(ApiError::internal(format!(
                    "the watch of {resource} ended before all objects were read"
                )));
            }
            Update::Begun | Update::Deleted(_) | Update::Alive => {}
        }
    }
}

/// Logs objects that a watch leaves out because they cannot be read, each problem once.
#[derive(Default)]
pub struct UnreadableLog(Option<String>);

impl UnreadableLog {
    /// Notes the present problem of the objects of a kind.
    pub fn note(&mut self, kind: &str, problem: Option<&str>) {
        if self.0.as_deref() == problem {
            return;
        }
        if let Some(problem) = problem {
            tracing::warn!(problem, "a {kind} cannot be read");
        }
        self.0 = problem.map(str::to_owned);
    }
}
