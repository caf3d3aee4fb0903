//! How far the feeds of all kinds are, for what follows from the absence of objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use apiloom_server::host::feed::{Progress, ReportReader};
use apiloom_server::host::{RequestError, Requests};
use apiloom_storage::{Revision, Storage};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Longest wait for the feeds.
const CATCH_UP: Duration = Duration::from_secs(3);

/// Time between requests to a store for its progress, on which idle kinds depend.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How far the feeds are.
#[derive(Default)]
pub(super) struct FeedProgress {
    feeds: Mutex<Arc<[Position]>>,
    /// Number of rounds of [`FeedProgress::catch_up`] that began.
    begun: AtomicU64,
    /// Number of the last round that ended.
    ended: AtomicU64,
    /// The last round that ended. Held during a round.
    last: tokio::sync::Mutex<Round>,
    /// Whether the feeds took too long in the last round.
    is_late: AtomicBool,
}

/// A round of [`FeedProgress::catch_up`] that ended.
struct Round {
    number: u64,
    result: Result<(), Arc<RequestError>>,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            number: 0,
            result: Ok(()),
        }
    }
}

/// How far a feed is.
#[derive(Clone)]
pub(super) struct Position {
    /// The store of its kind.
    pub(super) store: Arc<dyn Storage>,
    pub(super) progress: ReportReader,
    /// The revision for which it is waited, shared by the feeds of the store.
    pub(super) wanted: Arc<watch::Sender<Revision>>,
}

impl Position {
    /// Whether nothing waits for the feed any more: its kind cannot be followed, and that for long.
    fn is_left_out(&self) -> bool {
        let progress = self.progress.now();
        !progress.is_complete && progress.is_given_up()
    }
}

impl FeedProgress {
    /// Sets the feeds that run.
    pub(super) fn set_feeds(&self, feeds: Arc<[Position]>) {
        *self.feeds.lock() = feeds;
    }

    /// Waits until the feeds have reported all that was written before the call. Callers at the same time wait for the
    /// same round, and a failure is that of all who waited for it. After feeds that took too long, only one caller at a
    /// time waits and the others fail at once, so that the other work goes on.
    ///
    /// # Errors
    /// [`RequestError::NotListed`] while the objects of a kind are not known, and if the feeds take too long; objects that could
    /// not be read for long are left out, as by Kubernetes' collector;
    /// [`RequestError::OnlyElsewhere`] if only another server knows a kind.
    pub(super) async fn catch_up(&self, requests: &Requests) -> Result<(), RequestError> {
        let round = async {
            requests.check_serves_all().await?;
            let feeds = Arc::clone(&self.feeds.lock());
            wait_for_all(&feeds).await
        };
        self.share(round).await
    }

    /// Runs a round, or takes the result of that of another caller.
    async fn share(
        &self,
        round: impl Future<Output = Result<(), RequestError>>,
    ) -> Result<(), RequestError> {
        let ended = self.ended.load(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::SeqCst);
        let mut last = match self.last.try_lock() {
            Ok(last) => last,
            Err(_) if self.is_late.load(Ordering::SeqCst) => return Err(RequestError::NotListed),
            Err(_) => self.last.lock().await,
        };
        // A round that had begun before the call may have succeeded without what was written last.
        let is_later = last.number > begun;
        let has_failed_meanwhile = last.number > ended && last.result.is_err();
        if !is_later && !has_failed_meanwhile {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let round = tokio::time::timeout(CATCH_UP, round).await;
            self.is_late.store(round.is_err(), Ordering::SeqCst);
            let result = round.unwrap_or(Err(RequestError::NotListed));
            *last = Round {
                number,
                result: result.map_err(Arc::new),
            };
            self.ended.store(number, Ordering::SeqCst);
        }
        last.result.clone().map_err(RequestError::Shared)
    }
}

/// Waits until feeds have reached the present revisions of their stores.
async fn wait_for_all(feeds: &[Position]) -> Result<(), RequestError> {
    let mut stores: Vec<(&Arc<dyn Storage>, Revision)> = Vec::new();
    let mut awaited = Vec::with_capacity(feeds.len());
    let reached = |feed: &Position| feed.progress.now().reached;
    let reached: Vec<Revision> = feeds.iter().map(reached).collect();
    for (feed, reached) in feeds.iter().zip(reached) {
        if feed.is_left_out() {
            continue;
        }
        let known = stores
            .iter()
            .find(|(store, _)| Arc::ptr_eq(store, &feed.store));
        let present = match known {
            Some((_, present)) => *present,
            None => {
                let present = feed.store.current_revision().await?;
                stores.push((&feed.store, present));
                feed.wanted.send_replace(present);
                present
            }
        };
        // It reached a later revision if the store was restored since: it is going to begin again.
        if reached > present {
            return Err(RequestError::NotListed);
        }
        awaited.push((&feed.progress, present));
    }
    let reached = async {
        for (progress, present) in &awaited {
            let is_decided =
                |progress: &Progress| !progress.is_complete || progress.reached >= *present;
            // The feed of a kind that is not served any more ends without.
            let Some(progress) = progress.wait_for(is_decided).await else {
                continue;
            };
            let is_incomplete = !progress.is_complete || progress.unreadable_since.is_some();
            if is_incomplete && !progress.is_given_up() {
                return Err(RequestError::NotListed);
            }
        }
        Ok(())
    };
    let asking = async {
        loop {
            for (store, _) in &stores {
                // A failed request is repeated in the next round.
                let _ = store.request_progress().await;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::select! {
        biased;
        result = reached => result,
        () = asking => Err(RequestError::NotListed),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use apiloom_server::host::feed::FeedReports;
    use apiloom_storage::Memory;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_that_wait_for_a_round_fail_with_it_and_later_ones_have_their_own() {
        let progress = FeedProgress::default();
        let started = Instant::now();
        let results = tokio::join!(
            progress.share(pending()),
            progress.share(pending()),
            progress.share(pending()),
        );
        assert!(results.0.is_err() && results.1.is_err() && results.2.is_err());
        assert!(started.elapsed() < 2 * CATCH_UP, "{:?}", started.elapsed());
        // The work of the others is not held up again.
        tokio::join!(
            async {
                progress.share(pending()).await.unwrap_err();
                assert!(started.elapsed() >= 2 * CATCH_UP);
            },
            async {
                progress.share(pending()).await.unwrap_err();
                assert!(started.elapsed() < 2 * CATCH_UP);
            },
        );
        progress.share(ready(Ok(()))).await.unwrap();
        let failed = progress.share(ready(Err(RequestError::NotListed))).await;
        assert_eq!(
            failed.unwrap_err().to_string(),
            RequestError::NotListed.to_string()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_that_began_before_a_call_does_not_succeed_for_it() {
        let progress = FeedProgress::default();
        let begun = AtomicU64::new(0);
        let round = || async {
            begun.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(())
        };
        let results = tokio::join!(
            progress.share(round()),
            progress.share(round()),
            progress.share(round()),
        );
        assert!(results.0.is_ok() && results.1.is_ok() && results.2.is_ok());
        // The second round is that of the two that came during the first.
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_cannot_be_read_are_left_out_after_a_time_and_slow_ones_are_not() {
        let store = Memory::new();
        let (healthy, other) = (FeedReports::default(), FeedReports::default());
        let position = |reports: &FeedReports| Position {
            store: store.clone(),
            progress: reports.reader(),
            wanted: Arc::new(watch::channel(Revision(0)).0),
        };
        let feeds = [position(&healthy), position(&other)];
        let present = store.current_revision().await.unwrap();
        healthy.change(|progress| {
            progress.is_complete = true;
            progress.reached = present;
        });
        let bound = Duration::from_secs(60);
        // One whose cache is being filled is waited for, however long that takes.
        tokio::time::advance(10 * bound).await;
        wait_for_all(&feeds).await.unwrap_err();
        // The watch fails, or leaves objects out.
        for is_complete in [false, true] {
            other.set_problem(Some("unable to decode"));
            other.change(|progress| {
                progress.is_complete = is_complete;
                progress.reached = present;
            });
            wait_for_all(&feeds).await.unwrap_err();
            tokio::time::advance(bound).await;
            wait_for_all(&feeds).await.unwrap();
            other.set_problem(None);
            other.change(|progress| progress.is_complete = false);
            wait_for_all(&feeds).await.unwrap_err();
        }
    }

    #[tokio::test]
    async fn a_feed_that_reached_more_than_a_restored_store_has_is_not_up_to_date() {
        let progress = FeedReports::default();
        progress.change(|progress| {
            progress.is_complete = true;
            progress.reached = Revision(1000);
        });
        let store = Memory::new();
        let feed = Position {
            store: store.clone(),
            progress: progress.reader(),
            wanted: Arc::new(watch::channel(Revision(1000)).0),
        };
        let feeds = [feed];
        let result = wait_for_all(&feeds).await;
        assert!(matches!(result, Err(RequestError::NotListed)), "{result:?}");
        let reached = store.current_revision().await.unwrap();
        progress.change(|progress| progress.reached = reached);
        wait_for_all(&feeds).await.unwrap();
    }
}
