//! Stored entries that cannot be read: a flipped bit in an embedded store, and in etcd a key of another tool that is
//! not UTF-8. With and without the watch cache, lists, `/readyz` and watches fail, and no watch is answered with 200
//! and then sends nothing.

use std::path::Path;
use std::time::Duration;
#[cfg(feature = "etcd")]
use std::time::Instant;

use apiloom_tests::is_cached;

use crate::*;

/// How long a server may take to detect damage, or its repair.
const PATIENCE: Duration = Duration::from_secs(30);

/// Occurs only in the damaged object.
const MARK: &str = "the-object-whose-bit-flips";

/// The flags of the tested servers: with the watch cache, unless the whole test run has none, and without.
fn modes() -> Vec<(bool, &'static [&'static str])> {
    if is_cached() {
        vec![(true, &[]), (false, &["--watch-cache=false"])]
    } else {
        vec![(false, &[])]
    }
}

/// Repeats a request until its response is as wanted.
async fn until(client: &Client, path: &str, wanted: impl Fn(u16) -> bool) -> Answer {
    let ask = async || client.get(path).await;
    until_answered(path, PATIENCE, ask, |answer| wanted(answer.code)).await
}

/// Waits until the server has logged a text, which another thread reads.
#[cfg(feature = "etcd")]
async fn until_logged(cluster: &Cluster, text: &str) {
    let started = Instant::now();
    loop {
        let log = cluster.server().log();
        if log.contains(text) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{text} is not in {log}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asserts that a request fails, or that its watch ends with an ERROR event that names the damage. A silent watch makes
/// the client panic.
async fn check_fails(client: &Client, path: &str, named: &str) {
    // A cache that has not detected the damage yet asks clients to retry.
    let answer = until(client, path, |code| code != 429).await;
    let text = answer.text();
    let status = match answer.code {
        200 => {
            let last = text.lines().last().unwrap_or_default();
            let event: Value = serde_json::from_str(last).unwrap_or_default();
            assert_eq!(event["type"], "ERROR", "{path}: {text}");
            event["object"].clone()
        }
        _ => answer.json(),
    };
    assert_eq!(status["code"], 500, "{path}: {text}");
    assert_eq!(status["reason"], "InternalError", "{path}: {text}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains(named), "{path}: {message}");
}

fn lists() -> [String; 5] {
    [
        FLUNDERS.to_owned(),
        ALL_FLUNDERS.to_owned(),
        format!("{FLUNDERS}?resourceVersion=0"),
        format!("{FLUNDERS}?labelSelector=none"),
        format!("{FLUNDERS_BETA}?limit=500"),
    ]
}

/// Watches that begin with the present objects.
fn watches_with_objects(from: u64) -> [String; 6] {
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    [
        format!("{FLUNDERS}?watch=1"),
        format!("{FLUNDERS}?watch=1&resourceVersion=0"),
        format!("{FLUNDERS}?watch=1&{initial}"),
        format!("{FLUNDERS}?watch=1&{initial}&allowWatchBookmarks=true&resourceVersion={from}"),
        format!("{ALL_FLUNDERS}?watch=1&labelSelector=none"),
        format!("{FLUNDERS_BETA}?watch=1&resourceVersion=0"),
    ]
}

/// Watches that begin with the changes after a revision.
fn watches_after(from: u64) -> [String; 5] {
    [
        format!("{FLUNDERS}?watch=1&resourceVersion={from}"),
        format!("{ALL_FLUNDERS}?watch=1&resourceVersion={from}"),
        format!("{FLUNDERS_BETA}?watch=1&resourceVersion={from}"),
        format!("{FLUNDERS}?watch=1&resourceVersion={from}&allowWatchBookmarks=true"),
        format!("{FLUNDERS}?watch=1&resourceVersion={from}&labelSelector=!none"),
    ]
}

/// Asserts that open watches deliver the next change.
async fn check_alive(client: &Client, watches: &mut [Watch], label: &str) {
    let patch = json!({"metadata": {"labels": {"round": label}}});
    let answer = client.merge(&format!("{FLUNDERS}/a"), &patch).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    for watch in watches {
        loop {
            let event = watch.event().await;
            assert_ne!(event["type"], "ERROR", "{event}");
            if event["object"]["metadata"]["labels"]["round"] == label {
                break;
            }
        }
    }
}

async fn open(client: &Client, paths: impl IntoIterator<Item = String>) -> Vec<Watch> {
    let mut watches = Vec::new();
    for path in paths {
        watches.push(client.watch(&path).await);
    }
    watches
}

/// Flips a bit of every occurrence of the mark in the files of the store.
fn flip(store: &Path) {
    let mut flipped = 0;
    for file in std::fs::read_dir(store).unwrap() {
        let file = file.unwrap().path();
        if !file.is_file() {
            continue;
        }
        let mut bytes = std::fs::read(&file).unwrap();
        // The first letter is not changed, so that the mark can be found and flipped back.
        let places: Vec<usize> = bytes
            .windows(MARK.len())
            .enumerate()
            .filter(|(_, found)| found[0] == b't' && found[2..] == MARK.as_bytes()[2..])
            .map(|(place, _)| place + 1)
            .collect();
        flipped += places.len();
        places.iter().for_each(|place| bytes[*place] ^= 1);
        if !places.is_empty() {
            std::fs::write(&file, bytes).unwrap();
        }
    }
    assert!(flipped > 0, "the object is not found in {store:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_fails_lists_and_watches() {
    for (cached, flags) in modes() {
        let mut cluster = Cluster::start_alone(Backend::Embedded, flags);
        let client = cluster.client();
        let before = revision(&created(&client, FLUNDERS, &flunder("a")).await);
        let mut damaged = flunder("b");
        damaged["metadata"]["annotations"] = json!({"mark": MARK});
        created(&client, FLUNDERS, &damaged).await;
        let after = revision(&created(&client, FLUNDERS, &flunder("c")).await);
        let store = cluster.server().data_dir().join("store");
        cluster.stop();
        flip(&store);
        cluster.start_again();
        let client = cluster.client();
        let named = "/registry/wardle.example.com/flunders/default/b";
        if cached {
            // Without the cache it is reported after the whole store has been read.
            until(&client, "/readyz", |code| code == 500).await;
        }
        for path in lists() {
            check_fails(&client, &path, named).await;
        }
        for path in watches_with_objects(before) {
            check_fails(&client, &path, named).await;
        }
        // Reading over the damaged change.
        for path in watches_after(before) {
            check_fails(&client, &path, named).await;
        }
        if cached {
            for path in watches_after(after) {
                check_fails(&client, &path, named).await;
            }
        } else {
            // The store continues: later changes can be read.

            let mut watches = open(&client, watches_after(after)).await;
            check_alive(&client, &mut watches, "damaged").await;
        }
        assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 200);
        assert_eq!(client.get(FISCHERS).await.code, 200);
        cluster.stop();
        flip(&store);
        cluster.start_again();
        let client = cluster.client();
        until(&client, "/readyz", |code| code == 200).await;
        let list = client.list(FLUNDERS).await;
        assert_eq!(names(&list), ["a", "b", "c"]);
        let mut watches = open(&client, watches_after(before)).await;
        check_alive(&client, &mut watches, "well").await;
    }
}

#[cfg(feature = "etcd")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_no_text_fails_lists_and_watches() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let key = STANDARD.encode(b"/registry/wardle.example.com/flunders/default/b\xff");
    for (cached, flags) in modes() {
        let mut cluster = Cluster::start_alone(Backend::Etcd, flags);
        let client = cluster.client();
        let start = revision(&created(&client, FLUNDERS, &flunder("a")).await);
        let paths = || {
            watches_with_objects(start)
                .into_iter()
                .chain(watches_after(start))
        };
        let mut watches = open(&client, paths().filter(|path| !path.contains("=none"))).await;
        let put = json!({"key": key, "value": STANDARD.encode("{}")});
        cluster.with_etcd(|etcd| drop(etcd.gateway("/v3/kv/put", &put)));
        // No object has such a name: open watches skip it, and so does a filled cache.
        check_alive(&client, &mut watches, "put").await;
        until_logged(&cluster, "is not UTF-8").await;
        if cached {
            assert_eq!(names(&client.get(FLUNDERS).await.json()), ["a"]);
            let mut watches = open(&client, watches_after(start)).await;
            check_alive(&client, &mut watches, "later").await;
        }
        let start = revision(&client.get(&format!("{FLUNDERS}/a")).await.json());

        cluster.stop();
        cluster.start_again();
        let client = cluster.client();
        let named = "is not UTF-8";
        for path in lists().into_iter().chain(watches_with_objects(start)) {
            check_fails(&client, &path, named).await;
        }
        if cached {
            until(&client, "/readyz", |code| code == 500).await;
            for path in watches_after(start) {
                check_fails(&client, &path, named).await;
            }
        } else {
            let mut watches = open(&client, watches_after(start)).await;
            check_alive(&client, &mut watches, "damaged").await;
        }
        assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 200);
        assert_eq!(client.get(FISCHERS).await.code, 200);

        // After its removal the same server works again.
        cluster.with_etcd(|etcd| drop(etcd.gateway("/v3/kv/deleterange", &json!({"key": key}))));
        let list = until(&client, FLUNDERS, |code| code == 200).await.json();
        assert_eq!(names(&list), ["a"]);
        until(&client, "/readyz", |code| code == 200).await;
        let mut watches = open(&client, watches_after(revision(&list))).await;
        check_alive(&client, &mut watches, "well").await;
    }
}
