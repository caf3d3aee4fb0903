//! Clients during outages of the store and restarts of their server: a load of writers and watchers, compared with the
//! history of the store.
//!
//! An outage of the store lasts `APILOOM_OUTAGE_SECONDS`, 2 by default and longer if its detection takes longer; the
//! guarantee is 10: `APILOOM_OUTAGE_SECONDS=10 cargo test -p apiloom-tests --features etcd --test outages`.

#![allow(clippy::unwrap_used, reason = "tests")]

mod load;

use apiloom_tests::{Backend, Cluster};
use load::Load;

/// How a server ends.
#[derive(Clone, Copy)]
enum End {
    Asked,
    Killed,
}

/// Restarts a server repeatedly while it is written to and watched.
async fn restarts(on: Backend, end: End) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let load = Load::start(&cluster, true).await;
    for _ in 0..3 {
        load.progress.more(100).await;
        match end {
            End::Asked => cluster.stop(),
            End::Killed => cluster.kill(),
        }
        cluster.start_again();
        load.moved(cluster.client());
    }
    load.progress.more(100).await;
    load.finish(cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_server_that_is_stopped_under_load_loses_nothing() {
    restarts(Backend::Embedded, End::Asked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_server_that_is_killed_under_load_loses_nothing() {
    restarts(Backend::Embedded, End::Killed).await;
}

mod etcd {
    use std::time::Duration;

    use apiloom_tests::etcd::Etcd;
    use apiloom_tests::wardle::FLUNDERS;
    use apiloom_tests::{Client, is_cached};
    use serde_json::json;
    use tokio::time::{Instant, sleep_until};

    use super::load::check_refusal;
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_over_etcd_that_is_stopped_under_load_loses_nothing() {
        restarts(Backend::Etcd, End::Asked).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_over_etcd_that_is_killed_under_load_loses_nothing() {
        restarts(Backend::Etcd, End::Killed).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn watchers_outlive_an_etcd_that_does_not_answer() {
        outage(|etcd| etcd.pause(), |etcd| etcd.resume()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn watchers_outlive_an_etcd_that_is_killed_and_started_again() {
        outage(Etcd::kill, Etcd::restart).await;
    }

    async fn outage(begin: fn(&mut Etcd), end: fn(&mut Etcd)) {
        let cluster = Cluster::start_alone(Backend::Etcd, &[]);
        let client = cluster.client();
        let load = Load::start(&cluster, false).await;
        load.progress.more(200).await;
        let ends = Instant::now() + outage_seconds();
        cluster.with_etcd(begin);
        let failed = load.progress.failed();
        check_while_away(&client).await;
        // Longer than its detection takes.
        load.progress.failures(failed).await;
        sleep_until(ends).await;
        cluster.with_etcd(end);
        load.progress.more(200).await;
        load.finish(cluster).await;
    }

    fn outage_seconds() -> Duration {
        let seconds = std::env::var("APILOOM_OUTAGE_SECONDS");
        Duration::from_secs(seconds.map_or(2, |seconds| seconds.parse().unwrap()))
    }

    /// Requests that need the store fail in time with clear errors; others still work.
    async fn check_while_away(client: &Client) {
        let object = json!({"metadata": {"name": "while-away"}});
        let item = format!("{FLUNDERS}/hot");
        let (create, get, list, ready) = tokio::join!(
            client.post(FLUNDERS, &object),
            client.get(&item),
            client.get(FLUNDERS),
            client.get("/readyz"),
        );
        check_refusal(&create);
        let message = create.json()["message"].as_str().unwrap().to_owned();
        let expected = "The create operation against flunders.wardle.example.com could not be completed at this time, \
            please try again.";
        assert_eq!(message, expected);
        assert_eq!(create.header("retry-after"), "2");
        check_refusal(&get);
        check_refusal(&list);
        assert_eq!(ready.code, 500, "{}", ready.text());
        if is_cached() {
            let any = client.get(&format!("{FLUNDERS}?resourceVersion=0")).await;
            assert_eq!(any.code, 200, "{}", any.text());
        }
    }
}
