//! The package of `apiloom new`, outside of this workspace: it is formatted, its test passes, and its controller works
//! against its server.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use apiloom_tests::{Client, Server, build, created, repository};
use serde_json::json;

/// A new package in a folder of its own.
struct Package {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Package {
    /// Runs a command in the package, which must succeed, and returns what it said.
    #[track_caller]
    fn run(&self, command: &mut Command) -> String {
        let output = command
            .current_dir(&self.folder)
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (said, told) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{command:?}: {said}{told}");
        said
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
            .arg(shared.join("apiloom-builds/profiles.toml"));
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
async fn a_new_package_works_at_once() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().canonicalize().unwrap().join("new-zoo");
    let package = Package {
        _root: root,
        folder,
    };
    let apiloom = build("apiloom");
    let written = Command::new(&apiloom)
        .arg("new")
        .arg(&package.folder)
        .output();
    let written = written.unwrap();
    assert!(written.status.success(), "{written:?}");
    package.run(Command::new("cargo").args(["fmt", "--check"]));

    package.run(Command::new(&apiloom).args(["generate", "."]));
    let tested = package.run(&mut package.cargo(&["test", "--offline", "--quiet"]));
    assert!(tested.contains("1 passed; 0 failed"), "{tested}");
    package.run(Command::new(&apiloom).args(["generate", ".", "--check"]));

    let binaries = package.folder.join("target/debug");
    let server = Server::start_binary(&binaries.join("new-zoo-server"), &[]);
    let client = Client::new(server.kubeconfig());
    let path = "/apis/new-zoo.example.com/v1alpha1/namespaces/default/newzoos";
    let object = json!({
        "apiVersion": "new-zoo.example.com/v1alpha1",
        "kind": "NewZoo",
        "metadata": {"name": "first"},
        "spec": {"size": 3},
    });
    created(&client, path, &object).await;
    let _controller = start(&binaries.join("new-zoo-controller"), server.kubeconfig());
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
    tokio::time::timeout(Duration::from_secs(60), ready)
        .await
        .unwrap();
}
