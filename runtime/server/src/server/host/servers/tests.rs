//! The records of servers over one store, in paused time.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_storage::{Entry, Layer, Memory};
use async_trait::async_trait;
use tokio::time::Instant;

use super::*;

const GARBAGE_COLLECTOR: &str = "garbage-collector-controller";
const NAMESPACES: &str = "namespace-controller";

const ALL: [&str; 2] = [GARBAGE_COLLECTOR, NAMESPACES];

/// A store whose next reads of single keys fail.
struct Failing {
    store: Arc<Memory>,
    failures: AtomicUsize,
}

impl fmt::Debug for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failing").finish_non_exhaustive()
    }
}

#[async_trait]
impl Layer for Failing {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }

    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let take = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        match self.failures.fetch_update(order, order, take) {
            Ok(_) => Err(StorageError::Unavailable("by the test".into())),
            Err(_) => self.store.get(key).await,
        }
    }
}

fn store_with_failures(failures: usize) -> Arc<dyn Storage> {
    Arc::new(Failing {
        store: Memory::new(),
        failures: AtomicUsize::new(failures),
    })
}

/// A server over a store that serves Namespaces.
fn server_over(store: &Arc<dyn Storage>) -> Servers {
    let registry = apiloom_kinds::registry(Memory::new()).build().unwrap();
    let shared = SharedStore::new(Arc::clone(store), "/registry".to_owned());
    Servers::new(&shared, Arc::new(registry), ALL.to_vec())
}

/// The record of another server that serves Namespaces and one more kind.
fn larger(controllers: &str) -> Bytes {
    let kinds = r#"[["", "Namespace"], ["", "B"]]"#;
    format!(r#"{{"kinds": {kinds}, "controllers": {controllers}}}"#).into()
}

/// Waits until there are this many records of other servers.
async fn until_others(servers: &Servers, count: usize) -> Vec<Record> {
    loop {
        let others = servers.others().await.unwrap();
        if others.len() == count {
            return others;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_outlives_its_server_which_runs_no_controllers_then() {
    let store = store_with_failures(0);
    let (stays, stops) = (server_over(&store), server_over(&store));
    let stop = CancellationToken::new();
    let checks = async {
        let running = until_others(&stays, 1).await;
        assert_eq!(running[0].controllers.len(), ALL.len());
        stop.cancel();
    };
    tokio::join!(stops.keep_record(&stop), checks);
    let others = stays.others().await.unwrap();
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].kinds, stops.own_kinds());
    assert!(others[0].controllers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_record_that_could_not_be_written_is_written_soon() {
    let store = store_with_failures(3);
    let (reads, writes) = (server_over(&store), server_over(&store));
    let stop = CancellationToken::new();
    let started = Instant::now();
    let checks = async {
        until_others(&reads, 1).await;
        let waited = started.elapsed();
        assert!((3 * RETRY..4 * RETRY).contains(&waited), "{waited:?}");
        stop.cancel();
    };
    tokio::join!(writes.keep_record(&stop), checks);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_deleted_is_written_again() {
    let store = store_with_failures(0);
    let (reads, writes) = (server_over(&store), server_over(&store));
    let stop = CancellationToken::new();
    let checks = async {
        until_others(&reads, 1).await;
        let (entry, _) = store.get(&writes.own).await.unwrap();
        let deleted = store.delete_if(&writes.own, entry.unwrap().revision);
        deleted.await.unwrap();
        until_others(&reads, 1).await;
        stop.cancel();
    };
    tokio::join!(writes.keep_record(&stop), checks);
}

#[test]
fn a_better_server_serves_more_kinds_and_runs_the_controller() {
    let kind = |name: &'static str| (SmolStr::default(), SmolStr::new_static(name));
    let own = BTreeSet::from([kind("A")]);
    for (kinds, controllers, expected) in [
        (&["A", "B"][..], &["namespace-controller"][..], true),
        (&["A", "B"], &["garbage-collector-controller"], false),
        (&["A", "B"], &[], false),
        (&["B", "C"], &["namespace-controller"], false),
        (&["A"], &["namespace-controller"], false),
    ] {
        let record = Record {
            is_stopped: false,
            kinds: kinds.iter().map(|name| kind(name)).collect(),
            controllers: controllers.iter().map(SmolStr::new).collect(),
        };
        let is_better = record.is_better_than(&own, NAMESPACES);
        assert_eq!(is_better, expected, "{record:?}");
    }
    assert!(!Record::unknown().is_better_than(&BTreeSet::new(), NAMESPACES));
}

/// A server that reads its definitions serves fewer kinds for a moment.
#[tokio::test(start_paused = true)]
async fn leadership_is_kept_while_only_one_look_finds_a_better_server() {
    let store = store_with_failures(0);
    let servers = server_over(&store);
    let other = format!("{}other", servers.prefix);
    let waits = async |is_lasting: bool| {
        let value = larger(r#"["garbage-collector-controller"]"#);
        let revision = store.create(&other, value, None).await.unwrap();
        let started = Instant::now();
        let looks = servers.wait_for_better(GARBAGE_COLLECTOR);
        let change = async {
            tokio::time::sleep(LOOK / 2).await;
            if !is_lasting {
                store.delete_if(&other, revision).await.unwrap();
            }
            tokio::time::sleep(10 * LOOK).await;
        };
        tokio::select! {
            () = looks => Some(started.elapsed()),
            () = change => None,
        }
    };
    assert_eq!(waits(false).await, None);
    assert!(waits(true).await.is_some_and(|waited| waited < 2 * LOOK));
    servers.wait_for_none_better(NAMESPACES).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_is_no_other_server() {
    let store = store_with_failures(0);
    let server = || {
        let registry = apiloom_kinds::registry(Memory::new()).build().unwrap();
        let shared = SharedStore::new(Arc::clone(&store), "/registry".to_owned());
        let servers = Servers::new(&shared, Arc::new(registry), ALL.to_vec());
        (shared, servers)
    };
    let ((stays, stays_record), (_, stops)) = (server(), server());
    assert_eq!(stays.other_servers().await, OtherServers::NotYetKnown);
    let (end, stop) = (CancellationToken::new(), CancellationToken::new());
    let checks = async {
        until_others(&stays_record, 1).await;
        assert_eq!(stays.other_servers().await, OtherServers::Some);
        stop.cancel();
        while stays.other_servers().await != OtherServers::None {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Its record is still there, for the kinds in it.
        assert_eq!(stays_record.others().await.unwrap().len(), 1);
        end.cancel();
    };
    tokio::join!(
        stays_record.keep_record(&end),
        stops.keep_record(&stop),
        checks
    );
}
