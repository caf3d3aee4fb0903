//! Measures durable creates of 1.5 KiB in a new embedded store, one at a time and from 64 writers.
//!
//! `cargo run --release -p apiloom-storage --example durable_creates [DIR]` prints creates per second and CPU time per
//! create, that of the writers included. DIR is on the disk to be measured; by default, the one for temporary files.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::{Embedded, EmbeddedConfig, Storage, StorageError};
use bytes::Bytes;

const VALUE_BYTES: usize = 1_536;

fn main() -> Result<(), Box<dyn Error>> {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    for (writers, each) in [(1, 4_000), (64, 500)] {
        let dir = parent.join(format!("apiloom-durable-creates-{}", std::process::id()));
        let measured = runtime.block_on(measure(&dir, writers, each));
        fs::remove_dir_all(&dir)?;
        println!("{}", measured?);
    }
    Ok(())
}

async fn measure(dir: &std::path::Path, writers: u32, each: u32) -> Result<String, Box<dyn Error>> {
    let begin = Instant::now();
    let store = Embedded::open(dir, EmbeddedConfig::default())?;
    let opened = begin.elapsed();
    create(&store, 0, 200).await?;
    let (begin, cpu) = (Instant::now(), cpu_time()?);
    let tasks = (1..=writers).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { create(&store, writer, each).await })
    });
    let mut slowest = Duration::ZERO;
    for task in tasks.collect::<Vec<_>>() {
        slowest = slowest.max(task.await??);
    }
    let (wall, cpu) = (begin.elapsed(), cpu_time()? - cpu);
    store.close().await;
    let creates = f64::from(writers * each);
    Ok(format!(
        "{writers:2} writers: {:6.0} creates/s, {:5.1} us of CPU each, slowest {:.1} ms, opened in {:.1} ms",
        creates / wall.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / creates,
        slowest.as_secs_f64() * 1e3,
        opened.as_secs_f64() * 1e3,
    ))
}

/// Creates keys; gives the longest time that one of them took.
async fn create(store: &Embedded, writer: u32, each: u32) -> Result<Duration, StorageError> {
    let value = Bytes::from(vec![b'v'; VALUE_BYTES]);
    let mut slowest = Duration::ZERO;
    for index in 0..each {
        // Spread over the tree, as names are.
        let name = u64::from(writer * 1_000_003 + index).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let key =
            format!("/registry/wardle.example.com/flunders/default/{name:016x}-{writer}-{index}");
        let begin = Instant::now();
        store.create(&key, value.clone(), None).await?;
        slowest = slowest.max(begin.elapsed());
    }
    Ok(slowest)
}

/// User and system time of this process. Linux counts them in ticks of 10 ms whatever the machine.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("a name in parentheses")?;
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse().unwrap_or(0))
        .sum();
    Ok(Duration::from_millis(ticks * 10))
}
