//! The packages of `apiloom new`, outside of this workspace: they are formatted, `apiloom run` serves one, its tests pass without
//! compiling again what that compiled, and its controller works. The clients of one, as a package of their own, work in a program.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use apiloom_tests::{Client, Server, build, created, repository};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Timeout for what should come soon.
const LIMIT: Duration = Duration::from_secs(60);

/// The name of a new package, and that of one with types for kube-rs.
const PLAIN: &str = "new-zoo";
const WITH_KUBE: &str = "kube-zoo";

/// The clients of the kinds of the second one as a package of their own, and a program that uses them.
const CLIENTS: &str = "zoo-client";
const USER: &str = "client-user";

/// A package whose names are keywords, and its clients.
const KEYWORDS: &str = "gen";
const KEYWORD_CLIENTS: &str = "gen-client";

/// A folder outside of this workspace, for packages.
struct Folder {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().canonicalize().unwrap();
        Self {
            _root: root,
            folder,
        }
    }

    /// Makes a workspace of the packages with clients and types for kube-rs, so that one build has all dependencies.
    fn write_workspace(&self, apiloom: &Path) {
        self.run(Command::new(apiloom).args(["new", WITH_KUBE, "--kube"]));
        self.copy_fixtures();
        for (package, clients) in [(WITH_KUBE, CLIENTS), (KEYWORDS, KEYWORD_CLIENTS)] {
            let mut generate = Command::new(apiloom);
            generate.args(["generate", "--fast", package, "--client-crate", clients]);
            self.run(&mut generate);
        }
        let members = [WITH_KUBE, CLIENTS, KEYWORDS, KEYWORD_CLIENTS, USER];
        let members = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
        std::fs::write(self.folder.join("Cargo.toml"), members).unwrap();
    }

    /// Copies the program that uses the clients, and the package of keywords.
    fn copy_fixtures(&self) {
        let fixtures = repository().join("tests/fixtures");
        let files = ["Cargo.toml", "src/lib.rs", "tests/user.rs"];
        self.copy(&fixtures.join("client-user"), USER, &files);
        let files = [
            "Cargo.toml",
            "src/async.rs",
            "src/gen.rs",
            "src/gen/try.rs",
            "src/lib.rs",
        ];
        self.copy(&fixtures.join("generator/gen"), KEYWORDS, &files);
    }

    /// Copies files of a package, which becomes a member and depends on the real runtime.
    fn copy(&self, from: &Path, name: &str, files: &[&str]) {
        let runtime = format!("{:?}", repository().join("runtime"));
        for file in files {
            let text = std::fs::read_to_string(from.join(file)).unwrap();
            let text = text.replace("\"../runtime\"", &runtime);
            let text = text.replace("\n[workspace]\n", "");
            let to = self.folder.join(name).join(file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, text).unwrap();
        }
    }

    /// Runs a command in the folder, which must succeed, and returns what it said.
    #[track_caller]
    fn run(&self, command: &mut Command) -> String {
        run(self.inside(command))
    }

    /// As [`run`](Self::run), in the folder of a package.
    #[track_caller]
    fn run_in(&self, package: &str, command: &mut Command) -> String {
        run(self.inside(command).current_dir(self.folder.join(package)))
    }

    /// A command in the folder.
    fn inside<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(&self.folder)
            .env_remove("CARGO_TARGET_DIR")
    }

    /// Serves a package as its README says, in the folder that is used without a flag.
    fn serve(&self, apiloom: &Path, package: &str) -> Server {
        let mut command = Command::new(apiloom);
        self.inside(&mut command).args(["run", package, "--"]);
        let data = self.folder.join(package).join("target/apiloom");
        Server::start_by(command, &data.join(package))
    }

    /// The crates that cargo compiles by this command in the folder of a package.
    fn compiled(&self, package: &str, arguments: &[&str]) -> Vec<String> {
        let quietly = ["--offline", "--quiet", "--message-format=json"];
        let said = self.run_in(package, cargo().args(arguments).args(quietly));
        let messages = said
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let artifacts = messages.filter(|one| one["reason"] == "compiler-artifact");
        artifacts
            .filter(|one| one["fresh"] == false)
            .map(|one| format!("{} {}", one["target"]["kind"][0], one["target"]["name"]))
            .collect()
    }

    /// A command of cargo for the workspace that builds as `apiloom run` does: with the dependencies of the clone.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let shared = repository().join("target");
        let mut command = cargo();
        command
            .args(arguments)
            .arg("--config")
            .arg(format!("build.build-dir={shared:?}"))
            .arg("--config")
            .arg(self.folder.join(WITH_KUBE).join(".cargo/config.toml"));
        command
    }
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, told) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}: {said}{told}");
    said
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(controller: &Path, kubeconfig: &Path) -> Running {
    let mut command = Command::new(controller);
    command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
    Running(command.spawn().unwrap())
}

#[test]
fn clients_are_packages_that_work() {
    let apiloom = build("apiloom");
    let packages = Folder::new();
    packages.write_workspace(&apiloom);
    packages.run(cargo().args(["fmt", "--check", "--package", WITH_KUBE]));
    // Its clients, informers and fake, and the types for kube-rs: its server would be that of the other one.
    let fresh = ["generate", "--fast", "--check", WITH_KUBE];
    packages.run(
        Command::new(&apiloom)
            .args(fresh)
            .args(["--client-crate", CLIENTS]),
    );
    let test = ["test", "--offline", "--quiet", "--workspace", "--test", "*"];
    // It has no tests; its main names the package.
    let test = [&test[..], &["--bin", "gen-server"]].concat();
    let tested = packages.run(&mut packages.cargo(&test));
    let passed = tested.matches("1 passed; 0 failed").count();
    assert_eq!(passed, 2, "{tested}");
    assert!(tested.contains("4 passed; 0 failed"), "{tested}");
}

/// What `apiloom run` has compiled is not compiled again by the commands that the package's README names.
#[track_caller]
fn check_cargo_finds_what_was_built(packages: &Folder) {
    let compiled = packages.compiled(PLAIN, &["test", "--no-run"]);
    // The library, by itself and as one with tests, the test and the two programs that tests can call; the facade with what
    // tests need, and what that is.
    assert!(compiled.len() <= 7, "{compiled:?}");
    let compiled = packages.compiled(PLAIN, &["build"]);
    assert!(compiled.len() <= 2, "two programs: {compiled:?}");
    let tested = packages.run_in(PLAIN, cargo().args(["test", "--offline", "--quiet"]));
    assert!(tested.contains("1 passed; 0 failed"), "{tested}");
}

/// Waits for a part of the server's log, which is read by a thread.
async fn told(server: &Server, part: &str) {
    while !server.log().contains(part) {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_package_works_at_once() {
    let apiloom = build("apiloom");
    let packages = Folder::new();
    packages.run(Command::new(&apiloom).args(["new", PLAIN]));
    packages.run_in(PLAIN, cargo().args(["fmt", "--check"]));

    let server = packages.serve(&apiloom, PLAIN);
    let ready = "new-zoo-server ready at https://127.0.0.1:";
    assert!(
        server.ready_line.starts_with(ready),
        "{}",
        server.ready_line
    );
    let kubeconfig = server.data_dir().join("admin.kubeconfig");
    assert_eq!(server.kubeconfig(), kubeconfig);
    timeout(LIMIT, told(&server, "starting new-zoo-server"))
        .await
        .expect("it tells its steps");
    check_cargo_finds_what_was_built(&packages);
    let client = Client::new(server.kubeconfig());
    let path = "/apis/new-zoo.example.com/v1alpha1/namespaces/default/newzoos";
    let object = json!({
        "apiVersion": "new-zoo.example.com/v1alpha1",
        "kind": "NewZoo",
        "metadata": {"name": "first"},
        "spec": {"size": 3},
    });
    created(&client, path, &object).await;
    let controller = packages
        .folder
        .join(PLAIN)
        .join("target/debug/new-zoo-controller");
    let controller = start(&controller, server.kubeconfig());
    let mut watch = client
        .watch(&format!(
            "{path}?watch=true&fieldSelector=metadata.name%3Dfirst"
        ))
        .await;
    let ready = async {
        loop {
            let event = watch.event().await;
            if event["object"]["status"]["ready"] == 3 {
                break;
            }
        }
    };
    timeout(LIMIT, ready).await.unwrap();
    drop(controller);
    server.stop();

    packages.run(Command::new(&apiloom).args(["generate", PLAIN, "--check"]));
    // The next start goes on with the stored objects.
    let server = packages.serve(&apiloom, PLAIN);
    timeout(LIMIT, told(&server, ": 0 crates compiled, "))
        .await
        .expect("all is built");
    let stored = server.client().get(&format!("{path}/first")).await;
    assert_eq!(stored.code, 200, "{}", stored.text());
    assert_eq!(stored.json()["status"]["ready"], 3);
    server.interrupt();
    server.wait();
}
