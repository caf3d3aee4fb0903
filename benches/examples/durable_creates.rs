//! Benchmark of the embedded store on a directory's disk, beside a plain log that appends and syncs.
//!
//! `cargo run --release -p apiloom-benches --example durable_creates [DIR]`
//!
//! Medians of three rounds: durable creates and updates of 1.5 KiB by 1 and by 64 writers, with the CPU time of the whole
//! process and of the store's own threads; then size, memory and the time to open with 100,000 objects, after a clean stop
//! and after SIGKILL, each opened by a new process. Linux only: it reads `/proc`.
//!
//! `cargo run --release -p apiloom-benches --features etcd --example durable_creates -- --etcd URL PID` measures the same
//! writes to an etcd; the CPU time is this process' and then etcd's.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use apiloom_storage::{Embedded, EmbeddedConfig, Revision, Storage, StorageError};
use bytes::Bytes;
use tokio::sync::oneshot;

type Failure = Box<dyn Error + Send + Sync>;

const VALUE_BYTES: usize = 1_536;
const OBJECTS: u32 = 100_000;
/// Number of writers, and of writes per writer.
const LOADS: [(u32, u32); 2] = [(1, 3_000), (64, 600)];

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().map(PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match (first.as_deref().and_then(Path::to_str), args.next()) {
        (Some("--open"), Some(dir)) => open(dir.as_ref()),
        (Some("--fill"), Some(dir)) => runtime.block_on(fill(dir.as_ref())),
        #[cfg(feature = "etcd")]
        (Some("--etcd"), Some(url)) => {
            let pid = args.next().ok_or("--etcd URL PID")?;
            runtime.block_on(measure_etcd(&url.to_string_lossy(), &pid.to_string_lossy()))
        }
        _ => measure(&runtime, &first.unwrap_or_else(std::env::temp_dir)),
    }
}

fn measure(runtime: &tokio::runtime::Runtime, parent: &Path) -> Result<(), Failure> {
    let dir = parent.join(format!("apiloom-durable-creates-{}", std::process::id()));
    println!(
        "what                 writers    writes/s   CPU us each   of it in the store   slowest ms"
    );
    for (writers, each) in LOADS {
        let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..3 {
            // Interleaved, so that other load on the machine affects all alike.
            fs::create_dir_all(&dir)?;
            rounds[0].push(runtime.block_on(measure_log(&dir, writers, each))?);
            fs::remove_dir_all(&dir)?;
            let [creates, updates] = runtime.block_on(measure_store(&dir, writers, each))?;
            rounds[1].push(creates);
            rounds[2].push(updates);
            fs::remove_dir_all(&dir)?;
        }
        let names = ["bare log", "embedded, create", "embedded, update"];
        for (name, rounds) in names.iter().zip(&rounds) {
            print_medians(name, writers, rounds);
        }
    }
    runtime.block_on(measure_compaction(&dir))?;
    fs::remove_dir_all(&dir)?;
    let this = std::env::current_exe()?;
    let run = |mode: &str| {
        let mut command = Command::new(&this);
        command.arg(mode).arg(&dir).stdout(Stdio::piped());
        command
    };
    for (name, kills) in [("a clean stop", false), ("SIGKILL", true)] {
        let mut child = run("--fill")
            .env("UNTIL_KILLED", if kills { "1" } else { "" })
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("a pipe")?).read_line(&mut line)?;
        print!("{line}");
        if kills {
            child.kill()?;
        }
        child.wait()?;
        let mut size = 0;
        for file in fs::read_dir(&dir)? {
            size += file?.metadata()?.len();
        }
        println!("after {name}: {:.1} MB on the disk", size as f64 / 1e6);
        if kills {
            // Only the first open recovers the files left by the kill.
            print!("{}", String::from_utf8(run("--open").output()?.stdout)?);
        }
        for _ in 0..3 {
            print!("{}", String::from_utf8(run("--open").output()?.stdout)?);
        }
        fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

fn print_medians(name: &str, writers: u32, rounds: &[Measured]) {
    let median = |of: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{name:20} {writers:7} {:11.0} {:13.1} {:20.1} {:12.1}",
        median(|measured| measured.per_second),
        median(|measured| measured.cpu_micros),
        median(|measured| measured.store_micros),
        median(|measured| measured.slowest.as_secs_f64() * 1e3),
    );
}

/// The same writes to an etcd, which does its part in a process of its own.
#[cfg(feature = "etcd")]
async fn measure_etcd(url: &str, pid: &str) -> Result<(), Failure> {
    let store: Arc<dyn Storage> =
        apiloom_storage::Etcd::connect(apiloom_storage::EtcdConfig::new([url])).await?;
    // Clock ticks of a hundredth of a second: user and system time, behind the name in parentheses.
    let etcd_micros = || -> Result<f64, Failure> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("a name")?;
        let ticks: Result<Vec<f64>, _> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect();
        Ok(ticks?.iter().sum::<f64>() * 1e4)
    };
    println!(
        "what                 writers    writes/s   CPU us each     of it etcd's own   slowest ms"
    );
    let mut first = 0;
    for (writers, each) in LOADS {
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..3 {
            for (kind, rounds) in rounds.iter_mut().enumerate() {
                let before = etcd_micros()?;
                let mut measured = load(writers, each, |writer| {
                    let (store, writer) = (Arc::clone(&store), first + writer);
                    async move {
                        Ok(match kind {
                            0 => create(&*store, writer, each).await?,
                            _ => update(&*store, writer, each).await?,
                        })
                    }
                })
                .await?;
                measured.store_micros = (etcd_micros()? - before) / f64::from(writers * each);
                measured.cpu_micros += measured.store_micros;
                rounds.push(measured);
            }
            first += writers;
        }
        for (name, rounds) in ["etcd, create", "etcd, update"].iter().zip(&rounds) {
            print_medians(name, writers, rounds);
        }
    }
    store.close().await;
    Ok(())
}

struct Measured {
    per_second: f64,
    cpu_micros: f64,
    store_micros: f64,
    slowest: Duration,
}

/// Runs this many tasks; each returns the longest time that one of its writes took.
async fn load<F>(writers: u32, each: u32, write: impl Fn(u32) -> F) -> Result<Measured, Failure>
where
    F: Future<Output = Result<Duration, Failure>> + Send + 'static,
{
    let (begin, cpu, store) = (Instant::now(), cpu_micros("")?, cpu_micros("apiloom-")?);
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write(writer)))
        .collect();
    let mut slowest = Duration::ZERO;
    for task in tasks {
        slowest = slowest.max(task.await??);
    }
    let (wall, writes) = (begin.elapsed(), f64::from(writers * each));
    Ok(Measured {
        per_second: writes / wall.as_secs_f64(),
        cpu_micros: (cpu_micros("")? - cpu) / writes,
        store_micros: (cpu_micros("apiloom-")? - store) / writes,
        slowest,
    })
}

async fn measure_store(dir: &Path, writers: u32, each: u32) -> Result<[Measured; 2], Failure> {
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    create(&*store, 99, 200).await?;
    let creates = load(writers, each, |writer| {
        let store = Arc::clone(&store);
        async move { Ok(create(&*store, writer, each).await?) }
    })
    .await?;
    let updates = load(writers, each, |writer| {
        let store = Arc::clone(&store);
        async move { Ok(update(&*store, writer, each).await?) }
    })
    .await?;
    store.close().await;
    Ok([creates, updates])
}

/// Creates keys; returns the longest time that one of them took.
async fn create(store: &dyn Storage, writer: u32, each: u32) -> Result<Duration, StorageError> {
    let value = Bytes::from(vec![b'v'; VALUE_BYTES]);
    let mut slowest = Duration::ZERO;
    for index in 0..each {
        let key = key(writer, index);
        let begin = Instant::now();
        store.create(&key, value.clone(), None).await?;
        slowest = slowest.max(begin.elapsed());
    }
    Ok(slowest)
}

async fn update(store: &dyn Storage, writer: u32, each: u32) -> Result<Duration, StorageError> {
    let value = Bytes::from(vec![b'w'; VALUE_BYTES]);
    let mut slowest = Duration::ZERO;
    let key = key(writer, 0);
    let (present, _) = store.get(&key).await?;
    let mut revision = present.map_or(Revision(0), |entry| entry.revision);
    for _ in 0..each {
        let begin = Instant::now();
        revision = store.update_if(&key, revision, value.clone(), None).await?;
        slowest = slowest.max(begin.elapsed());
    }
    Ok(slowest)
}

/// The latency of one writer while the rows of 50,000 compacted changes are removed, beside its usual latency.
async fn measure_compaction(dir: &Path) -> Result<(), Failure> {
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    create(&*store, 0, 1).await?;
    load(64, 800, |writer| {
        let store = Arc::clone(&store);
        async move {
            create(&*store, writer + 1, 1).await?;
            Ok(update(&*store, writer + 1, 799).await?)
        }
    })
    .await?;
    let waits = async || -> Result<String, Failure> {
        let mut waits = Vec::new();
        for _ in 0..2_000 {
            waits.push(update(&*store, 0, 1).await?.as_secs_f64() * 1e3);
        }
        waits.sort_by(f64::total_cmp);
        Ok(format!(
            "median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
            waits[1_000], waits[1_980], waits[1_999]
        ))
    };
    println!("one writer: {}", waits().await?);
    store.compact(store.current_revision().await?).await?;
    println!("one writer beside a compaction: {}", waits().await?);
    store.close().await;
    Ok(())
}

/// A key; keys are spread over the tree, as names are.
fn key(writer: u32, index: u32) -> String {
    let name = u64::from(writer * 1_000_003 + index).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("/registry/wardle.example.com/flunders/default/{name:016x}-{writer}-{index}")
}

/// The lower bound for any store: one thread appends queued writes with a checksum, syncs once and answers.
async fn measure_log(dir: &Path, writers: u32, each: u32) -> Result<Measured, Failure> {
    let (queue, requests) = mpsc::channel::<(String, Bytes, oneshot::Sender<()>)>();
    let mut file = File::create(dir.join("log"))?;
    let thread = std::thread::Builder::new().name("apiloom-log".into());
    let thread = thread.spawn(move || -> std::io::Result<()> {
        let mut buffer = Vec::new();
        while let Ok(first) = requests.recv() {
            let mut replies = Vec::new();
            buffer.clear();
            let mut next = Some(first);
            while let Some((key, value, reply)) = next {
                let mut hasher = crc32fast::Hasher::new();
                hasher.update(key.as_bytes());
                hasher.update(&value);
                buffer.extend(hasher.finalize().to_le_bytes());
                buffer.extend(key.as_bytes());
                buffer.extend(&value);
                replies.push(reply);
                next = requests.try_recv().ok();
            }
            file.write_all(&buffer)?;
            file.sync_data()?;
            for reply in replies {
                // The caller waits for it.
                let _ = reply.send(());
            }
        }
        Ok(())
    })?;
    let measured = load(writers, each, |writer| {
        let queue = queue.clone();
        async move {
            let value = Bytes::from(vec![b'v'; VALUE_BYTES]);
            let mut slowest = Duration::ZERO;
            for index in 0..each {
                let (reply, answer) = oneshot::channel();
                let begin = Instant::now();
                queue.send((key(writer, index), value.clone(), reply))?;
                answer.await?;
                slowest = slowest.max(begin.elapsed());
            }
            Ok(slowest)
        }
    })
    .await?;
    drop(queue);
    thread.join().map_err(|_| "the log panicked")??;
    Ok(measured)
}

/// Fills a store, prints its memory use, and closes it or continues to write until it is killed.
async fn fill(dir: &Path) -> Result<(), Failure> {
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    let each = OBJECTS / 64 + 1;
    let writing = |writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { create(&*store, writer, each).await })
    };
    for task in (0..64).map(writing).collect::<Vec<_>>() {
        task.await??;
    }
    println!(
        "filled with {OBJECTS} objects: {:.1} MB resident",
        resident()?
    );
    if !std::env::var("UNTIL_KILLED")?.is_empty() {
        for index in 0.. {
            update(&*store, index % 64, 16).await?;
        }
    }
    store.close().await;
    Ok(())
}

/// Opens a store and reads from it once.
fn open(dir: &Path) -> Result<(), Failure> {
    let begin = Instant::now();
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    let opened = begin.elapsed();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let count = runtime.block_on(store.count("/registry/"))?;
    println!(
        "opened with {count} objects in {:.1} ms: {:.1} MB resident",
        opened.as_secs_f64() * 1e3,
        resident()?
    );
    runtime.block_on(store.close());
    Ok(())
}

/// CPU time of the threads of this process whose names begin with `name`.
fn cpu_micros(name: &str) -> Result<f64, Failure> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.starts_with(name) {
            let stat = fs::read_to_string(task.join("schedstat"))?;
            let on_cpu = stat.split_whitespace().next().ok_or("a number")?;
            nanos += on_cpu.parse::<u64>()?;
        }
    }
    Ok(nanos as f64 / 1e3)
}

fn resident() -> Result<f64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("a line")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}
