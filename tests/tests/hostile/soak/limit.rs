//! The limit of the server's memory: a control group of its own, if this process may make one, else its address space.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::MIB;

/// What the server may use.
pub(super) const MEMORY: u64 = 512 * MIB;

/// Its address space where there is no control group: the allocator reserves about as much again as it uses.
const ADDRESS_SPACE: u64 = 2 * MEMORY;

pub(super) enum Limit {
    /// The folder of the group, which is removed at the end.
    ControlGroup(PathBuf),
    AddressSpace,
}

impl Limit {
    pub(super) fn new() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let made = groups.lines().find_map(make_group);
        made.map_or(Self::AddressSpace, Self::ControlGroup)
    }

    /// What a shell runs before it becomes the server.
    pub(super) fn set(&self) -> String {
        match self {
            Self::ControlGroup(folder) => format!("echo $$ > '{}/cgroup.procs'", folder.display()),
            Self::AddressSpace => format!("ulimit -v {}", ADDRESS_SPACE / 1024),
        }
    }

    /// The most that was used at once, as far as the limit counts it, in bytes.
    pub(super) fn peak(&self) -> Option<u64> {
        let Self::ControlGroup(folder) = self else {
            return None;
        };
        let files = ["memory.max_usage_in_bytes", "memory.peak"];
        let text = files
            .iter()
            .find_map(|file| fs::read_to_string(folder.join(file)).ok())?;
        text.trim().parse().ok()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Self::ControlGroup(folder) = self
            && let Err(error) = fs::remove_dir(&folder)
        {
            println!("{} is left: {error}", folder.display());
        }
    }
}

/// Makes a group with the limit beside or below this process, whose line of `/proc/self/cgroup` is `ID:CONTROLLERS:PATH`. Version 2 has no
/// controllers there, and those of version 1 have a folder each.
fn make_group(line: &str) -> Option<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, own) = (parts.next()?, parts.next()?);
    let (mount, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    // In a container the path may be that outside of it, and a group with processes has none below it in version 2.
    let name = format!("apiloom-soak-{}", std::process::id());
    let below = Path::new(mount).join(own.trim_start_matches('/'));
    [below.as_path(), Path::new(mount)]
        .into_iter()
        .find_map(|parent| {
            let folder = parent.join(&name);
            fs::create_dir(&folder).ok()?;
            // A new file there would be no limit: only the system makes files in groups.
            let is_limited = folder.join(file).exists()
                && fs::write(folder.join(file), MEMORY.to_string()).is_ok();
            if !is_limited {
                fs::remove_dir(&folder).ok()?;
                return None;
            }
            Some(folder)
        })
}
