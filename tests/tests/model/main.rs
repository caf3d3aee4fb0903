//! Clients that list and watch must reconstruct exactly what was written. Random clients (name, namespace,
//! index, labels, fields, both versions, all forms, new and resumed) of random writers, over every store, with and
//! without the watch cache, are compared with a simple model, which is built from the responses to the writers.
//!
//! `APILOOM_MODEL_SEEDS=100` runs that many seeds instead of a few, `APILOOM_MODEL_SEED=7` only that one. A seed
//! decides the requests of all clients; their interleaving is up to the machine.

#![allow(clippy::unwrap_used, reason = "tests")]

mod check;
mod client;
mod interest;
mod list;
mod model;
mod objects;
mod opens;
mod outside;
mod plan;
mod random;
mod run;
mod site;
mod writer;

use std::time::Duration;

use apiloom_tests::Backend;

use run::run;
use site::{Between, Setup};

/// Timeout for expected events.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Default number of seeds of a test.
const SEEDS: u64 = 2;

async fn check(setup: Setup) {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(
            value
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("{name} is no number")),
        )
    };
    let seeds = match number("APILOOM_MODEL_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("APILOOM_MODEL_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(difference) = run(setup, seed).await {
            panic!("{}, APILOOM_MODEL_SEED={seed}: {difference}", setup.name);
        }
    }
}

macro_rules! over {
    ($($name:ident: $backend:ident, $flags:expr, $is_double:expr, $between:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            check(Setup {
                name: stringify!($name),
                backend: Backend::$backend,
                flags: &$flags,
                is_double: $is_double,
                between: Between::$between,
            })
            .await;
        })*
    };
}

/// The model knows every write; a leader election writes its own.
const NO_CONTROLLERS: &str = "--controllers=";

over! {
    memory: Embedded, ["--storage-backend=memory", NO_CONTROLLERS], false, Forget;
    memory_uncached: Embedded, ["--storage-backend=memory", "--watch-cache=false", NO_CONTROLLERS], false, Forget;
    embedded: Embedded, [NO_CONTROLLERS], false, Kill;
    embedded_uncached: Embedded, ["--watch-cache=false", NO_CONTROLLERS], false, Stop;
    etcd: Etcd, [NO_CONTROLLERS], false, Stop;
    etcd_uncached: Etcd, ["--watch-cache=false", NO_CONTROLLERS], false, Kill;
    two_servers_over_etcd: Etcd, [NO_CONTROLLERS], true, Nothing;
    two_servers_of_which_one_is_started_again: Etcd, [NO_CONTROLLERS], true, Kill;
}
