//! What servers of tests cost: a start, a create, and a thousand tests with a server each.
//!
//! `cargo run --release -p apiloom-benches --example test_server_cost`

#![allow(clippy::print_stdout, reason = "an example that measures")]

mod cpu;

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apiloom_client::WatchEvent;
use apiloom_kinds::core::v1::ConfigMap;
use apiloom_meta::ObjectMeta;
use apiloom_testing::{TestServer, run};
use futures_util::StreamExt as _;
use rustix::time::ClockId;

const STARTS: u32 = 500;
const CREATES: u32 = 20_000;
const TESTS: usize = 1_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The CPU time of this process.
fn cpu_time() -> Duration {
    cpu::time(ClockId::ProcessCPUTime)
}

fn config_map(name: String) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            ..ObjectMeta::default()
        },
        data: [("key".to_owned(), "value".to_owned())].into(),
        ..ConfigMap::default()
    }
}

async fn start() -> Outcome<TestServer> {
    Ok(TestServer::builder().built_in().build().await?)
}

async fn starts() -> Outcome<()> {
    let first = Instant::now();
    drop(start().await?);
    println!("first start: {:?}", first.elapsed());
    let (begun, cpu) = (Instant::now(), cpu_time());
    for _ in 0..STARTS {
        start().await?.stop().await;
    }
    println!(
        "start and stop: {:?}, CPU {:?}",
        begun.elapsed() / STARTS,
        (cpu_time() - cpu) / STARTS
    );
    Ok(())
}

async fn creates() -> Outcome<()> {
    let server = start().await?;
    let maps = server.client().namespaced::<ConfigMap>("default");
    maps.create(&config_map("first".to_owned())).await?;
    let (begun, cpu) = (Instant::now(), cpu_time());
    for number in 0..CREATES {
        maps.create(&config_map(format!("a-{number}"))).await?;
    }
    println!(
        "create: {:?}, CPU {:?}",
        begun.elapsed() / CREATES,
        (cpu_time() - cpu) / CREATES
    );
    Ok(())
}

/// What a small test does: a watch, and each verb once.
async fn test() -> Outcome<()> {
    let server = start().await?;
    let maps = server.client().namespaced::<ConfigMap>("default");
    let mut events = maps.watch().await?;
    let mut map = maps.create(&config_map("a".to_owned())).await?;
    map.data.insert("other".to_owned(), "value".to_owned());
    maps.update(&map).await?;
    maps.delete("a").await?;
    while !matches!(
        events.next().await.ok_or("the watch ended")??,
        WatchEvent::Deleted(_)
    ) {}
    assert_eq!(maps.list().await?.items.len(), 0);
    Ok(())
}

/// Runs the tests with a runtime each, as many at a time as threads.
fn tests(threads: usize) -> Outcome<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Outcome<()> {
        while next.fetch_add(1, Ordering::SeqCst) < TESTS {
            run(test())?;
        }
        Ok(())
    };
    let (begun, cpu) = (Instant::now(), cpu_time());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| "a test panicked")??;
        }
        Outcome::Ok(())
    })?;
    println!(
        "{TESTS} tests by {threads} threads: {:?}, CPU {:?}",
        begun.elapsed(),
        cpu_time() - cpu
    );
    Ok(())
}

fn main() -> Outcome<()> {
    run(starts())?;
    run(creates())?;
    tests(2)
}
