//! What a feed has reported, for those who wait for it. There is one for each kind, and a channel of tokio is four times as
//! large: it has eight lists of tasks that wait, and here few ever do.

use std::sync::Arc;
use std::time::Duration;

use apiloom_storage::Revision;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long others wait for a kind that cannot be read: that of kube-controller-manager for the first lists of its garbage
/// collector (`--gc-initial-sync-timeout`). Objects of a version that this server does not know yet can be read by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a feed has reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether all objects were reported, and their changes are followed.
    pub is_complete: bool,
    /// All changes up to this revision of the store of the kind were reported.
    pub reached: Revision,
    /// Since when some objects of the kind cannot be read. A kind whose store or cache is slow is not meant.
    pub unreadable_since: Option<Instant>,
}

impl Progress {
    /// Whether others go on without what cannot be read.
    pub fn is_given_up(&self) -> bool {
        self.unreadable_since
            .is_some_and(|since| since.elapsed() >= PATIENCE)
    }
}

/// The state that a feed and its readers share.
#[derive(Default)]
struct ReportChannel {
    state: Mutex<State>,
    /// Why objects cannot be read.
    problem: Mutex<Option<Box<str>>>,
    changed: Notify,
}

#[derive(Clone, Copy, Default)]
struct State {
    progress: Progress,
    /// Whether the feed has ended.
    is_over: bool,
}

/// The side of the feed. Its readers learn when it is dropped.
#[derive(Default)]
pub struct FeedReports(Arc<ReportChannel>);

impl FeedReports {
    /// A side for one who waits.
    pub fn reader(&self) -> ReportReader {
        ReportReader(Arc::clone(&self.0))
    }

    /// The present progress.
    pub fn now(&self) -> Progress {
        self.0.state.lock().progress
    }

    /// Notes why objects of the kind cannot be read, or that all can.
    pub fn set_problem(&self, problem: Option<&str>) {
        let mut known = self.0.problem.lock();
        if known.as_deref() == problem {
            return;
        }
        *known = problem.map(Box::from);
        drop(known);
        self.change(|progress| {
            let since = progress.unreadable_since;
            progress.unreadable_since = problem.map(|_| since.unwrap_or_else(Instant::now));
        });
    }

    /// Changes the progress; wakes readers if it is another one.
    pub fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut state = self.0.state.lock();
        let before = state.progress;
        change(&mut state.progress);
        let is_new = state.progress != before;
        drop(state);
        if is_new {
            self.0.changed.notify_waiters();
        }
    }
}

impl Drop for FeedReports {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_waiters();
    }
}

/// The side of those who wait.
#[derive(Clone)]
pub struct ReportReader(Arc<ReportChannel>);

impl ReportReader {
    /// The present progress.
    pub fn now(&self) -> Progress {
        self.0.state.lock().progress
    }

    /// Why objects of the kind cannot be read.
    pub fn problem(&self) -> Option<String> {
        self.0.problem.lock().as_deref().map(str::to_owned)
    }

    /// Waits for a progress that is accepted; `None` if the feed ends without.
    pub async fn wait_for(&self, is_accepted: impl Fn(&Progress) -> bool) -> Option<Progress> {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // Before the look at the state, so that a change right after it is not missed.
            changed.as_mut().enable();
            let State { progress, is_over } = *self.0.state.lock();
            if is_accepted(&progress) {
                return Some(progress);
            }
            if is_over {
                return None;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn readers_are_told_of_changes_and_of_the_end() {
        let feed = FeedReports::default();
        let (one, other) = (feed.reader(), feed.reader());
        let mut complete = Box::pin(one.wait_for(|progress| progress.is_complete));
        let mut reached = Box::pin(other.wait_for(|progress| progress.reached >= Revision(5)));
        assert!((&mut complete).now_or_never().is_none());
        assert!((&mut reached).now_or_never().is_none());
        feed.change(|progress| progress.is_complete = true);
        assert!(complete.now_or_never().flatten().is_some());
        feed.change(|progress| progress.reached = Revision(4));
        assert!((&mut reached).now_or_never().is_none());
        drop(feed);
        assert_eq!(reached.now_or_never(), Some(None));
        assert_eq!(other.now().reached, Revision(4));
    }
}
