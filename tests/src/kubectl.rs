//! Real kubectl in the releases that `tests/tools` obtains, never the one on PATH.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::repository;

/// Timeout of one run.
const PATIENCE: Duration = Duration::from_secs(60);

/// One release of kubectl, configured for one server.
pub struct Kubectl {
    binary: PathBuf,
    kubeconfigs: Vec<PathBuf>,
    runs: AtomicUsize,
    home: tempfile::TempDir,
}

/// The result of one run.
#[derive(Debug)]
pub struct Output {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Kubectl {
    /// The tested releases.
    pub const RELEASES: [&'static str; 3] = ["1.32", "1.36", "1.37"];

    /// A release with the kubeconfig of a server and its own home folder, so that it uses no cache of another server.
    pub fn new(release: &str, kubeconfig: &Path) -> Self {
        Self::in_turn(release, &[kubeconfig])
    }

    /// The same for replicas of one server: each run uses the next one.
    pub fn in_turn(release: &str, kubeconfigs: &[&Path]) -> Self {
        let binary = repository().join(format!("target/tools/kubectl-{release}/kubectl"));
        assert!(
            binary.exists(),
            "{} is missing: run tests/tools",
            binary.display()
        );
        Self {
            binary,
            kubeconfigs: kubeconfigs.iter().map(|&path| path.to_owned()).collect(),
            runs: AtomicUsize::new(0),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The command with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", self.home.path())
            .env(
                "KUBECONFIG",
                &self.kubeconfigs[run % self.kubeconfigs.len()],
            )
            .current_dir(repository().join("tests/kubectl"))
            // It lives for less than its heap takes to fill, but its collector uses a third of its processor time.
            .env("GOGC", "off")
            .env("TZ", "UTC")
            .env("KUBE_EDITOR", "sed -i -f edit.sed");
        command
    }

    /// Runs it with this standard input. Panics if it has not ended after a minute.
    pub fn run(&self, args: &[&str], stdin: &str) -> Output {
        let mut command = self.command(args);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A kubectl that fails early does not read its input, which is not an error of the test.
        let _ = process.stdin.take().unwrap().write_all(stdin.as_bytes());
        let pid = process.id().to_string();
        let (ended, output) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(process.wait_with_output()));
        let Ok(output) = output.recv_timeout(PATIENCE) else {
            // It may have just ended by itself.
            let _ = Command::new("kill").arg(pid).status();
            panic!("kubectl {} did not end", args.join(" "));
        };
        let output = output.unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
