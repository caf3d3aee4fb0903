//! Which callers share an answer, and how old it may be.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::*;

/// A clock with a slow query for its time.
struct Clock {
    single_flight: Arc<SingleFlight<u64>>,
    asked: Arc<AtomicU64>,
    takes: Duration,
}

impl Clock {
    fn new(takes: Duration) -> Self {
        Self {
            single_flight: SingleFlight::new(),
            asked: Arc::default(),
            takes,
        }
    }

    /// The number of the query that was answered.
    async fn ask(&self) -> u64 {
        let (asked, takes) = (Arc::clone(&self.asked), self.takes);
        let question = move || async move {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(takes).await;
            number
        };
        self.single_flight.ask(question).await
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn concurrent_callers_share_an_answer() {
    let clock = Clock::new(MILLISECOND);
    let mut answers = join_all((0..10).map(|_| clock.ask())).await;
    // The first query is sent before the others arrive.
    assert_eq!(answers.remove(0), 1);
    assert_eq!(answers, [2; 9]);
    assert_eq!(clock.ask().await, 3);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_never_older_than_its_question() {
    let clock = Clock::new(10 * MILLISECOND);
    let late = async {
        sleep(MILLISECOND).await;
        assert_eq!(clock.asked(), 1, "the first is on its way");
        join_all((0..10).map(|_| clock.ask())).await
    };
    let (first, late) = tokio::join!(clock.ask(), late);
    assert_eq!(first, 1);
    assert_eq!(late, [2; 10]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_holds_others_up_for_no_longer_than_patience() {
    let clock = Clock::new(3_600_000 * MILLISECOND);
    let asks_after = async |pause: Duration| {
        sleep(pause).await;
        let begin = Instant::now();
        clock.ask().await;
        begin.elapsed() - clock.takes
    };
    let (first, second, third) = tokio::join!(
        asks_after(Duration::ZERO),
        asks_after(MILLISECOND),
        asks_after(Duration::from_secs(1)),
    );
    assert_eq!(first, Duration::ZERO);
    assert_eq!(second, PATIENCE - MILLISECOND);
    assert_eq!(third, Duration::ZERO, "nobody has the turn any more");
}

#[tokio::test(start_paused = true)]
async fn who_no_longer_wants_to_know_takes_the_answer_from_nobody() {
    let clock = Clock::new(10 * MILLISECOND);
    // The caller that would send the query is dropped before or during the query; another one continues it.
    for leaves_after in [5, 15] {
        let before = clock.asked();
        let leaves = timeout(leaves_after * MILLISECOND, clock.ask());
        let (first, left, stayed) = tokio::join!(biased; clock.ask(), leaves, clock.ask());
        assert_eq!(first, before + 1);
        assert!(left.is_err());
        assert_eq!(stayed, before + 2);
    }
    // No caller is left: the next one sends a new query.
    let before = clock.asked();
    assert!(timeout(MILLISECOND, clock.ask()).await.is_err());
    assert_eq!(clock.ask().await, before + 2);
}
