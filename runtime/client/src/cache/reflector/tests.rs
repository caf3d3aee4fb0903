//! The reflector against a server that follows a script, in paused time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber, span};

use super::script::{MAX_LIST_BYTES, Request, Script};
use super::watch::IDLE_MARGIN;
use super::*;
use crate::cache::event::Listener;
use crate::cache::hub::{CacheError, CacheState, Group, Hub};
use crate::cache::lister::Lister;
use crate::cache::store::{Change, Observation};
use crate::cache::subscriber::{Lag, SubscriberMetrics};
use crate::cache::test_object::Pod;

/// Writes changes as text.
struct Log(Arc<Mutex<Vec<String>>>);

impl Listener<Pod> for Log {
    fn on_changes(&mut self, changes: &[Change<Pod>], is_initial: bool) -> Option<Lag> {
        let mut log = self.0.lock();
        for change in changes {
            log.push(match change {
                Change::Added(new) => format!("+{}@{}", new.name, new.version),
                Change::Updated { new, .. } => format!("~{}@{}", new.name, new.version),
                Change::Deleted { last, observed } => {
                    let mark = if *observed == Observation::Seen {
                        ""
                    } else {
                        "?"
                    };
                    format!("-{}@{}{mark}", last.name, last.version)
                }
            });
        }
        if is_initial {
            log.push("synced".to_owned());
        }
        None
    }
    fn close(&mut self) {}
    fn metrics(&self) -> Option<SubscriberMetrics> {
        None
    }
}

/// A reflector that runs against a script.
struct Run {
    script: Arc<Script>,
    hub: Arc<Hub<Pod>>,
    log: Arc<Mutex<Vec<String>>>,
    errors: Arc<Mutex<Vec<String>>>,
    server: ServerTraits,
    task: tokio::task::JoinHandle<()>,
}

impl Run {
    fn new(answers: &[&str], server: &ServerTraits, transform: Option<Transform<Pod>>) -> Self {
        let script = Script::new(answers.iter().map(|answer| (*answer).to_owned()));
        let (hub, log) = (Hub::new("pods"), Arc::new(Mutex::new(Vec::new())));
        let group = Group::new();
        hub.open(&group);
        hub.listen(&group, |_, _| Box::new(Log(Arc::clone(&log))));
        let errors = Arc::new(Mutex::new(Vec::new()));
        hub.set_on_error({
            let errors = Arc::clone(&errors);
            Arc::new(move |error: &CacheError| errors.lock().push(error.to_string()))
        });
        let settings = Settings {
            server: server.clone(),
            page_size: 500,
            seed: 1,
        };
        let source: Arc<dyn ListWatch<Pod>> = Arc::clone(&script) as _;
        let session = Session::new(source, Arc::clone(&hub), transform, settings);
        let reflector = Reflector::new(session);
        Self {
            script,
            hub,
            log,
            errors,
            server: server.clone(),
            task: tokio::spawn(reflector.run()),
        }
    }
    fn requests(&self) -> Vec<Request> {
        self.script.requests.lock().clone()
    }
    fn texts(&self) -> Vec<String> {
        let requests = self.requests();
        requests.into_iter().map(|request| request.text).collect()
    }
    fn lister(&self) -> Lister<Pod> {
        self.hub.lister().clone()
    }
}

/// Lists page by page, without trying a streaming list.
fn pages() -> ServerTraits {
    let server = ServerTraits::new();
    server.refuse_streaming_lists();
    server
}

/// Runs a script of requests and answers for ten minutes after the last one can have been sent.
async fn run(server: &ServerTraits, steps: &[(&str, &str)], changes: &str) -> Run {
    let answers: Vec<&str> = steps.iter().map(|(_, answer)| *answer).collect();
    let run = Run::new(&answers, server, None);
    for _ in 0..600 {
        sleep_seconds(1.0).await;
        if run.requests().len() >= steps.len() {
            break;
        }
    }
    sleep_seconds(200.0).await;
    let expected: Vec<&str> = steps.iter().map(|(request, _)| *request).collect();
    assert_eq!(run.texts(), expected);
    assert!(!run.task.is_finished(), "the reflector ended");
    assert_eq!(run.log.lock().join(" "), changes);
    run
}

async fn sleep_seconds(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_followed_by_a_watch() {
    let steps = [
        ("list rv=0 limit=500", "a@1 b@2 rv=5 continue=c1"),
        ("list continue=c1 limit=500", "c@3 rv=5"),
        ("watch rv=5", "~a@6 -b@7 +d@8"),
    ];
    let run = run(&pages(), &steps, "+a@1 +b@2 +c@3 synced ~a@6 -b@7 +d@8").await;
    let version = run.lister().resource_version().expect("a version");
    assert_eq!(version.as_str(), "8");
    assert!(matches!(*run.hub.state().borrow(), CacheState::Live { .. }));
}

#[tokio::test(start_paused = true)]
async fn trap_01_a_deletion_that_was_missed_is_inferred_once() {
    let steps = [
        ("list rv=0 limit=500", "a@1 b@2 rv=5"),
        ("watch rv=5", "~b@6 wait=2 break"),
        ("watch rv=6", "410"),
        ("list rv=6", "a@1 rv=9"),
        ("watch rv=9", ""),
    ];
    let run = run(&pages(), &steps, "+a@1 +b@2 synced ~b@6 -b@6?").await;
    assert!(run.lister().get("default", "b").is_none());
}

#[tokio::test(start_paused = true)]
async fn trap_02_a_deletion_and_creation_that_were_missed_are_two_events() {
    let steps = [
        ("list rv=0 limit=500", "a/one@1 rv=5"),
        ("watch rv=5", "wait=2 410"),
        ("list rv=5", "a/two@8 rv=9"),
        ("watch rv=9", ""),
    ];
    run(&pages(), &steps, "+a@1 synced -a@1? +a@8").await;
}

#[tokio::test(start_paused = true)]
async fn trap_05_a_bookmark_is_where_a_watch_continues() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "b@70 wait=2 eof"),
        ("watch rv=70", ""),
    ];
    let run = run(&pages(), &steps, "+a@1 synced").await;
    assert_eq!(run.lister().len(), 1);
    let version = run.lister().resource_version().expect("a version");
    assert_eq!(version.as_str(), "70");
}

#[tokio::test(start_paused = true)]
async fn trap_07_all_ways_of_410_lead_to_a_list() {
    let in_stream = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "wait=2 410"),
        ("list rv=5", "a@7 rv=9"),
        ("watch rv=9", ""),
    ];
    run(&pages(), &in_stream, "+a@1 synced ~a@7").await;
    let of_watch = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "410"),
        ("list rv=5", "410"),
        ("list rv= limit=500", "a@7 rv=9"),
        ("watch rv=9", ""),
    ];
    run(&pages(), &of_watch, "+a@1 synced ~a@7").await;
    let between_pages = [
        ("list rv=0 limit=500", "a@1 old@1 rv=5 continue=c1"),
        ("list continue=c1 limit=500", "410"),
        ("list rv=0", "a@2 b@3 rv=9"),
        ("watch rv=9", ""),
    ];
    run(&pages(), &between_pages, "+a@2 +b@3 synced").await;
}

/// A server that answers every watch with 410 is not asked all the time.
#[tokio::test(start_paused = true)]
async fn trap_07_repeated_410_is_slowed_down() {
    let mut answers = vec!["a@1 rv=5"];
    for _ in 0..100 {
        answers.extend(["410", "a@1 rv=5"]);
    }
    let run = Run::new(&answers, &pages(), None);
    sleep_seconds(300.0).await;
    let requests = run.requests();
    assert!(
        requests[2].at < Duration::from_millis(10),
        "the first list is at once"
    );
    assert!(
        (10..60).contains(&requests.len()),
        "{} requests",
        requests.len()
    );
}

#[tokio::test(start_paused = true)]
async fn trap_08_a_version_that_the_server_does_not_know_yet_is_given_up() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=50"),
        ("watch rv=50", "410"),
        ("list rv=50", "large"),
        ("list rv= limit=500", "a@1 rv=40"),
        ("watch rv=40", ""),
    ];
    run(&pages(), &steps, "+a@1 synced").await;
    let streaming = [
        ("stream rv=", "+a@1 end@50 wait=2 410"),
        ("stream rv=50", "wait=3 large"),
        ("stream rv=", "+a@1 end@40"),
    ];
    run(&ServerTraits::new(), &streaming, "+a@1 synced").await;
    let watch = [
        ("list rv=0 limit=500", "a@1 rv=50"),
        ("watch rv=50", "large"),
        ("list rv= limit=500", "a@1 rv=40"),
        ("watch rv=40", ""),
    ];
    run(&pages(), &watch, "+a@1 synced").await;
}

#[tokio::test(start_paused = true)]
async fn trap_09_a_list_never_asks_for_an_older_state() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "~a@60 b@80 wait=2 410"),
        ("list rv=80", "500"),
        ("list rv=80", "break"),
        ("list rv=80", "a@60 rv=90"),
        ("watch rv=90", "wait=2 404"),
        ("list rv=90", "a@60 rv=91"),
        ("watch rv=91", ""),
    ];
    run(&pages(), &steps, "+a@1 synced ~a@60").await;
}

#[tokio::test(start_paused = true)]
async fn trap_10_initial_events_of_a_watch_are_no_place_to_continue() {
    // A server without versions of lists: the watch sends the present objects first, in any order of versions.
    let steps = [
        ("list rv=0 limit=500", "a@7 b@3"),
        ("watch rv=", "+a@7 +b@3 wait=2 eof"),
        ("list rv=0 limit=500", "a@7 b@3"),
        ("watch rv=", "+a@7 +b@3 ~a@9 +c@12 wait=2 eof"),
        ("watch rv=12", ""),
    ];
    run(&pages(), &steps, "+a@7 +b@3 synced ~a@9 +c@12").await;
}

#[tokio::test(start_paused = true)]
async fn trap_11_a_streaming_list_that_breaks_leaves_nothing() {
    let steps = [
        ("stream rv=", "+a@1 +gone@1 break"),
        (
            "stream rv=",
            "+a@1 b@3 +b@2 ~b@4 +c@3 -c@5 wait=2 end@6 ~a@7",
        ),
    ];
    let run = run(&ServerTraits::new(), &steps, "+a@1 +b@4 synced ~a@7").await;
    assert!(run.lister().get("default", "gone").is_none());
}

#[tokio::test(start_paused = true)]
async fn trap_12_a_refused_streaming_list_is_remembered_for_the_server() {
    for code in ["400", "422"] {
        let steps = [
            ("stream rv=", code),
            ("list rv=0 limit=500", "a@1 rv=5"),
            ("watch rv=5", "wait=2 410"),
            ("list rv=5", "a@1 rv=9"),
            ("watch rv=9", ""),
        ];
        let first = run(&ServerTraits::new(), &steps, "+a@1 synced").await;
        assert!(first.server.refuses_streaming_lists());
        run(&first.server, &steps[1..], "+a@1 synced").await;
    }
    // A server without progress notifications says so in the stream.
    let steps = [
        ("stream rv=", " progress"),
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", ""),
    ];
    let first = run(&ServerTraits::new(), &steps, "+a@1 synced").await;
    assert_eq!(first.requests()[2].at, Duration::ZERO);
    run(&first.server, &steps[1..], "+a@1 synced").await;
    // These are about one resource, or one user.
    for code in ["403", "405"] {
        let steps = [
            ("stream rv=", code),
            ("list rv=0 limit=500", "a@1 rv=5"),
            ("watch rv=5", "wait=2 410"),
            ("list rv=5", "a@1 rv=9"),
            ("watch rv=9", ""),
        ];
        let run = run(&ServerTraits::new(), &steps, "+a@1 synced").await;
        assert!(!run.server.refuses_streaming_lists());
    }
    // A resource that is not there yet says nothing about streaming lists.
    let steps = [
        ("stream rv=", "404"),
        ("list rv=0 limit=500", "404"),
        ("stream rv=", "+a@1 end@5"),
    ];
    run(&ServerTraits::new(), &steps, "+a@1 synced").await;
}

#[tokio::test(start_paused = true)]
async fn trap_13_a_server_without_the_bookmark_does_not_hang_the_start() {
    // It ignores sendInitialEvents, and sends changes all the time.
    let mut busy = "+a@1 ".to_owned();
    for version in 2..200 {
        busy.push_str(&format!("wait=1 ~a@{version} "));
    }
    for stream in ["+a@1", "", &busy] {
        let steps = [
            ("stream rv=", stream),
            ("list rv=0 limit=500", "a@1 rv=5"),
            ("watch rv=5", ""),
        ];
        let run = run(&ServerTraits::new(), &steps, "+a@1 synced").await;
        assert!(run.requests()[1].at <= Duration::from_secs(40), "{stream}");
        assert!(run.server.refuses_streaming_lists());
    }
    // Objects that keep coming are the state, up to a limit.
    let endless: String = (1..300).map(|n| format!("+p{n}@{n} wait=1 ")).collect();
    let answers = [&*endless, "a@1 rv=5", ""];
    let run = Run::new(&answers, &ServerTraits::new(), None);
    sleep_seconds(200.0).await;
    assert_eq!(run.texts()[1..], ["list rv=0 limit=500", "watch rv=5"]);
}

/// The texts of the warnings of this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn trap_13_a_streaming_list_without_an_end_is_warned_of_after_ten_seconds() {
    let warnings = Warnings::default();
    // While a process has one subscriber, tracing asks only the thread that first reaches the warning whether it is read,
    // and that may be the thread of another test. With two it asks them all.
    let _second = tracing::Dispatch::new(warnings.clone());
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let run = Run::new(&["+a@1", "a@1 rv=5", ""], &ServerTraits::new(), None);
    sleep_seconds(9.9).await;
    assert_eq!(*warnings.0.lock(), [""; 0]);
    sleep_seconds(0.2).await;
    let expected = "a streaming list has sent nothing for 10 s, and not yet its end";
    assert_eq!(*warnings.0.lock(), [expected]);
    sleep_seconds(60.0).await;
    assert_eq!(*warnings.0.lock(), [expected], "once");
    assert_eq!(run.lister().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_13_streaming_lists_that_end_early_are_replaced_by_a_list() {
    let steps = [
        ("stream rv=", "+a@1 eof"),
        ("stream rv=", "+a@1 eof"),
        ("stream rv=", "503"),
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "wait=2 410"),
        ("stream rv=5", "+a@1 end@9"),
    ];
    run(&ServerTraits::new(), &steps, "+a@1 synced").await;
}

#[tokio::test(start_paused = true)]
async fn trap_14_a_streaming_list_goes_on_as_the_watch() {
    let steps = [
        ("stream rv=", "+a@1 end@5 ~a@6 wait=2 -a@7 wait=2 eof"),
        ("watch rv=7", ""),
    ];
    run(&ServerTraits::new(), &steps, "+a@1 synced ~a@6 -a@7").await;
}

#[tokio::test(start_paused = true)]
async fn trap_15_a_deletion_is_where_a_watch_continues() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "-a@30 wait=2 eof"),
        ("watch rv=30", ""),
    ];
    run(&pages(), &steps, "+a@1 synced -a@30").await;
}

#[tokio::test(start_paused = true)]
async fn trap_17_a_bad_object_is_reported_once_and_leaves_the_store() {
    let steps = [
        ("list rv=0 limit=500", "a@1 !bad@2 c@3 rv=5"),
        ("watch rv=5", "!a@6 ~c@7 !a@6 wait=2 eof"),
        ("watch rv=7", "wait=2 410"),
        ("list rv=7", "!a@6 !bad@8 c@7 rv=9"),
        ("watch rv=9", "~a@10"),
    ];
    let run = run(&pages(), &steps, "+a@1 +c@3 synced -a@1? ~c@7 +a@10").await;
    let reports = [
        "the object default/bad cannot be cached: not a pod",
        "the object default/a cannot be cached: not a pod",
        "the object default/bad cannot be cached: not a pod",
    ];
    assert_eq!(*run.errors.lock(), reports);

    let streaming = [("stream rv=", "+a@1 !a@2 +c@3 !bad@4 end@5 !c@6")];
    let run = super::tests::run(&ServerTraits::new(), &streaming, "+c@3 synced -c@3?").await;
    assert_eq!(run.errors.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn trap_20_a_silent_watch_is_opened_again_and_one_with_bookmarks_is_not() {
    let run = Run::new(&["a@1 rv=5", "", ""], &pages(), None);
    sleep_seconds(299.0).await;
    assert_eq!(run.requests().len(), 2);
    sleep_seconds(332.0).await;
    assert_eq!(run.texts()[2], "watch rv=5");
    let requests = run.requests();
    let silent = requests[2].at - requests[1].at;
    assert_eq!(
        silent.as_secs(),
        (requests[1].timeout + IDLE_MARGIN).as_secs()
    );

    // An hour of bookmarks, which this server sends although the watch should have ended.
    let bookmarks: String = (6..66).map(|n| format!("wait=60 b@{n} ")).collect();
    let run = Run::new(&["a@1 rv=5", &bookmarks], &pages(), None);
    sleep_seconds(3600.0).await;
    assert_eq!(run.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn trap_21_watches_that_began_together_end_apart() {
    // The seeds of the reflectors are drawn from this one: a fixed one for all of them would be seen.
    fastrand::seed(21);
    let mut timeouts = Vec::new();
    for _ in 0..100 {
        let script = Script::new(["rv=5".to_owned()]);
        let settings = Settings {
            server: pages(),
            ..Settings::default()
        };
        let source: Arc<dyn ListWatch<Pod>> = Arc::clone(&script) as _;
        let session = Session::new(source, Hub::new("pods"), None, settings);
        let task = tokio::spawn(Reflector::new(session).run());
        sleep_seconds(0.1).await;
        timeouts.push(script.requests.lock()[1].timeout);
        task.abort();
    }
    let limits = Duration::from_secs(300)..Duration::from_secs(600);
    assert!(timeouts.iter().all(|timeout| limits.contains(timeout)));
    // In each minute of the five some end.
    for minute in 5..10 {
        let range = Duration::from_secs(minute * 60)..Duration::from_secs((minute + 1) * 60);
        let count = timeouts
            .iter()
            .filter(|timeout| range.contains::<Duration>(timeout))
            .count();
        assert!((5..40).contains(&count), "{count} in minute {minute}");
    }
}

#[tokio::test(start_paused = true)]
async fn trap_22_a_watch_that_cannot_be_opened_is_tried_again_without_a_list() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "429"),
        ("watch rv=5", "break"),
        ("watch rv=5", "503"),
        ("watch rv=5", "~a@6"),
    ];
    let run = run(&pages(), &steps, "+a@1 synced ~a@6").await;
    let at: Vec<f64> = run.requests().iter().map(|r| r.at.as_secs_f64()).collect();
    for (index, first) in [(2, 0.8), (3, 1.6), (4, 3.2)] {
        let delay = at[index] - at[index - 1];
        assert!(delay >= first && delay <= first * 2.0 + 0.01, "{delay} s");
    }
    assert!(matches!(*run.hub.state().borrow(), CacheState::Live { .. }));
}

#[tokio::test(start_paused = true)]
async fn trap_22_ten_quick_failures_cause_no_flood() {
    let answers: Vec<&str> = ["a@1 rv=5"].into_iter().chain([" break"; 100]).collect();
    let run = Run::new(&answers, &pages(), None);
    sleep_seconds(60.0).await;
    let count = run.requests().len();
    assert!((4..=9).contains(&count), "{count} requests in a minute");
    let state = run.hub.state().borrow().clone();
    let CacheState::Degraded { error, since } = state else {
        panic!("not degraded: {state:?}");
    };
    assert_eq!(error.message, "break");
    assert!(since.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn trap_22_a_server_says_how_long_to_wait() {
    let steps = [
        ("list rv=0 limit=500", "429/60"),
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", ""),
    ];
    let run = run(&pages(), &steps, "+a@1 synced").await;
    assert_eq!(run.requests()[1].at.as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn trap_23_a_watch_that_ends_at_once_counts_as_a_failure() {
    for stream in ["eof", "b@5 eof", "~a@6 eof"] {
        let answers: Vec<&str> = ["a@1 rv=5"].into_iter().chain([stream; 200]).collect();
        let run = Run::new(&answers, &pages(), None);
        sleep_seconds(60.0).await;
        let count = run.requests().len();
        assert!((4..=9).contains(&count), "{count} requests in a minute");
    }
    // One that lasted is continued at once.
    let run = Run::new(&["a@1 rv=5", "wait=2 eof", ""], &pages(), None);
    sleep_seconds(2.1).await;
    assert_eq!(run.texts()[2], "watch rv=5");
}

#[tokio::test(start_paused = true)]
async fn trap_24_an_object_that_is_not_selected_any_more_is_deleted_once() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", "-a@6 -a@7 +a@8 -a@9"),
    ];
    run(&pages(), &steps, "+a@1 synced -a@6 +a@8 -a@9").await;
}

/// Counts how often each state is transformed, and fails for some.
fn transform(counts: Arc<Mutex<Vec<String>>>) -> Transform<Pod> {
    Arc::new(move |pod: &mut Pod| {
        counts.lock().push(format!("{}@{}", pod.name, pod.version));
        match &*pod.name {
            "bad" => Err("no reason".to_owned()),
            "panic" => panic!("of the transformation"),
            "renamed" => {
                pod.name = "other".to_owned();
                Ok(())
            }
            _ => {
                pod.labels.insert("stripped".to_owned(), "yes".to_owned());
                Ok(())
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn trap_30_each_state_is_transformed_once() {
    let counts = Arc::new(Mutex::new(Vec::new()));
    let answers = ["+a@1 +b@2 end@5 ~a@6 -b@7 wait=2 410", "+a@6 +c@8 end@9"];
    let run = Run::new(
        &answers,
        &ServerTraits::new(),
        Some(transform(Arc::clone(&counts))),
    );
    sleep_seconds(10.0).await;
    assert_eq!(*counts.lock(), ["a@1", "b@2", "a@6", "b@7", "c@8"]);
    let objects = run.lister().list();
    assert_eq!(objects.len(), 2);
    assert!(
        objects
            .iter()
            .all(|pod| pod.labels.contains_key("stripped"))
    );
}

#[tokio::test(start_paused = true)]
async fn trap_31_a_transformation_that_fails_costs_only_its_object() {
    for (answers, server) in [
        (
            vec!["a@1 bad@2 panic@3 renamed@4 b@5 rv=9", "~b@10"],
            pages(),
        ),
        (
            vec!["+a@1 +bad@2 +panic@3 +renamed@4 end@9 +b@10"],
            ServerTraits::new(),
        ),
        (
            vec!["rv=1", "+a@1 +bad@2 +panic@3 +renamed@4 +b@10"],
            pages(),
        ),
    ] {
        let counts = Arc::new(Mutex::new(Vec::new()));
        let run = Run::new(&answers, &server, Some(transform(counts)));
        sleep_seconds(10.0).await;
        let mut names: Vec<String> = run
            .lister()
            .keys()
            .iter()
            .map(ToString::to_string)
            .collect();
        names.sort();
        assert_eq!(names, ["default/a", "default/b"]);
        let errors = run.errors.lock().clone();
        assert_eq!(
            errors,
            [
                "the object default/bad cannot be cached: the transformation failed: no reason",
                "the object default/panic cannot be cached: the transformation panicked",
                "the object default/renamed cannot be cached: the transformation changed its name, namespace, uid or resourceVersion",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_cache_is_read_in_pages_again() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5 continue=c1"),
        ("list continue=c1 limit=500", "b@1 rv=5"),
        ("watch rv=5", "wait=2 410"),
        ("list rv=5 limit=500", "a@1 b@1 rv=9"),
        ("watch rv=9", ""),
    ];
    run(&pages(), &steps, "+a@1 +b@1 synced").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_repeats_a_page_is_not_followed_for_ever() {
    let steps = [
        ("list rv=0 limit=500", "a@1 rv=5 continue=c1"),
        ("list continue=c1 limit=500", "b@1 rv=5 continue=c1"),
        ("list rv=0 limit=500", "a@1 rv=5"),
        ("watch rv=5", ""),
    ];
    run(&pages(), &steps, "+a@1 synced").await;
}

#[tokio::test(start_paused = true)]
async fn objects_without_a_name_are_not_cached() {
    let steps = [("stream rv=", "+@1 +a@2 end@5 +@6 ~@7")];
    let run = run(&ServerTraits::new(), &steps, "+a@2 synced").await;
    let error = "the object without a name cannot be cached: it has no metadata.name";
    assert_eq!(*run.errors.lock(), [error]);
}

/// All objects in one response are more than a client accepts, or than a connection lasts.
#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_repeatedly_is_read_in_pages() {
    let steps = [
        ("list rv=0 limit=500", "break"),
        ("list rv=0 limit=500", "break"),
        ("list rv= limit=500", "a@1 rv=5 continue=c1"),
        ("list continue=c1 limit=500", "b@2 rv=5"),
        ("watch rv=5", "wait=2 410"),
        ("list rv=5", "break"),
        ("list rv=5", "break"),
        ("list rv=5 limit=500", "410"),
        ("list rv= limit=500", "a@1 rv=9 continue=c2"),
        ("list continue=c2 limit=500", "b@2 rv=9"),
        ("watch rv=9", "wait=2 410"),
        ("list rv=9", "a@1 b@2 rv=12"),
        ("watch rv=12", ""),
    ];
    run(&pages(), &steps, "+a@1 +b@2 synced").await;
}

/// A server that accepts connections and then says nothing.
#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_is_given_up() {
    let run = Run::new(&[], &pages(), None);
    sleep_seconds(310.0).await;
    assert_eq!(run.texts().len(), 2);
    assert_eq!(run.errors.lock()[0], "the server did not respond in time");
}

#[tokio::test(start_paused = true)]
async fn lists_of_endless_pages_are_errors() {
    let full = "a".repeat(MAX_LIST_BYTES / 4);
    let full = |n: usize| format!("{full}@{n} rv=5 continue=c{n}");
    let empty = |n: usize| format!("rv=5 continue=c{n}");
    for (name, page, count) in [
        ("full", &full as &dyn Fn(usize) -> String, 4),
        ("empty", &empty, 17),
    ] {
        let mut answers: Vec<String> = (0..count).map(page).collect();
        answers.push("a@1 rv=6".to_owned());
        answers.push(String::new());
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        let run = Run::new(&answers, &pages(), None);
        sleep_seconds(60.0).await;
        let texts = run.texts();
        assert_eq!(texts.len(), count + 2, "{name}: {texts:?}");
        assert!(texts[count - 1].starts_with("list continue="), "{name}");
        assert!(texts[count].starts_with("list rv="), "{name}");
        assert!(texts[count + 1].starts_with("watch rv=6"), "{name}");
        assert_eq!(run.lister().len(), 1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_again_and_again_is_not_begun_at_once_each_time() {
    let pairs = ["a@1 rv=5 continue=c", "410"];
    let answers: Vec<&str> = pairs.iter().copied().cycle().take(400).collect();
    let run = Run::new(&answers, &pages(), None);
    sleep_seconds(5.0).await;
    let count = run.requests().len();
    assert!((4..40).contains(&count), "{count}");
}
