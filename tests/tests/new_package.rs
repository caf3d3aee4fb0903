//! The packages of `apiloom new`, outside of this workspace: they are formatted, their tests pass, `apiloom run` serves one,
//! and its controller works against that. The clients of one, as a package of their own, work in a program.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use apiloom_tests::{Client, Server, build, created, repository};
use serde_json::json;
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

/// A workspace with all of them, so that one build has all dependencies.
struct Workspace {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Workspace {
    fn new(apiloom: &Path) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().canonicalize().unwrap();
        let workspace = Self {
            _root: root,
            folder,
        };
        let new = |arguments: &[&str]| {
            let mut command = Command::new(apiloom);
            workspace.run(command.arg("new").args(arguments));
        };
        new(&[PLAIN]);
        new(&[WITH_KUBE, "--kube"]);
        workspace.copy_fixtures();
        for (package, clients) in [(WITH_KUBE, CLIENTS), (KEYWORDS, KEYWORD_CLIENTS)] {
            let mut generate = Command::new(apiloom);
            generate.args(["generate", "--fast", package, "--client-crate", clients]);
            workspace.run(&mut generate);
        }
        let members = [PLAIN, WITH_KUBE, CLIENTS, KEYWORDS, KEYWORD_CLIENTS, USER];
        let members = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
        std::fs::write(workspace.folder.join("Cargo.toml"), members).unwrap();
        workspace
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

    /// Runs a command in the workspace, which must succeed, and returns what it said.
    #[track_caller]
    fn run(&self, command: &mut Command) -> String {
        let output = self.inside(command).stdin(Stdio::null()).output().unwrap();
        let (said, told) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{command:?}: {said}{told}");
        said
    }

    /// A command in the folder of the workspace.
    fn inside<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(&self.folder)
            .env_remove("CARGO_TARGET_DIR")
    }

    /// Serves a package as its README says, in the folder that is used without a flag.
    fn serve(&self, apiloom: &Path, package: &str) -> Server {
        let mut command = Command::new(apiloom);
        self.inside(&mut command).args(["run", package, "--"]);
        Server::start_by(command, &self.folder.join("target/apiloom").join(package))
    }

    /// A command of cargo that builds as `apiloom run` does: with the dependencies of this workspace.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let shared = repository().join("target");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(arguments)
            .arg("--config")
            .arg(format!("build.build-dir={shared:?}"))
            .arg("--config")
            .arg(shared.join("apiloom-builds/profiles.toml"))
            .arg("--config")
            .arg(repository().join(".cargo/config.toml"));
        command
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn new_packages_work_at_once() {
    let apiloom = build("apiloom");
    let packages = Workspace::new(&apiloom);
    let formatted = ["fmt", "--check", "--package", PLAIN, "--package", WITH_KUBE];
    packages.run(Command::new("cargo").args(formatted));

    packages.run(Command::new(&apiloom).args(["generate", PLAIN]));
    // Its clients, informers and fake, and the types for kube-rs: the server of the other one would be the same.
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
    assert_eq!(passed, 3, "{tested}");
    assert!(tested.contains("4 passed; 0 failed"), "{tested}");
    packages.run(Command::new(&apiloom).args(["generate", PLAIN, "--check"]));

    let server = packages.serve(&apiloom, PLAIN);
    let ready = "new-zoo-server ready at https://127.0.0.1:";
    assert!(
        server.ready_line.starts_with(ready),
        "{}",
        server.ready_line
    );
    let kubeconfig = server.data_dir().join("admin.kubeconfig");
    assert_eq!(server.kubeconfig(), kubeconfig);
    // What it says before it is ready; the log is read by a thread.
    let built = async {
        while !server.log().contains("starting new-zoo-server") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, built).await.expect("it tells its steps");
    let log = server.log();
    assert!(log.contains(": 0 crates compiled, "), "{log}");
    let client = Client::new(server.kubeconfig());
    let path = "/apis/new-zoo.example.com/v1alpha1/namespaces/default/newzoos";
    let object = json!({
        "apiVersion": "new-zoo.example.com/v1alpha1",
        "kind": "NewZoo",
        "metadata": {"name": "first"},
        "spec": {"size": 3},
    });
    created(&client, path, &object).await;
    let controller = packages.folder.join("target/debug/new-zoo-controller");
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

    // The next start goes on with the stored objects.
    let server = packages.serve(&apiloom, PLAIN);
    let stored = server.client().get(&format!("{path}/first")).await;
    assert_eq!(stored.code, 200, "{}", stored.text());
    assert_eq!(stored.json()["status"]["ready"], 3);
    server.interrupt();
    server.wait();
}
