//! The limit for open files, and so for connections, of this process.

/// Raises the soft limit to the hard limit, as Go programs do; the soft limit is low for programs that use `select`.
pub(super) fn raise_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        /// The maximum of macOS if the hard limit is "unlimited".
        const OPEN_MAX: u64 = 10_240;

        let limit = getrlimit(Resource::Nofile);
        if limit.current == limit.maximum {
            return;
        }
        let raise = |current: Option<u64>| {
            let maximum = limit.maximum;
            setrlimit(Resource::Nofile, Rlimit { current, maximum })
        };
        let raised = raise(limit.maximum).or_else(|error| match limit.current {
            Some(current) if current < OPEN_MAX => raise(Some(OPEN_MAX)),
            _ => Err(error),
        });
        match raised {
            Ok(()) => {
                tracing::debug!(from = ?limit.current, to = ?limit.maximum, "raised the limit of open files");
            }
            // Not fatal: the server works, with fewer connections.
            Err(error) => {
                tracing::warn!(%error, limit = ?limit.current, "cannot raise the limit of open files");
            }
        }
    }
}

/// The limit for open files; `None` for no limit.
pub(super) fn limit() -> Option<u64> {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    None
}

/// Whether accept failed because of the limit for open files, of this process or of the system.
pub(super) fn is_too_many(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let code = error.raw_os_error();
        [Errno::MFILE, Errno::NFILE]
            .iter()
            .any(|errno| code == Some(errno.raw_os_error()))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::io::Errno;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        let hard = before.maximum.unwrap_or(100_000);
        let lower = Rlimit {
            current: Some(hard - 1),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, lower).unwrap();
        raise_limit();
        assert_eq!(limit(), before.maximum);
    }

    #[test]
    fn too_many_open_files_are_told_from_other_failures() {
        let of = |code| is_too_many(&std::io::Error::from_raw_os_error(code));
        assert!(of(Errno::MFILE.raw_os_error()) && of(Errno::NFILE.raw_os_error()));
        assert!(!of(Errno::CONNABORTED.raw_os_error()));
    }
}
