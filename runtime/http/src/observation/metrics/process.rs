//! `process_*` metrics from `/proc`, read at each scrape. Linux only; there are no such metrics on other systems.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

/// Unit of times in `/proc`: 1/100 s on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some((cpu_seconds, start_time)) = times() {
            let help = "Seconds of user and system time.";
            let metric = encoder.encode_descriptor(
                "process_cpu_seconds",
                help,
                None,
                MetricType::Counter,
            )?;
            ConstCounter::new(cpu_seconds).encode(metric)?;
            gauge(
                &mut encoder,
                "process_start_time_seconds",
                "When the process started, since the Unix epoch.",
                start_time,
            )?;
        }
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Bytes of memory in use.",
                status_bytes("VmRSS:"),
            ),
            (
                "process_virtual_memory_bytes",
                "Bytes of address space.",
                status_bytes("VmSize:"),
            ),
            ("process_open_fds", "Open file descriptors.", open_fds()),
            (
                "process_max_fds",
                "Most file descriptors that may be open.",
                max_fds(),
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                gauge(&mut encoder, name, help, value)?;
            }
        }
        Ok(())
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    encoder
        .encode_descriptor(name, help, None, MetricType::Gauge)?
        .encode_gauge(&value)
}

/// CPU time in seconds, and start of the process as a Unix time.
fn times() -> Option<(f64, f64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, with any characters; fields are counted after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some((
        (ticks(14)? + ticks(15)?) / TICKS_PER_SECOND,
        boot + ticks(22)? / TICKS_PER_SECOND,
    ))
}

/// A field of `/proc/self/status` in bytes; the file has KiB.
fn status_bytes(name: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(kib * 1024.0)
}

fn open_fds() -> Option<f64> {
    // Without the descriptor that reads this directory.
    Some(
        fs::read_dir("/proc/self/fd")
            .ok()?
            .count()
            .saturating_sub(1) as f64,
    )
}

fn max_fds() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}
