//! wardle-controller as a process, which can be killed, frozen, and started again.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use apiloom_tests::build;

/// The lease, and how long it is kept for a leader that does not renew it.
pub(crate) const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/default/leases/wardle-controller";
const LEASE_SECONDS: u64 = 3;

/// What a leader says that ends since it lost its lease.
pub(crate) const LOST: &str = "lost the lease";

/// Timeout of a process that should end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A replica; killed when dropped. Its processes are called `a-1`, `a-2`: each has an identity of its own.
pub(crate) struct Replica {
    name: &'static str,
    starts: usize,
    kubeconfig: PathBuf,
    process: Child,
    log: Option<JoinHandle<String>>,
}

impl Replica {
    pub(crate) fn start(name: &'static str, kubeconfig: &Path) -> Self {
        Self::start_number(1, name, kubeconfig)
    }

    fn start_number(starts: usize, name: &'static str, kubeconfig: &Path) -> Self {
        let mut process = Command::new(build("wardle-controller"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--identity={name}-{starts}"))
            .arg(format!("--lease-duration={LEASE_SECONDS}s"))
            .args(["--lease-renew-deadline=2s", "--lease-retry-period=100ms"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = process.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is shown.
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Self {
            name,
            starts,
            kubeconfig: kubeconfig.to_owned(),
            process,
            log: Some(log),
        }
    }

    /// The identity of the process.
    pub(crate) fn identity(&self) -> String {
        format!("{}-{}", self.name, self.starts)
    }

    /// Another process of this replica, and the one before it.
    pub(crate) fn replace(&mut self) -> Self {
        let next = Self::start_number(self.starts + 1, self.name, &self.kubeconfig);
        std::mem::replace(self, next)
    }

    /// Starts it again if it has ended, as a supervisor does: a leader that lost its lease ends.
    pub(crate) fn supervise(&mut self) {
        if self.process.try_wait().unwrap().is_some() {
            drop(self.replace());
        }
    }

    /// Kills it, and starts it again.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        drop(self.replace());
    }

    /// Stops its threads.
    pub(crate) fn freeze(&self) {
        signal(self.process.id(), "-STOP");
    }

    /// Lets its threads go on.
    pub(crate) fn wake(&self) {
        signal(self.process.id(), "-CONT");
    }

    /// Asks it to stop, and waits for that.
    pub(crate) fn stop(self) {
        signal(self.process.id(), "-TERM");
        let (status, log) = self.wait();
        // On a busy machine it may have lost the lease just before.
        assert!(status.success() || log.contains(LOST), "{status}: {log}");
    }

    /// Waits for its end. Returns what it wrote to stderr, too.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "{} does not end",
                self.identity()
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        (status, self.log.take().unwrap().join().unwrap())
    }
}

/// Sends a signal to a process that a test has started.
pub(crate) fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
