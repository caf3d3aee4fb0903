//! Clients in other languages: programs that run checks against a server, and have it restarted.
//!
//! The last argument of a program is a kubeconfig. It prints a line for each check, and ends with a failure if one failed. A
//! line `restart` asks for a restart of the server, `kill` for one after a kill; the program then waits for a line `done`
//! on its standard input. The address of the server stays, since a proxy is in between.
//!
//! With `APILOOM_TEST_REPLICAS` in the environment there are two servers over one etcd. When one ends, the clients go on with the
//! other, which has run all the time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::network::Proxy;
use crate::{Server, StoreOfTest, has_replicas};

/// Timeout of a program.
const PATIENCE: Duration = Duration::from_secs(240);

/// Runs a program against a new server. Panics with its output if it fails, runs no check or does not end.
pub fn run_client(command: &mut Command) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = runtime.block_on(RestartableServer::start());
    let mut program = Program::start(command.arg(server.kubeconfig()));
    while let Some(line) = program.next_line() {
        match line.as_str() {
            "restart" => server.restart(),
            "kill" => server.kill(),
            _ => continue,
        }
        program.answer("done\n");
    }
    program.finish();
}

/// A server behind a proxy, whose address stays when the server is restarted.
pub struct RestartableServer {
    /// `None` only during a restart.
    server: Option<Server>,
    /// The server that clients use next, if there are two.
    standby: Option<Server>,
    proxy: Proxy,
    kubeconfig: PathBuf,
    /// Of two servers: one alone has its store in its folder.
    store: Option<StoreOfTest>,
    /// Kept until the end: the folders of servers and the kubeconfig.
    _folder: TempDir,
}

impl RestartableServer {
    /// Starts wardle-server over a new folder, or two of them over a new store.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = has_replicas().then(StoreOfTest::of_replicas);
        let data = folder.path().join("server");
        let server = start_in(&data, store.as_ref());
        let standby = store.is_some().then(|| {
            let other = folder.path().join("standby");
            copy_credentials(&data, &other);
            start_in(&other, store.as_ref())
        });
        let proxy = Proxy::start(address(&server)).await;
        let kubeconfig = folder.path().join("kubeconfig");
        let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
        let text = text.replace(&address(&server), proxy.address());
        std::fs::write(&kubeconfig, text).unwrap();
        Self {
            server: Some(server),
            standby,
            proxy,
            kubeconfig,
            store,
            _folder: folder,
        }
    }

    /// A kubeconfig with the address of the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Asks the server to stop, and starts one over the same folder.
    pub fn restart(&mut self) {
        self.start_again(Server::stop);
    }

    /// Kills the server, and starts one over the same folder.
    pub fn kill(&mut self) {
        self.start_again(Server::kill);
    }

    fn start_again(&mut self, end: impl FnOnce(Server) -> (PathBuf, Option<TempDir>)) {
        let standby = self.standby.take();
        if let Some(standby) = &standby {
            self.proxy.retarget(address(standby));
        }
        let (data, _) = end(self.server.take().expect("the server runs"));
        let started = start_in(&data, self.store.as_ref());
        if standby.is_some() {
            self.server = standby;
            self.standby = Some(started);
        } else {
            self.proxy.retarget(address(&started));
            self.server = Some(started);
        }
    }
}

fn start_in(data: &Path, store: Option<&StoreOfTest>) -> Server {
    let flags = store.map(StoreOfTest::flags).unwrap_or_default();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Server::start_in(data, &flags)
}

/// Gives a server that was not started yet the token and the certificates of another, as replicas have them: clients cannot
/// tell which one answers.
fn copy_credentials(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.join("pki")).unwrap();
    std::fs::copy(from.join("admin.token"), to.join("admin.token")).unwrap();
    for file in std::fs::read_dir(from.join("pki")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join("pki").join(file.file_name())).unwrap();
    }
}

/// Host and port of a server.
fn address(server: &Server) -> String {
    server.url().trim_start_matches("https://").to_owned()
}

/// A running program and its output so far.
struct Program {
    process: Child,
    deadline: Instant,
    lines: Receiver<String>,
    stderr: std::thread::JoinHandle<String>,
    output: String,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let mut stderr = process.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is shown.
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Self {
            process,
            deadline: Instant::now() + PATIENCE,
            lines,
            stderr,
            output: String::new(),
        }
    }

    /// The next line of its output; `None` at its end.
    fn next_line(&mut self) -> Option<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => {
                self.output.push_str(&line);
                self.output.push('\n');
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.output.push_str("the program did not end\n");
                self.process.kill().unwrap();
                None
            }
        }
    }

    /// Writes to its standard input.
    fn answer(&mut self, text: &str) {
        let stdin = self.process.stdin.as_mut().unwrap();
        // A program that has ended fails by its exit code.
        let _ = stdin.write_all(text.as_bytes());
    }

    fn finish(mut self) {
        let status = self.process.wait().unwrap();
        let stderr = self.stderr.join().unwrap();
        let output = self.output;
        assert!(status.success(), "{status}:\n{output}{stderr}");
        let is_ok = |line: &str| line.ends_with(": ok");
        assert!(output.lines().any(is_ok), "no check ran:\n{output}{stderr}");
    }
}
