//! Scenarios of watches. They count received events: a server saves work for events that are written and never read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Bench, each_us};
use crate::objects::{Objects, SENT};
use crate::options::Scenario;
use crate::report::Figures;
use crate::target::{Call, Connection};

/// How long events may take to arrive after the last update.
const PATIENCE: Duration = Duration::from_secs(60);

/// Updates seen by many watchers.
pub(super) async fn fan_out(bench: &Bench) -> Result<Figures> {
    let run = &bench.run;
    let clock = Instant::now();
    // The cost of the updates themselves is not part of the watchers' cost.
    let before = bench.cpu()?;
    update(bench, clock, |n| bench.objects.name(n)).await?;
    let alone = bench.cpu()?;
    let arrivals = Arc::new(Arrivals::default());
    let query = format!("watch=1&resourceVersion={}", revision(bench).await?);
    let mut watchers = JoinSet::new();
    let paths = (0..run.watchers).map(|_| format!("{}?{query}", bench.objects.base()));
    open(bench, paths, clock, &arrivals, &mut watchers).await?;

    let watching = bench.cpu()?;
    let started = Instant::now();
    update(bench, clock, |n| bench.objects.name(n)).await?;
    let expected = (run.watchers * run.updates) as u64;
    arrivals.wait_for(expected).await?;
    let took = started.elapsed();
    let after = bench.cpu()?;
    let resident = bench.resident_mib()?;
    watchers.abort_all();
    let mut latencies = Vec::new();
    while let Some(watcher) = watchers.join_next().await {
        // Watchers that were stopped have already reported what they received.
        if let Ok(Err(error)) = watcher {
            return Err(error);
        }
    }
    latencies.append(&mut arrivals.latencies());
    let mut figures = Figures::new(Scenario::Watch.name(), "ev", took, latencies);
    figures.count = expected;
    let whole = each_us(watching, after, expected);
    let updates = each_us(before, alone, expected);
    figures.cpu_us = whole
        .zip(updates)
        .map(|(whole, updates)| (whole - updates).max(0.0));
    figures.resident_mib = resident;
    figures.note = format!("{} watchers, {} updates", run.watchers, run.updates);
    Ok(figures)
}

/// Updates of one object beside watchers of other names.
pub(super) async fn selective(bench: &Bench) -> Result<Figures> {
    let run = &bench.run;
    let clock = Instant::now();
    let one = bench.objects.name(0);
    let before = bench.cpu()?;
    let alone_each = update(bench, clock, |_| one.clone()).await?;
    let alone = each_us(before, bench.cpu()?, run.updates as u64);
    let memory = bench.resident_mib()?;
    let arrivals = Arc::new(Arrivals::default());
    let mut watchers = JoinSet::new();
    let base = bench.objects.base();
    let revision = revision(bench).await?;
    let paths = (0..run.selective_watchers).map(|n| {
        format!("{base}?watch=1&resourceVersion={revision}&fieldSelector=metadata.name%3Dother-{n}")
    });
    open(bench, paths, clock, &arrivals, &mut watchers).await?;
    let memory_watched = bench.resident_mib()?;

    let before = bench.cpu()?;
    let started = Instant::now();
    let each = update(bench, clock, |_| one.clone()).await?;
    let took = started.elapsed();
    let after = bench.cpu()?;
    if arrivals.count.load(Ordering::Relaxed) > 0 {
        bail!("a watcher was sent an event of another name");
    }
    let mut figures = Figures::new(Scenario::SelectiveWatch.name(), "upd", took, each);
    figures.cpu_us = each_us(before, after, figures.count);
    figures.resident_mib = memory_watched;
    let alone_p99 = Figures::new(String::new(), "", took, alone_each).p99_ms;
    figures.note = match (alone, memory.zip(memory_watched)) {
        (Some(alone), Some((before, after))) => {
            let each = (after - before) * 1024.0 / run.selective_watchers as f64;
            format!(
                "{} watchers of other names, {each:.1} KiB each; without them {alone:.1} us, p99 {alone_p99:.2} ms",
                run.selective_watchers
            )
        }
        _ => format!("{} watchers of other names", run.selective_watchers),
    };
    watchers.abort_all();
    Ok(figures)
}

/// Sends the updates one after the other at the given rate; returns their latencies.
async fn update(
    bench: &Bench,
    clock: Instant,
    name: impl Fn(usize) -> String,
) -> Result<Vec<Duration>> {
    let mut connection = bench.target.connect().await?;
    let mut ticks = match bench.run.rate {
        0 => None,
        rate => Some(tokio::time::interval(Duration::from_secs(1) / rate)),
    };
    let mut each = Vec::new();
    for number in 0..bench.run.updates {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        let path = bench.objects.path(&name(number));
        let began = Instant::now();
        let patch = Objects::patch(clock.elapsed().as_nanos());
        connection.call(Call::merge_patch(&path, patch)).await?;
        each.push(began.elapsed());
    }
    Ok(each)
}

/// The list's resourceVersion, from which a watch begins.
async fn revision(bench: &Bench) -> Result<String> {
    let path = format!("{}?limit=1", bench.objects.base());
    let page = bench.target.connect().await?.call(Call::get(&path)).await?;
    let page: Value = serde_json::from_slice(&page)?;
    let revision = page["metadata"]["resourceVersion"].as_str();
    Ok(revision.unwrap_or("0").to_owned())
}

/// Opens watches, several per connection, and returns when all have a response.
async fn open(
    bench: &Bench,
    paths: impl Iterator<Item = String>,
    clock: Instant,
    arrivals: &Arc<Arrivals>,
    watchers: &mut JoinSet<Result<()>>,
) -> Result<()> {
    let per_connection = bench.run.watchers_per_connection.max(1);
    let mut shared: Option<Connection> = None;
    for (number, path) in paths.enumerate() {
        let fresh = number % per_connection == 0;
        let mut connection = match shared.as_ref().filter(|_| !fresh).map(Connection::share) {
            Some(Ok(share)) => share,
            // HTTP/1.1 needs one connection per watch.
            _ => bench.target.connect().await?,
        };
        let answer = connection.send(Call::get(&path)).await?;
        if !answer.status().is_success() {
            bail!("GET {path} was answered with {}", answer.status());
        }
        let body = answer.into_body();
        let arrivals = Arc::clone(arrivals);
        watchers.spawn(read(body, clock, arrivals));
        if fresh {
            shared = Some(connection);
        }
    }
    Ok(())
}

async fn read(mut body: Incoming, clock: Instant, arrivals: Arc<Arrivals>) -> Result<()> {
    let mut line = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let now = clock.elapsed();
        let mut rest: &[u8] = data;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            arrivals.add(sent(&line).map(|sent| now.saturating_sub(sent)));
            line.clear();
        }
        line.extend_from_slice(rest);
    }
    Ok(())
}

/// When the update of an event was sent, by its annotation.
fn sent(line: &[u8]) -> Option<Duration> {
    let mark = format!("\"{SENT}\":\"");
    let at = line
        .windows(mark.len())
        .position(|window| window == mark.as_bytes())?;
    let digits = &line[at + mark.len()..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    let nanos = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Events that any watcher has received.
#[derive(Default)]
struct Arrivals {
    count: AtomicU64,
    latencies: std::sync::Mutex<Vec<Duration>>,
    changed: Notify,
}

impl Arrivals {
    fn add(&self, latency: Option<Duration>) {
        if let Some(latency) = latency {
            self.latencies
                .lock()
                .unwrap_or_else(|poison| poison.into_inner())
                .push(latency);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    fn latencies(&self) -> Vec<Duration> {
        let mut latencies = self
            .latencies
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        std::mem::take(&mut *latencies)
    }

    async fn wait_for(&self, expected: u64) -> Result<()> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let count = self.count.load(Ordering::Relaxed);
            if count >= expected {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, self.changed.notified())
                .await
                .is_err()
            {
                bail!("{count} events of {expected} arrived");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_when_its_update_was_sent() {
        let line =
            br#"{"type":"MODIFIED","object":{"metadata":{"annotations":{"load/sent":"1500"}}}}"#;
        assert_eq!(sent(line), Some(Duration::from_nanos(1500)));
        assert_eq!(sent(b"{}"), None);
    }
}
