//! CPU time and memory of a process, from /proc.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};

/// Clock ticks a second in /proc; Linux has reported 100 to user space on every architecture for decades.
const TICKS: u64 = 100;

/// CPU time (user and system) of these processes, including threads that have ended.
pub(crate) fn cpu(pids: &[u32]) -> Result<Duration> {
    pids.iter().map(|pid| cpu_of(*pid)).sum()
}

/// Resident memory of these processes, in bytes.
pub(crate) fn resident(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|pid| resident_of(*pid)).sum()
}

fn cpu_of(pid: u32) -> Result<Duration> {
    let text = read(pid, "stat")?;
    // The second field is the name in parentheses, which may contain any character.
    let (_, fields) = text.rsplit_once(')').ok_or_else(|| anyhow!("odd stat"))?;
    let field = |n: usize| -> Result<u64> {
        let text = fields.split_whitespace().nth(n).unwrap_or_default();
        text.parse().with_context(|| format!("stat of {pid}"))
    };
    let ticks = field(11)? + field(12)?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

fn resident_of(pid: u32) -> Result<u64> {
    let text = read(pid, "status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: u64 = kib.ok_or_else(|| anyhow!("no VmRSS of {pid}"))?.parse()?;
    Ok(kib * 1024)
}

fn read(pid: u32, file: &str) -> Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}"))
        .with_context(|| format!("no process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_uses_time_and_every_process_uses_memory() {
        let own = [std::process::id()];
        let before = cpu(&own).expect("this process exists");
        let mut sum = 0_u64;
        // Ten ticks, on a machine of any speed.
        while cpu(&own).expect("it still does") < before + Duration::from_millis(100) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert!(resident(&own).expect("it has memory") > 100_000);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(cpu(&[u32::MAX]).is_err());
    }
}
