//! The memory that this process may have. Bounds that no flag sets are shares of it, as others follow from the number of cores.
//!
//! A bound of its own size each would be too much for a small container, though each alone is small.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Larger limits of control groups mean that there is none: version 1 has no word for it.
const NO_LIMIT: u64 = 1 << 62;

/// The smallest of the limits of this process, in bytes; `None` if none is known.
static LIMIT: LazyLock<Option<u64>> = LazyLock::new(|| {
    let limits = [address_space(), of_files(Path::new("/"))];
    limits.into_iter().flatten().min()
});

/// Whether the process has more than [`HEADROOM`] allows, as it was known at most 100 ms ago: thousands of streams ask.
pub fn is_short() -> bool {
    static KNOWN: Mutex<Option<(Instant, bool)>> = Mutex::new(None);
    const AGE: Duration = Duration::from_millis(100);
    let mut known = KNOWN.lock();
    match *known {
        Some((at, is_short)) if at.elapsed() < AGE => is_short,
        _ => {
            let is_short = HEADROOM.is_exceeded();
            *known = Some((Instant::now(), is_short));
            is_short
        }
    }
}

/// What is left for work that has no bound of its own in bytes, and for what the system counts beside: buffers of connections, files that
/// were read. It does not grow with the memory, but is no more than three eighths of a small one, and no less than an eighth of a large one.
const RESERVED: u64 = 192 * 1024 * 1024;

/// What this process may have before it takes no more work that needs much: as memory, and as address space where that has a limit. The
/// allocator reserves more of it than is in use, and a process that gets no more is ended.
pub static HEADROOM: LazyLock<Arc<Headroom>> = LazyLock::new(|| {
    let memory = LIMIT.map(|limit| Bound {
        most: without_reserve(limit),
        in_use,
    });
    let addresses = address_space().map(|limit| Bound {
        most: limit - limit / PARTS_OF_STACKS,
        in_use: addresses_in_use,
    });
    let bounds = memory.into_iter().chain(addresses);
    Arc::new(Headroom::new(bounds.collect()))
});

/// Of the address space, what is left for the stacks of threads: one part of so many.
const PARTS_OF_STACKS: u64 = 16;

fn without_reserve(limit: u64) -> u64 {
    let eighth = limit / 8;
    limit - RESERVED.min(3 * eighth).max(eighth)
}

/// A bound for the memory that a process has, together with what work under way will need.
///
/// Bounds on bodies and on documents in work are not enough: what they become differs by a factor of a hundred, and what is stored and
/// cached comes on top.
#[derive(Debug)]
pub struct Headroom {
    bounds: Vec<Bound>,
    promised: AtomicU64,
}

/// At most so many bytes, of which `in_use` are taken; `None` if that is not known, which is no bound.
#[derive(Debug)]
pub struct Bound {
    /// Bytes that may be in use.
    pub most: u64,
    /// Bytes that are in use; `None` if that is not known.
    pub in_use: fn() -> Option<u64>,
}

impl Headroom {
    /// The least of what these bounds leave.
    pub const fn new(bounds: Vec<Bound>) -> Self {
        Self {
            bounds,
            promised: AtomicU64::new(0),
        }
    }

    /// Whether more than a bound is in use: then what can be given up is worth more than it costs.
    pub fn is_exceeded(&self) -> bool {
        !self.has(0)
    }

    /// Whether so many bytes are within the bounds, beside those in use.
    fn has(&self, bytes: u64) -> bool {
        self.bounds.iter().all(|bound| {
            let in_use = (bound.in_use)().unwrap_or_default();
            in_use.saturating_add(bytes) <= bound.most
        })
    }

    /// Memory for work that will need so many bytes, until the promise is dropped; `None` if there is not so much.
    pub fn promise(self: &Arc<Self>, bytes: u64) -> Option<Promise> {
        let promised = self.promised.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let promise = Promise {
            of: Arc::clone(self),
            bytes,
        };
        self.has(promised).then_some(promise)
    }
}

/// Memory for work under way.
#[derive(Debug)]
pub struct Promise {
    of: Arc<Headroom>,
    bytes: u64,
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.of.promised.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory of this process that is not that of a file, in bytes. Linux alone tells.
fn in_use() -> Option<u64> {
    of_status("RssAnon:")
}

/// The address space of this process that is in use, in bytes: also what is only reserved.
fn addresses_in_use() -> Option<u64> {
    of_status("VmSize:")
}

fn of_status(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    kib_after(&text, name)?.checked_mul(1024)
}

/// The number of KiB in the line that begins with a name.
fn kib_after(text: &str, name: &str) -> Option<u64> {
    let number = text.lines().find_map(|line| line.strip_prefix(name))?;
    number.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// One of so many parts of the memory of this process, but no more than `most`.
pub fn share(parts: u64, most: usize) -> usize {
    share_of(*LIMIT, parts, most)
}

fn share_of(limit: Option<u64>, parts: u64, most: usize) -> usize {
    let share = limit.and_then(|limit| usize::try_from(limit / parts).ok());
    share.map_or(most, |share| share.min(most))
}

/// The limit of the address space, as `ulimit -v` sets it.
fn address_space() -> Option<u64> {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::As).current;
    #[cfg(not(unix))]
    None
}

/// The smallest limit in the files of Linux below a root: of the machine, and of the control groups of this process.
fn of_files(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| of_group(root, line));
    of_groups.chain(of_machine(root)).min()
}

fn of_machine(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    kib_after(&text, "MemTotal:")?.checked_mul(1024)
}

/// The smallest limit of a control group and of those around it. The line is `ID:CONTROLLERS:PATH`; version 2 has no controllers. In a
/// container the path may be that outside of it: then the root's limit is its own.
fn of_group(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let mount = root.join(mount);
    let folder: PathBuf = mount.join(path.trim_start_matches('/'));
    let folders = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount));
    let limits = folders.filter_map(|folder| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        text.trim().parse().ok()
    });
    limits.filter(|limit| *limit < NO_LIMIT).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// A root with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn limit_in(files: &[(&str, &str)]) -> Option<u64> {
        of_files(root(files).path())
    }

    const MACHINE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:        2097152 kB\nMemFree: 1 kB\n",
    );

    #[test]
    fn the_smallest_limit_counts() {
        assert_eq!(limit_in(&[]), None);
        assert_eq!(limit_in(&[MACHINE]), Some(2048 * MIB));
        let own = ("proc/self/cgroup", "0::/pods/own\n");
        let of_own = |text| ("sys/fs/cgroup/pods/own/memory.max", text);
        assert_eq!(
            limit_in(&[MACHINE, own, of_own("536870912\n")]),
            Some(512 * MIB)
        );
        assert_eq!(limit_in(&[MACHINE, own, of_own("max\n")]), Some(2048 * MIB));
        let around = ("sys/fs/cgroup/pods/memory.max", "268435456");
        assert_eq!(
            limit_in(&[MACHINE, own, of_own("536870912"), around]),
            Some(256 * MIB)
        );
    }

    #[test]
    fn groups_of_version_1_are_read_too() {
        let groups = (
            "proc/self/cgroup",
            "5:cpu,cpuacct:/a\n4:hugetlb,memory:/docker/abc\n0::/\n",
        );
        let own = "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes";
        assert_eq!(
            limit_in(&[MACHINE, groups, (own, "1073741824\n")]),
            Some(1024 * MIB)
        );
        assert_eq!(
            limit_in(&[MACHINE, groups, (own, "9223372036854771712\n")]),
            Some(2048 * MIB)
        );
        // The path is that outside of the container.
        let inside = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "805306368");
        assert_eq!(limit_in(&[MACHINE, groups, inside]), Some(768 * MIB));
    }

    #[test]
    fn a_reserve_is_left() {
        for (limit, most) in [(256, 160), (512, 320), (1024, 832), (8192, 7168)] {
            assert_eq!(without_reserve(limit * MIB), most * MIB, "{limit}");
        }
    }

    #[test]
    fn promises_and_what_is_in_use_have_a_bound_together() {
        let bound = |most, in_use| Bound { most, in_use };
        let headroom = |bounds| Arc::new(Headroom::new(bounds));
        let is_exceeded = headroom(vec![bound(50, || Some(60))]);
        let unknown = headroom(vec![bound(100, || None)]);
        let two = headroom(vec![bound(100, || Some(60)), bound(300, || Some(270))]);
        let headroom = headroom(vec![bound(100, || Some(60))]);
        let first = headroom.promise(30).unwrap();
        assert!(headroom.promise(11).is_none());
        let second = headroom.promise(10).unwrap();
        assert!(headroom.promise(1).is_none());
        drop((first, second));
        assert!(headroom.promise(40).is_some());
        assert!(!headroom.is_exceeded() && is_exceeded.is_exceeded());
        // What is not known is no bound.
        assert!(unknown.promise(100).is_some());
        assert!(two.promise(30).is_some() && two.promise(31).is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_in_use_is_known() {
        const TAKEN: u64 = 256 * MIB;
        let taken = vec![1_u8; TAKEN as usize];
        // Other tests of this process have some too, and give it back at any time.
        assert!(in_use().unwrap() >= TAKEN);
        drop(taken);
    }

    #[test]
    fn a_share_is_bounded() {
        assert_eq!(share_of(None, 8, 100), 100);
        assert_eq!(share_of(Some(512 * MIB), 8, usize::MAX), 64 * 1024 * 1024);
        assert_eq!(share_of(Some(512 * MIB), 8, 1024), 1024);
    }
}
