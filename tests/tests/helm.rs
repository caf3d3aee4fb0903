//! Real helm against wardle-server, which has the built-in kinds: helm keeps releases in Secrets.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::process::Command;

use apiloom_tests::{Kubectl, Server, repository};
use serde_json::Value;

/// Timeout of a run, in seconds.
const PATIENCE: &str = "60";

struct Helm {
    server: Server,
    home: tempfile::TempDir,
}

impl Helm {
    fn start() -> Self {
        Self {
            server: Server::start(&[]),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// Exit code, standard output and standard error of one run in the folder of the chart.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let binary = repository().join("target/tools/helm/helm");
        assert!(binary.exists(), "{}: run tests/tools", binary.display());
        let output = Command::new("timeout")
            .arg(PATIENCE)
            .arg(binary)
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.server.kubeconfig())
            .current_dir(repository().join("tests/helm"))
            .output()
            .unwrap();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// The output of a run that succeeds, without warnings.
    fn ok(&self, args: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(args);
        assert_eq!((code, &*stderr), (0, ""), "{args:?}: {stdout}");
        stdout
    }

    /// The standard error of a run that fails.
    fn error(&self, args: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(args);
        assert_eq!(code, 1, "{args:?}: {stdout}{stderr}");
        stderr
    }

    /// Name and status of all releases of the namespace `default`.
    fn releases(&self) -> Vec<String> {
        let list: Value =
            serde_json::from_str(&self.ok(&["list", "--all", "--output", "json"])).unwrap();
        let text = |release: &Value, key: &str| release[key].as_str().unwrap().to_owned();
        let releases = list.as_array().unwrap().iter();
        releases
            .map(|release| format!("{} {}", text(release, "name"), text(release, "status")))
            .collect()
    }

    /// The status and description of each revision of a release.
    fn history(&self, release: &str) -> Vec<String> {
        let text = self.ok(&["history", release, "--output", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap();
        let revisions = list.as_array().unwrap().iter();
        revisions
            .map(|revision| {
                let status = revision["status"].as_str().unwrap();
                format!("{status}: {}", revision["description"].as_str().unwrap())
            })
            .collect()
    }

    /// Names of all objects of the kinds in the chart, in a namespace.
    fn objects(&self, namespace: &str) -> Vec<String> {
        let kinds = "configmaps,flunders,secrets,serviceaccounts";
        let text = self.kubectl(&["get", kinds, "--namespace", namespace, "--output", "name"]);
        text.lines().map(str::to_owned).collect()
    }

    /// The data of the ConfigMap, and the label of the flunder.
    fn colors(&self, release: &str) -> (String, String) {
        let water = format!("{release}-water");
        let flunder = format!("{release}-flunder");
        let label = "jsonpath={.metadata.labels.color}";
        (
            self.kubectl(&["get", "configmap", &water, "-o", "jsonpath={.data.color}"]),
            self.kubectl(&["get", "flunder", &flunder, "-o", label]),
        )
    }

    fn kubectl(&self, args: &[&str]) -> String {
        let output = Kubectl::new("1.36", self.server.kubeconfig()).run(args, "");
        assert_eq!(output.code, 0, "{args:?}: {}", output.stderr);
        output.stdout
    }
}

fn both(color: &str) -> (String, String) {
    (color.to_owned(), color.to_owned())
}

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    let helm = Helm::start();
    let notes = helm.ok(&["install", "demo", "aquarium"]);
    assert!(notes.contains("The water of demo is blue."), "{notes}");
    assert_eq!(helm.releases(), ["demo deployed"]);
    assert_eq!(helm.colors("demo"), both("blue"));

    helm.ok(&[
        "upgrade",
        "demo",
        "aquarium",
        "--set",
        "color=green,keeper=true",
    ]);
    assert_eq!(helm.colors("demo"), both("green"));
    let expected = [
        "configmap/demo-water",
        "flunder.wardle.example.com/demo-flunder",
        "secret/demo-key",
        "secret/sh.helm.release.v1.demo.v1",
        "secret/sh.helm.release.v1.demo.v2",
        "serviceaccount/demo-keeper",
    ];
    assert_eq!(helm.objects("default"), expected);

    helm.ok(&["rollback", "demo", "1", "--wait"]);
    assert_eq!(helm.colors("demo"), both("blue"));
    assert!(
        !helm
            .objects("default")
            .contains(&"serviceaccount/demo-keeper".to_owned())
    );
    let expected = [
        "superseded: Install complete",
        "superseded: Upgrade complete",
        "deployed: Rollback to 1",
    ];
    assert_eq!(helm.history("demo"), expected);

    let used = helm.error(&["install", "demo", "aquarium"]);
    assert!(
        used.contains("cannot re-use a name that is still in use"),
        "{used}"
    );
    helm.ok(&["uninstall", "demo", "--wait"]);
    assert!(helm.releases().is_empty());
    assert!(helm.objects("default").is_empty());
}

#[test]
fn what_others_changed_is_kept_by_an_upgrade() {
    let helm = Helm::start();
    helm.ok(&["install", "demo", "aquarium"]);
    helm.kubectl(&[
        "label",
        "configmap/demo-water",
        "flunder/demo-flunder",
        "by=hand",
    ]);
    helm.kubectl(&[
        "patch",
        "configmap/demo-water",
        "--patch",
        r#"{"data": {"depth": "3"}}"#,
    ]);
    helm.ok(&["upgrade", "demo", "aquarium", "--set", "color=green"]);
    assert_eq!(helm.colors("demo"), both("green"));
    let label = "jsonpath={.items[*].metadata.labels.by}";
    let labels = helm.kubectl(&["get", "flunders,configmaps", "--output", label]);
    assert_eq!(labels, "hand hand");
    let depth = "jsonpath={.data.depth}";
    assert_eq!(
        helm.kubectl(&["get", "configmap/demo-water", "--output", depth]),
        "3"
    );
}

#[test]
fn an_upgrade_that_is_refused_is_rolled_back() {
    let helm = Helm::start();
    helm.ok(&["install", "demo", "aquarium"]);
    // No value of a label.
    let refused = helm.error(&[
        "upgrade",
        "demo",
        "aquarium",
        "--set",
        "color=sky blue!",
        "--atomic",
    ]);
    assert!(refused.contains("a valid label must be"), "{refused}");
    assert_eq!(helm.colors("demo"), both("blue"));
    assert_eq!(helm.releases(), ["demo deployed"]);
    let history = helm.history("demo");
    assert_eq!(history[2], "deployed: Rollback to 1", "{history:?}");
    assert!(history[1].starts_with("failed: "), "{history:?}");
}

#[test]
fn a_dry_run_writes_nothing_and_a_namespace_is_made() {
    let helm = Helm::start();
    let shown = helm.ok(&["install", "demo", "aquarium", "--dry-run=server"]);
    assert!(shown.contains("name: demo-water"), "{shown}");
    assert!(helm.objects("default").is_empty());

    helm.ok(&[
        "upgrade",
        "--install",
        "demo",
        "aquarium",
        "--namespace",
        "pond",
        "--create-namespace",
    ]);
    assert!(helm.objects("default").is_empty());
    assert!(
        helm.objects("pond")
            .contains(&"configmap/demo-water".to_owned())
    );
    helm.ok(&["uninstall", "demo", "--namespace", "pond", "--keep-history"]);
    assert_eq!(helm.objects("pond"), ["secret/sh.helm.release.v1.demo.v1"]);
}

#[test]
fn a_chart_brings_a_definition_and_objects_of_it() {
    let helm = Helm::start();
    helm.ok(&["install", "demo", "reef"]);
    let spec = "jsonpath={.spec}";
    let coral = |helm: &Helm| helm.kubectl(&["get", "coral/demo", "--output", spec]);
    assert_eq!(coral(&helm), r#"{"color":"red","depth":3}"#);
    helm.kubectl(&[
        "patch",
        "coral/demo",
        "--type=merge",
        "--patch",
        r#"{"spec": {"color": "blue"}}"#,
    ]);
    helm.ok(&["upgrade", "demo", "reef", "--set", "depth=4"]);
    assert_eq!(coral(&helm), r#"{"color":"blue","depth":4}"#);
    let refused = helm.error(&["upgrade", "demo", "reef", "--set", "depth=0"]);
    assert!(
        refused.contains("spec.depth in body should be greater than or equal to 1"),
        "{refused}"
    );
    helm.ok(&["rollback", "demo", "1"]);
    assert_eq!(coral(&helm), r#"{"color":"blue","depth":3}"#);
    helm.ok(&["uninstall", "demo"]);
    assert_eq!(helm.kubectl(&["get", "corals", "--output", "name"]), "");
    // Helm never deletes definitions.
    let definitions = helm.kubectl(&["get", "customresourcedefinitions", "--output", "name"]);
    assert_eq!(
        definitions,
        "customresourcedefinition.apiextensions.k8s.io/corals.reef.example.com\n"
    );
}
