//! Memory, CPU time, threads and scheduling delays of a process, from /proc.

use std::time::Duration;

/// Clock ticks a second in /proc; Linux reports 100 to user space on every architecture.
const TICKS: u64 = 100;

/// Bytes of a mebibyte.
pub(crate) const MIB: u64 = 1024 * 1024;

/// Resident memory, in bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS:") * 1024
}

/// Peak resident memory since the last [`reset_peak`], in bytes.
pub(crate) fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM:") * 1024
}

/// Address space, in bytes: also what is only reserved.
pub(crate) fn address_space(pid: u32) -> u64 {
    status(pid, "VmSize:") * 1024
}

/// The most of [`address_space`], in bytes.
pub(crate) fn peak_address_space(pid: u32) -> u64 {
    status(pid, "VmPeak:") * 1024
}

/// Resets [`peak`] to the current memory.
pub(crate) fn reset_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// Whether a process has ended, also if its parent does not know yet.
pub(crate) fn has_ended(pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    matches!(state(&text), Some('Z' | 'X'))
}

/// Whether a thread of a process runs or waits for a core.
pub(crate) fn is_runnable(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // A thread may end meanwhile.
    let mut texts =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    texts.any(|text| state(&text) == Some('R'))
}

/// The state in a file `stat`, which is behind the name.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Number of threads.
pub(crate) fn threads(pid: u32) -> u64 {
    status(pid, "Threads:")
}

/// CPU time used so far, user and system, including threads that have ended.
pub(crate) fn cpu(pid: u32) -> Duration {
    let text = read(pid, "stat");
    // The second field is the name in parentheses, which may contain any character.
    let fields = text.rsplit_once(')').unwrap().1;
    let field = |index: usize| -> u64 {
        let field = fields.split_whitespace().nth(index).unwrap();
        field.parse().unwrap()
    };
    Duration::from_millis((field(11) + field(12)) * 1000 / TICKS)
}

/// Time that the live threads of a process ran, and time that they were runnable but waited for a core.
pub(crate) fn ran_and_waited(pid: u32) -> [Duration; 2] {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut sums = [Duration::ZERO; 2];
    // A thread may end meanwhile. A kernel without these statistics has no such file.
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()
    };
    for text in tasks.filter_map(read) {
        let figures = text
            .split_whitespace()
            .map(|figure| figure.parse().unwrap());
        for (sum, nanoseconds) in sums.iter_mut().zip(figures) {
            *sum += Duration::from_nanos(nanoseconds);
        }
    }
    sums
}

/// CPU time of the machine's cores so far: the total, and the used part.
pub(crate) fn machine() -> [Duration; 2] {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let fields = text.lines().next().unwrap().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user and nice.
    let all: u64 = ticks[..8].iter().sum();
    let idle = ticks[3] + ticks[4];
    [all, all - idle].map(|ticks| Duration::from_millis(ticks * 1000 / TICKS))
}

fn status(pid: u32, name: &str) -> u64 {
    let text = read(pid, "status");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.unwrap_or_else(|| panic!("no {name} of process {pid}, which may have ended"));
    let number = number.split_whitespace().next().unwrap();
    number.parse().unwrap()
}

fn read(pid: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{file}"))
        .unwrap_or_else(|error| panic!("the server has ended ({error})"))
}
