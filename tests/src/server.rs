//! A generated server as a child process, on a free port, with its own folder.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use crate::Client;

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests crate lies in the repository")
        .to_owned()
}

/// The path of a binary of the workspace, after building it. Cargo detects quickly that nothing has changed, so a test
/// never runs an outdated server. All packages and one test are built together, since fewer packages or no development
/// dependencies would select other features and build everything a second time.
///
/// With `APILOOM_TEST_NO_BUILD` in the environment, as in `tests/all` after its build, the binary is taken as it is; with
/// `APILOOM_TEST_BINARIES`, it is one of that folder.
pub fn build(binary: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let profile = BUILT.get_or_init(|| {
        if let Some(folder) = std::env::var_os("APILOOM_TEST_BINARIES") {
            return folder.into();
        }
        // target/debug/deps/TEST-HASH -> target/debug
        let profile = std::env::current_exe()
            .unwrap()
            .ancestors()
            .nth(2)
            .unwrap()
            .to_owned();
        if std::env::var_os("APILOOM_TEST_NO_BUILD").is_some() {
            return profile;
        }
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--quiet", "--workspace"])
            .args(["--bins", "--test", "filters", "--example", "document_kinds"])
            .args(cfg!(feature = "etcd").then_some("--features=etcd"))
            .current_dir(repository());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(
            cargo.status().unwrap().success(),
            "the workspace does not build"
        );
        profile
    });
    profile.join(binary)
}

/// Flags for every server of a test run, from `APILOOM_TEST_FLAGS`, so that the same tests can run with other settings.
fn flags_of_all() -> String {
    std::env::var("APILOOM_TEST_FLAGS").unwrap_or_default()
}

/// Flags of the server that takes the writes where a check has two servers, from `APILOOM_TEST_REPLICAS`. If the variable is
/// set, even to no flags, the contract is checked over etcd with two servers: one takes the writes, and the other serves GET,
/// with watches.
pub(crate) fn flags_of_writer() -> Option<String> {
    std::env::var("APILOOM_TEST_REPLICAS").ok()
}

/// Whether checks have two servers over one store in this test run.
pub fn has_replicas() -> bool {
    flags_of_writer().is_some()
}

/// Whether servers keep a watch cache in this test run. Of two servers, it is the one that serves GET.
pub fn is_cached() -> bool {
    !flags_of_all().contains("--watch-cache=false")
}

/// A running server; killed when dropped.
pub struct Server {
    process: Child,
    url: String,
    kubeconfig: PathBuf,
    /// The line it printed when it was ready.
    pub ready_line: String,
    dir: Option<tempfile::TempDir>,
    data_dir: PathBuf,
    log: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    /// Starts wardle-server over a new folder, with further arguments.
    pub fn start(args: &[&str]) -> Self {
        Self::start_binary(&build("wardle-server"), args)
    }

    /// Starts wardle-server over an existing folder.
    pub fn start_in(data_dir: &Path, args: &[&str]) -> Self {
        Self::start_binary_in(&build("wardle-server"), data_dir, args)
    }

    /// Starts wardle-server over an existing folder, with more environment variables.
    pub fn start_with(data_dir: &Path, environment: &[(&str, &Path)]) -> Self {
        Self::spawn(&build("wardle-server"), data_dir, &[], environment)
    }

    /// Starts another server's binary over a new folder.
    pub fn start_binary(binary: &Path, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self::start_binary_in(binary, &dir.path().join("data"), args);
        server.dir = Some(dir);
        server
    }

    /// Starts another server's binary over an existing folder.
    pub fn start_binary_in(binary: &Path, data_dir: &Path, args: &[&str]) -> Self {
        Self::spawn(binary, data_dir, args, &[])
    }

    /// Starts wardle-server over a new folder as a process with this limit of open files, sockets included.
    pub fn start_with_files(files: u32, args: &[&str]) -> Self {
        Self::start_after(&format!("ulimit -n {files}"), args)
    }

    /// Starts wardle-server over a new folder as a process with this limit of its address space.
    pub fn start_with_memory(kib: u32, args: &[&str]) -> Self {
        Self::start_after(&format!("ulimit -v {kib}"), args)
    }

    /// Starts wardle-server over a new folder as the process of a shell that has run a command, such as one that limits it.
    pub fn start_after(command_of_shell: &str, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{command_of_shell} && exec \"$0\" \"$@\"")])
            .arg(build("wardle-server"));
        let mut server = Self::spawn_command(command, &dir.path().join("data"), args, &[]);
        server.dir = Some(dir);
        server
    }

    fn spawn(binary: &Path, data_dir: &Path, args: &[&str], environment: &[(&str, &Path)]) -> Self {
        Self::spawn_command(Command::new(binary), data_dir, args, environment)
    }

    fn spawn_command(
        mut command: Command,
        data_dir: &Path,
        args: &[&str],
        environment: &[(&str, &Path)],
    ) -> Self {
        command
            .arg("--secure-port=0")
            .arg("--data-dir")
            .arg(data_dir)
            .args(flags_of_all().split_whitespace())
            .args(args)
            .envs(environment.iter().copied());
        Self::start_process(command, data_dir)
    }

    /// Starts a server by a command that becomes its process and takes its flags at the end, such as `apiloom run`. The
    /// folder is the one that it uses by itself.
    pub fn start_by(mut command: Command, data_dir: &Path) -> Self {
        command
            .arg("--secure-port=0")
            .args(flags_of_all().split_whitespace());
        Self::start_process(command, data_dir)
    }

    fn start_process(mut command: Command, data_dir: &Path) -> Self {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready_line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut ready_line)
            .unwrap();
        if ready_line.is_empty() {
            let mut stderr = String::new();
            process
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut stderr)
                .unwrap();
            panic!("{command:?} did not start: {stderr}");
        }
        let url = ready_line
            .split_whitespace()
            .find(|word| word.starts_with("https://"))
            .unwrap()
            .to_owned();
        let kubeconfig = PathBuf::from(ready_line.trim_end().split_once("kubeconfig: ").unwrap().1);
        // The log must be read so that a full pipe does not block the server.
        let mut stderr = process.stderr.take().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece) {
                written.lock().unwrap().extend_from_slice(&piece[..length]);
            }
        });
        Self {
            process,
            url,
            kubeconfig,
            ready_line,
            dir: None,
            data_dir: data_dir.to_owned(),
            log,
        }
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }
    /// Its administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
    /// Its data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
    /// What it has written to stderr so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned()
    }
    /// A client with the administrator's credentials.
    pub fn client(&self) -> Client {
        Client::new(&self.kubeconfig)
    }
    /// Kills it, as a power cut would, and returns the folder for a restart.
    pub fn kill(mut self) -> (PathBuf, Option<tempfile::TempDir>) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        (self.data_dir.clone(), self.dir.take())
    }
    /// Asks it to stop, waits, and returns the folder. Panics if it fails.
    pub fn stop(self) -> (PathBuf, Option<tempfile::TempDir>) {
        self.terminate();
        self.wait()
    }
    /// Asks it to stop.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }
    /// Asks it to stop as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal("-INT");
    }
    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
    /// Waits for its end after it was asked to stop, and returns the folder. Panics if it fails.
    pub fn wait(mut self) -> (PathBuf, Option<tempfile::TempDir>) {
        assert!(
            self.process.wait().unwrap().success(),
            "a signal ends the server with exit code 0"
        );
        (self.data_dir.clone(), self.dir.take())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
