//! Measures what a watch cache over the embedded store takes: the time to fill it, live bytes and resident memory at rest,
//! and both while objects are updated.
//!
//! `cargo run --release -p apiloom-benches --example watch_cache_memory [OBJECTS [UPDATES-A-SECOND [SECONDS]]]`
//!
//! Live bytes are what the program has allocated and not freed; resident memory is more by what the allocator does not
//! give back. Linux only: it reads `/proc`.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::alloc::System;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom::prelude::*;
use apiloom::server::kinds;
use apiloom::storage::{Embedded, EmbeddedConfig, Revision, Storage};
use bytes::Bytes;
use cap::Cap;
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

type Failure = Box<dyn Error + Send + Sync>;

/// What is stored: 1.5 KiB each.
#[apiloom::resource(group = "example.com", version = "v1", cluster, selectable(spec.color))]
pub struct Thing {
    /// Its name, labels and so on.
    pub metadata: ObjectMeta,
    /// What it is.
    pub spec: ThingSpec,
}

/// What a thing is.
#[apiloom::api]
pub struct ThingSpec {
    /// An indexed field.
    pub color: String,
    /// The round of updates that wrote it.
    pub round: i64,
    /// What fills it up.
    pub texts: Vec<String>,
}

/// Writers of the updates; each has keys of its own.
const WRITERS: usize = 32;

fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (objects, rate, seconds) = (number(20_000)?, number(10_000)?, number(20)?);
    let dir = tempfile::tempdir()?;
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
    };
    runtime()?.block_on(fill(dir.path(), objects))?;
    runtime()?.block_on(measure(dir.path(), objects, rate, seconds))
}

fn value(index: usize, round: usize) -> Bytes {
    let text = |letter: &str| letter.repeat(290);
    format!(
        "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{{\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\
        \"generation\":1,\"labels\":{{\"app\":\"a\",\"tier\":\"t{}\"}},\"name\":\"{}\",\
        \"uid\":\"5f0a1c52-7f1e-4a58-9d3c-{index:012}\"}},\"spec\":{{\"color\":\"c{}\",\"round\":{round},\
        \"texts\":[\"{}\",\"{}\",\"{}\",\"{}\"]}}}}",
        index % 7,
        name(index),
        index % 100,
        text("a"),
        text("b"),
        text("c"),
        text("d"),
    )
    .into()
}

fn name(index: usize) -> String {
    format!("thing-{index:06}")
}

fn key(index: usize) -> String {
    format!("/registry/example.com/things/{}", name(index))
}

async fn fill(dir: &Path, objects: usize) -> Result<(), Failure> {
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for index in (writer..objects).step_by(WRITERS) {
                store.create(&key(index), value(index, 0), None).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    store.close().await;
    Ok(())
}

async fn measure(dir: &Path, objects: usize, rate: usize, seconds: usize) -> Result<(), Failure> {
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    report("store open");
    let wire = (objects * value(0, 0).len()) as f64;
    println!("wire bytes               {:>8.1} MiB", wire / MIB);
    let mut builder = kinds::registry(Arc::clone(&store) as _);
    builder.kind::<Thing>();
    let registry = builder.build().map_err(|problems| problems.join("\n"))?;
    let begin = Instant::now();
    registry.start().await?;
    println!("filled in {:?}", begin.elapsed());
    report("at rest");
    let mut writers = JoinSet::new();
    let begin = Instant::now();
    let end = begin + Duration::from_secs(seconds as u64);
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(update(store, writer, objects, rate, end));
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(2));
    let mut done = 0;
    while !writers.is_empty() {
        tokio::select! {
            _ = ticks.tick() => report(&format!("updating for {:.0} s", begin.elapsed().as_secs_f64())),
            Some(written) = writers.join_next() => done += written??,
        }
    }
    println!(
        "{:.0} updates/s",
        done as f64 / begin.elapsed().as_secs_f64()
    );
    for report in registry.report() {
        if let Some(cache) = report.cache {
            let size = cache.size;
            println!(
                "{}: {} objects, {:.1} MiB of {:.1} MiB on the wire, {} changes that keep {:.1} MiB",
                report.resource,
                size.objects,
                size.object_bytes as f64 / MIB,
                size.wire_bytes as f64 / MIB,
                size.changes,
                size.history_bytes as f64 / MIB
            );
        }
    }
    for _ in 0..5 {
        report("after the updates");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    registry.stop().await;
    drop(registry);
    report("without the cache");
    store.close().await;
    Ok(())
}

/// Updates keys in turn until the time is over; gives how many.
async fn update(
    store: Arc<Embedded>,
    writer: usize,
    objects: usize,
    rate: usize,
    end: Instant,
) -> Result<usize, Failure> {
    let pause = Duration::from_secs_f64(WRITERS as f64 / rate.max(1) as f64);
    let mut revisions: Vec<(usize, Option<Revision>)> = (writer..objects)
        .step_by(WRITERS)
        .map(|index| (index, None))
        .collect();
    let mut next = tokio::time::Instant::now();
    let mut written = 0;
    for round in 1.. {
        for (index, revision) in &mut revisions {
            if Instant::now() >= end {
                return Ok(written);
            }
            let key = key(*index);
            let expected = match revision {
                Some(revision) => *revision,
                None => store.get(&key).await?.0.ok_or("it is there")?.revision,
            };
            let value = value(*index, round);
            *revision = Some(store.update_if(&key, expected, value, None).await?);
            written += 1;
            next += pause;
            tokio::time::sleep_until(next).await;
        }
    }
    Ok(written)
}

const MIB: f64 = 1024.0 * 1024.0;

fn report(what: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .unwrap_or_default();
    println!(
        "{what:<24} {:>8.1} MiB live {:>8.1} MiB resident (anonymous)",
        ALLOCATOR.allocated() as f64 / MIB,
        resident / 1024.0
    );
}
