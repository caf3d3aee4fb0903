//! `apiloom import`: kinds of other projects as packages. The definition that a package's types give is equivalent to the
//! imported one.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apiloom_cli::{definition_differences, imported_kind};
use apiloom_tests::{Kubectl, Server, build, repository};
use serde_json::{Value, json};

/// What the imports of the corpus lose.
const TABLE: &str = "tests/corpus/import.txt";

/// The documents of a file of YAML.
fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let documents = serde_saphyr::from_multiple(&text);
    documents.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The definitions that the packages of this repository have.
fn of_packages() -> Vec<PathBuf> {
    let folders = ["examples/hello", "examples/wardle", "tests/ports"];
    let mut found = Vec::new();
    for folder in folders {
        let folder = repository().join(folder);
        let packages = [vec![folder.clone()], files(&folder)].concat();
        for package in packages {
            let crds = package.join("generated/crds");
            if crds.is_dir() {
                found.extend(files(&crds));
            }
        }
    }
    found
}

#[test]
fn definitions_of_packages_are_imported_without_loss() {
    let files = of_packages();
    assert!(files.len() > 8, "{files:?}");
    for file in files {
        for document in documents(&file) {
            let imported = imported_kind(&document).unwrap_or_else(|error| panic!("{error}"));
            let lost = imported.lost.iter();
            let lost: Vec<_> = lost
                .filter(|line| !line.contains(": conversion of "))
                .collect();
            assert!(lost.is_empty(), "{}: {lost:#?}", file.display());
        }
    }
}

/// What an import loses of each definition that `tests/corpus/fetch` obtains, with the number of definitions.
fn losses() -> (usize, BTreeMap<String, Vec<String>>) {
    let root = repository().join("target/tools/crds");
    let fetched = fs::read_to_string(root.join("packages.txt")).unwrap_or_default();
    let listed = fs::read_to_string(repository().join("tests/corpus/packages.txt")).unwrap();
    assert_eq!(fetched, listed, "{}: run tests/tools", root.display());
    let folders = files(&root).into_iter().filter(|path| path.is_dir());
    let mut losses = BTreeMap::new();
    let mut count = 0;
    for file in folders.flat_map(|folder| files(&folder)) {
        let name = file.strip_prefix(&root).unwrap().with_extension("");
        for document in documents(&file) {
            count += 1;
            let lines = match imported_kind(&document) {
                Ok(imported) => imported.lost,
                Err(error) => vec![format!("error: {error}")],
            };
            if !lines.is_empty() {
                losses.insert(name.display().to_string(), lines);
            }
        }
    }
    (count, losses)
}

#[test]
fn the_corpus_is_imported_with_the_losses_that_the_table_lists() {
    let (count, losses) = losses();
    assert!(count > 140, "run tests/tools: {count}");
    let mut text = String::from(
        "# What `apiloom import` loses of the definitions of the corpus: the file, then a line for each part. UPDATE=1 writes it.\n",
    );
    for (name, lines) in &losses {
        text.push_str(&format!("{name}\n"));
        for line in lines {
            text.push_str(&format!("  {}\n", line.replace('\n', " ")));
        }
    }
    let path = repository().join(TABLE);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        (text.lines().collect(), committed.lines().collect());
    let new: Vec<_> = ours.iter().filter(|line| !theirs.contains(line)).collect();
    let gone: Vec<_> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    assert!(
        text == committed,
        "{TABLE} is not what is lost; new: {new:#?}, no more: {gone:#?}"
    );
}

/// Runs the command in a folder, and returns what it said.
#[track_caller]
fn apiloom(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = Command::new(build("apiloom"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}{told}");
    (said, told)
}

#[test]
fn the_package_of_an_import_gives_equivalent_definitions() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let sources = [
        "tests/tests/import",
        "tests/ports/balancer/generated/crds",
        "target/tools/crds/istio/virtualservices.networking.istio.io.yaml",
    ];
    let sources: Vec<PathBuf> = sources
        .iter()
        .map(|source| repository().join(source))
        .collect();
    let mut arguments = vec!["import", "kinds"];
    arguments.extend(sources.iter().map(|source| source.to_str().unwrap()));
    apiloom(&root, &arguments);
    apiloom(&root, &["generate", "kinds"]);
    apiloom(&root, &["generate", "kinds", "--check"]);

    let mut compared = 0;
    let paths = sources.iter().flat_map(|source| {
        if source.is_dir() {
            files(source)
        } else {
            vec![source.clone()]
        }
    });
    for document in paths.flat_map(|path| documents(&path)) {
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        let written = root.join(format!("kinds/generated/crds/{name}.yaml"));
        let [written] = &documents(&written)[..] else {
            panic!("{name} has one definition");
        };
        let differences = definition_differences(&document, written).unwrap();
        assert!(differences.is_empty(), "{name}: {differences:#?}");
        compared += 1;
    }
    assert!(compared > 4, "{compared}");
    check_rules_are_evaluated(&root.join("kinds/target/debug/kinds-server"));
}

/// The server of an imported package refuses what breaks the rules in CEL of its definition.
fn check_rules_are_evaluated(binary: &Path) {
    let server = Server::start_binary(binary, &["--storage-backend=memory"]);
    let kubectl = Kubectl::new("1.37", server.kubeconfig());
    let widget = |name: &str, plain: i64, from: i64| {
        let spec = json!({"color": "red", "sizes": [1], "parts": [], "seen": null, "labels": {}, "blob": "", "level": 1,
            "plain": plain, "rules": [{"from": from, "to": 5}]});
        let object = json!({"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
        kubectl.run(&["create", "-f", "-"], &object.to_string())
    };
    let refused = widget("none", 100, 6);
    let line = |field: &str, text: &str| format!("* {field}: Invalid value: {text}\n");
    for expected in [
        line("<nil>", "failed rule: self.metadata.name != 'none'"),
        line("spec.settings.mode", "plain is too large"),
        line("spec.rules[0].from", "from is after to"),
    ] {
        assert!(
            refused.stderr.contains(&expected),
            "{expected}: {refused:?}"
        );
    }
    let created = widget("some", 99, 5);
    assert_eq!(
        created.stdout, "widget.shop.example.com/some created\n",
        "{created:?}"
    );
}
