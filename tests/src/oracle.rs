//! The oracle as a process over an etcd of its own; both end with the test.

mod answer;

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use self::answer::Answer;
use crate::etcd::Etcd;
use crate::{Client, repository};

/// Timeout of its start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running oracle.
pub struct Oracle {
    process: Child,
    folder: tempfile::TempDir,
    _etcd: Etcd,
}

impl Oracle {
    /// Starts it; `None` on a machine where it could not be built.
    pub fn start() -> Option<Self> {
        let program = repository().join("target/tools/oracle-1.36-cel-0.27/oracle");
        if !program.exists() {
            return None;
        }
        let etcd = Etcd::start(Etcd::NEWEST);
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let log = File::create(folder.path().join("log")).unwrap();
        let mut process = Command::new(program)
            .arg(format!("--etcd-servers={}", etcd.url()))
            .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")])
            .arg(format!("--cert-dir={}", folder.path().display()))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let started = Instant::now();
        let certificate = folder.path().join("apiserver.crt");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() || !certificate.exists() {
            let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            assert!(
                process.try_wait().unwrap().is_none(),
                "the oracle ended: {}",
                log()
            );
            assert!(
                started.elapsed() < PATIENCE,
                "the oracle does not start: {}",
                log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        let authority = STANDARD.encode(std::fs::read(certificate).unwrap());
        let kubeconfig = serde_json::json!({
            "clusters": [{"cluster": {"server": format!("https://localhost:{port}"), "certificate-authority-data": authority}}],
            "users": [{"user": {}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
        Some(Self {
            process,
            folder,
            _etcd: etcd,
        })
    }

    /// A client of it, which needs no credentials. HTTP/1.1: each test has a runtime of its own, and a connection of one.
    pub fn client(&self) -> Client {
        Client::of_http1(&self.folder.path().join("kubeconfig"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
