//! Faults of etcd must not lose acknowledged writes, nor changes of a watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::{
    Etcd, EtcdConfig, EventKind, ListRequest, Revision, Storage, StorageError, WatchItem,
    WatchStart,
};
use apiloom_tests::etcd;
use apiloom_tests::network::{Networks, Proxy, isolated};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::timeout;

use super::load::{Load, PATIENCE};

async fn over(servers: impl IntoIterator<Item = String>) -> Arc<dyn Storage> {
    Etcd::connect(EtcdConfig::new(servers)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_etcd_loses_nothing_and_watches_go_on() {
    for release in etcd::Etcd::RELEASES {
        let mut etcd = etcd::Etcd::start(release);
        let store = over([etcd.url()]).await;
        let load = Load::start(&store).await;
        for _ in 0..5 {
            load.progress.more(100).await;
            etcd.kill();
            etcd.restart();
        }
        load.progress.more(100).await;
        load.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_etcd_fails_requests_in_time_and_nothing_is_lost() {
    for release in etcd::Etcd::RELEASES {
        let etcd = etcd::Etcd::start(release);
        let store = over([etcd.url()]).await;
        let load = Load::start(&store).await;
        load.progress.more(100).await;
        etcd.pause();
        let started = Instant::now();
        load.progress.failures(load.progress.failed()).await;
        let read = store.get("/registry/a").await;
        assert!(
            matches!(read, Err(StorageError::Unavailable(_))),
            "{read:?}"
        );
        assert!(started.elapsed() < Duration::from_secs(40));
        etcd.resume();
        load.progress.more(100).await;
        load.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_of_what_was_delivered_disturbs_no_watch() {
    for release in etcd::Etcd::RELEASES {
        let etcd = etcd::Etcd::start(release);
        let store = over([etcd.url()]).await;
        let load = Load::start(&store).await;
        for _ in 0..10 {
            load.progress.more(50).await;
            store.compact(load.seen()).await.unwrap();
        }
        load.finish().await;
    }
}

/// The member in use does not answer, and a read is not lost with it.
#[tokio::test(flavor = "multi_thread")]
async fn reads_that_a_paused_member_does_not_answer_are_answered_by_another() {
    let members = etcd::Etcd::start_three(etcd::Etcd::NEWEST);
    let store = over(members.iter().map(etcd::Etcd::url)).await;
    let last = create(&*store, "/registry/a").await;
    for member in &members {
        member.pause();
        let started = Instant::now();
        let (entry, _) = loop {
            match store.get("/registry/a").await {
                // The paused one was the leader, and the others elect a new one.
                Err(StorageError::Unavailable(reason))
                    if reason.contains("no leader") && started.elapsed() < PATIENCE =>
                {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                read => break read.unwrap(),
            }
        };
        assert_eq!(entry.unwrap().revision, last);
        member.resume();
    }
}

/// A watch that was cut off continues at its revision, or ends with an error that says it cannot.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_was_cut_off_misses_nothing_or_says_so() {
    for release in etcd::Etcd::RELEASES {
        let etcd = etcd::Etcd::start(release);
        let proxy = Proxy::start(etcd.address()).await;
        let (near, far) = (
            over([etcd.url()]).await,
            over([proxy.address().to_owned()]).await,
        );
        let mut watch = far.watch("/registry/", WatchStart::Now).await.unwrap();
        let last = create(&*near, "/registry/a").await;
        assert_eq!(next_revision(&mut watch).await, Ok(last));

        proxy.cut().await;
        let last = create(&*near, "/registry/b").await;
        proxy.heal();
        assert_eq!(next_revision(&mut watch).await, Ok(last));

        proxy.cut().await;
        create(&*near, "/registry/c").await;
        let compacted = create(&*near, "/registry/d").await;
        near.compact(compacted).await.unwrap();
        proxy.heal();
        let requested = last;
        assert_eq!(
            next_revision(&mut watch).await,
            Err(StorageError::Compacted {
                requested,
                compacted
            })
        );
        assert_eq!(watch.next().await, None);

        let mut watch = far.watch("/registry/", WatchStart::Now).await.unwrap();
        let last = create(&*near, "/registry/e").await;
        assert_eq!(next_revision(&mut watch).await, Ok(last));
    }
}

/// How etcd is replaced.
#[derive(Clone, Copy, Debug)]
enum Return {
    Emptied,
    Restored,
}

/// An etcd that lost acknowledged writes ends watches, and is then served with its new content.
/// Before it is reached again it gets this many changes: with few of them it is behind the known revision, with many
/// beyond.
async fn comes_back_older(release: &str, how: Return, changes: usize) {
    let mut etcd = etcd::Etcd::start(release);
    let proxy = Proxy::start(etcd.address()).await;
    let store = over([proxy.address().to_owned()]).await;
    let first = create(&*store, "/registry/a/first").await;
    etcd.kill();
    let backup = etcd.backup();
    etcd.restart();
    let mut watch = store
        .watch("/registry/a/", WatchStart::After(first))
        .await
        .unwrap();
    let mut last = first;
    for index in 0..20 {
        last = create(&*store, &format!("/registry/a/{index}")).await;
        assert_eq!(next_revision(&mut watch).await, Ok(last));
    }

    proxy.cut().await;
    etcd.kill();
    match how {
        Return::Emptied => etcd.empty(),
        Return::Restored => etcd.restore(&backup),
    }
    etcd.restart();
    for index in 0..changes {
        etcd.put("/registry/a/new", &json!(index));
    }
    proxy.heal();

    let what = format!("{release} {how:?} {changes}");
    match next_revision(&mut watch).await {
        Err(StorageError::Restored { seen, current }) => {
            assert!(seen >= last, "{what}: {seen}");
            assert_eq!(current < last, changes < 20, "{what}: {current}");
        }
        other => panic!("{what}: {other:?}"),
    }
    assert_eq!(watch.next().await, None, "{what}");
    let listed = store.list(ListRequest {
        prefix: "/registry/a/".to_owned(),
        ..ListRequest::default()
    });
    let listed = listed.await.unwrap();
    let keys: Vec<&str> = listed.entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(
        keys,
        match how {
            Return::Emptied => ["/registry/a/new"].as_slice(),
            Return::Restored => &["/registry/a/first", "/registry/a/new"],
        },
        "{what}"
    );
    let mut watch = store
        .watch("/registry/a/", WatchStart::After(listed.revision))
        .await
        .unwrap();
    let next = create(&*store, "/registry/a/next").await;
    assert_eq!(next_revision(&mut watch).await, Ok(next), "{what}");
    if next < last {
        // A revision of the lost history, not of the future.
        let refused = store.watch("/registry/a/", WatchStart::After(last)).await;
        assert!(
            matches!(refused, Err(StorageError::Compacted { requested, .. }) if requested == last),
            "{what}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_comes_back_older_ends_watches() {
    for release in etcd::Etcd::RELEASES {
        for how in [Return::Emptied, Return::Restored] {
            comes_back_older(release, how, 2).await;
            comes_back_older(release, how, 60).await;
        }
    }
}

/// Elections and restarts do not count as a replaced history.
#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_comes_back_as_it_was_ends_no_watch() {
    let mut members = etcd::Etcd::start_three(etcd::Etcd::NEWEST);
    let store = over(members.iter().map(etcd::Etcd::url)).await;
    let mut watch = store.watch("/registry/", WatchStart::Now).await.unwrap();
    for (round, member) in members.iter_mut().enumerate() {
        let last = create(&*store, &format!("/registry/{round}")).await;
        assert_eq!(next_revision(&mut watch).await, Ok(last));
        // The leader is one of them.
        member.kill();
        member.restart();
    }
    let last = create(&*store, "/registry/last").await;
    assert_eq!(next_revision(&mut watch).await, Ok(last));
}

async fn create(store: &dyn Storage, key: &str) -> Revision {
    store.create(key, "1".into(), None).await.unwrap()
}

/// The revision of the next change.
async fn next_revision(watch: &mut apiloom_storage::WatchStream) -> Result<Revision, StorageError> {
    loop {
        match timeout(PATIENCE, watch.next())
            .await
            .expect("a watch delivers")
        {
            Some(Ok(WatchItem::Event(event))) => {
                assert_eq!(event.kind, EventKind::Created);
                return Ok(event.revision);
            }
            Some(Ok(WatchItem::Progress(_))) => {}
            Some(Err(error)) => return Err(error),
            None => panic!("a watch ends with an error"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_of_three_members_may_be_killed() {
    let mut members = etcd::Etcd::start_three(etcd::Etcd::NEWEST);
    let store = over(members.iter().map(etcd::Etcd::url)).await;
    let load = Load::start(&store).await;
    for member in &mut members {
        load.progress.more(100).await;
        member.kill();
        load.progress.more(100).await;
        member.restart();
    }
    load.finish().await;
}

/// Uses network namespaces if the machine allows them; else a member is paused, which cuts it off from all.
#[test]
fn any_of_three_members_may_be_cut_off() {
    match isolated("faults::any_of_three_members_may_be_cut_off") {
        // It ran in a network namespace of its own.
        Some(false) => {}
        Some(true) => runtime().block_on(cut_off_in_networks()),
        None => {
            eprintln!("this machine allows no networks: members are paused instead of cut off");
            runtime().block_on(pause_each());
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

async fn cut_off_in_networks() {
    let networks = Networks::new(3);
    let members = etcd::Etcd::start_in(etcd::Etcd::NEWEST, networks.places());
    let store = over(members.iter().map(etcd::Etcd::url)).await;
    let load = Load::start(&store).await;
    for member in 0..3 {
        load.progress.more(100).await;
        networks.cut_from_peers(member);
        load.progress.more(100).await;
        networks.heal(member);
        load.progress.more(100).await;
        networks.cut_from_clients(member);
        load.progress.more(100).await;
        networks.heal(member);
    }
    load.finish().await;
}

async fn pause_each() {
    let members = etcd::Etcd::start_three(etcd::Etcd::NEWEST);
    let store = over(members.iter().map(etcd::Etcd::url)).await;
    let load = Load::start(&store).await;
    for member in &members {
        load.progress.more(100).await;
        member.pause();
        load.progress.more(100).await;
        member.resume();
    }
    load.finish().await;
}
