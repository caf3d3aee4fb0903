//! `apiloom import` as a process: its input, its output, and its refusals.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A definition of a kind whose color has a default that the type cannot say.
fn definition(plural: &str, kind: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.com}}\n\
         spec:\n  group: example.com\n  scope: Cluster\n  names: {{plural: {plural}, kind: {kind}}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec: {{type: object, properties: {{size: {{type: integer, format: uint8}}}}}}\n"
    )
}

fn apiloom(folder: &Path, arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_apiloom"))
        .current_dir(folder)
        .arg("import")
        .args(arguments)
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    // A command that refuses its arguments does not read.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(stdin.as_bytes());
    child.wait_with_output().expect("the output")
}

/// Runs, and compares the exit code and stderr.
#[track_caller]
fn refuses(folder: &Path, arguments: &[&str], stdin: &str, told: &str) {
    let output = apiloom(folder, arguments, stdin);
    assert_eq!(String::from_utf8_lossy(&output.stderr), told);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
}

const LOST: &str = "warning: doors.example.com: v1: spec.size: format \"uint8\" is left out\n";

#[test]
fn files_folders_and_standard_input_are_read() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let write = |file: &str, text: &str| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let several = format!(
        "{}---\n# Nothing.\n---\nkind: ConfigMap\napiVersion: v1\n",
        definition("doors", "Door")
    );
    write("crds/below/doors.yaml", &several);
    write("crds/notes.txt", "{{ no YAML }}");
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [
        serde_saphyr::from_str::<serde_json::Value>(&definition("locks", "Lock")).expect("YAML"),
    ]});
    write("locks.json", &list.to_string());
    let arguments = ["house", "crds", "locks.json", "-", "--name", "home"];
    let output = apiloom(root.path(), &arguments, &definition("keys", "Key"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains(LOST), "{told}");
    assert!(
        told.ends_with("note: 1 document is no definition\n"),
        "{told}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "house: 3 kinds, in src\n  generate the rest: apiloom generate house\n  serve it:          apiloom run house\n"
    );
    let read = |file: &str| fs::read_to_string(root.path().join("house").join(file)).expect(file);
    assert!(read("Cargo.toml").contains("name = \"home\""));
    assert!(read("src/v1.rs").contains("pub mod door;\npub mod key;\npub mod lock;"));
    assert!(read("src/v1/door.rs").contains("pub size: Option<i64>,"));
    assert!(read("src/generated/install.rs").contains("registry::lock_v1(builder)"));
    let told = "error: house exists and is not empty\n  help: name another folder; the package is written to a new one\n";
    refuses(root.path(), &["house", "locks.json"], "", told);
}

#[test]
fn a_cluster_is_read_with_kubectl() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let kubectl = root.path().join("kubectl");
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [
        serde_saphyr::from_str::<serde_json::Value>(&definition("doors", "Door")).expect("YAML"),
    ]});
    fs::write(root.path().join("answer"), list.to_string()).expect("a file");
    let script = "#!/bin/sh\necho \"$@\" > arguments\n[ \"$2\" = broken ] && echo 'error: no server' >&2 && exit 1\ncat answer\n";
    fs::write(&kubectl, script).expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&kubectl, mode).expect("a program");
    let base = ["--from-cluster", "--kubectl", "./kubectl", "--kubeconfig"];
    let given = [
        &["house"],
        &base[..],
        &["config", "--crd", "doors.example.com"],
    ]
    .concat();
    let output = apiloom(root.path(), &given, "");
    assert!(output.status.success(), "{output:?}");
    let arguments = fs::read_to_string(root.path().join("arguments")).expect("it was called");
    assert_eq!(
        arguments,
        "--kubeconfig config get customresourcedefinitions.apiextensions.k8s.io --output=json doors.example.com\n"
    );
    assert!(root.path().join("house/src/v1/door.rs").is_file());

    let document = serde_json::json!({ "openapi": "3.0.0", "paths": {}, "components": {} });
    fs::write(root.path().join("answer"), document.to_string()).expect("a file");
    for (version, path) in [("apps/v1", "apis/apps/v1"), ("v1", "api/v1")] {
        let given = [&["other"], &base[..], &["config", "--openapi", version]].concat();
        let told = format!(
            "error: the document of {version}: the document has no kinds\n  help: each version of a group has a document of its own, \
             whose path is in /openapi/v3\n"
        );
        refuses(root.path(), &given, "", &told);
        let arguments = fs::read_to_string(root.path().join("arguments")).expect("it was called");
        assert_eq!(
            arguments,
            format!("--kubeconfig config get --raw /openapi/v3/{path}\n")
        );
    }
    let given = [&["other"], &base[..], &["broken"]].concat();
    let told = "error: ./kubectl could not read the definitions: no server\n";
    refuses(root.path(), &given, "", told);
    let given = ["other", "--from-cluster", "--kubectl", "./none"];
    let output = apiloom(root.path(), &given, "");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("error: cannot start ./none: "), "{told}");
    assert!(
        told.contains("help: install kubectl, or name it with --kubectl"),
        "{told}"
    );
    assert!(!root.path().join("other").exists());
}

#[test]
fn nothing_is_written_of_what_cannot_be_imported() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path();
    refuses(
        folder,
        &["house", "-"],
        "kind: ConfigMap\n",
        "error: there is neither a CustomResourceDefinition nor a document of OpenAPI v3 in what was read\n",
    );
    refuses(
        folder,
        &["house", "-"],
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n",
        "error: standard input: a.b is of apiextensions.k8s.io/v1beta1, which Kubernetes no longer serves\n  \
         help: convert it to apiextensions.k8s.io/v1 first, as `kubectl convert` does\n",
    );
    let twice = [definition("doors", "Door"), definition("doors", "Door")].join("---\n");
    refuses(
        folder,
        &["house", "-"],
        &twice,
        "error: doors.example.com is in standard input, document 1 and in standard input, document 2\n  help: import one of them\n",
    );
    refuses(
        folder,
        &["house", "-", "--strict"],
        &definition("doors", "Door"),
        &format!(
            "{LOST}error: 1 part of the definitions is lost; nothing was written\n  help: leave --strict out to import the rest\n"
        ),
    );
    let output = apiloom(folder, &["house", "none.yaml"], "");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("error: cannot read none.yaml: "), "{told}");
    let output = apiloom(folder, &["house", "-"], "a: [1\n---\n");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("error: standard input: "), "{told}");
    let output = apiloom(folder, &["house"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.join("house").exists());
}

#[test]
fn a_definition_that_fails_is_named_and_leaves_the_others() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path();
    fs::create_dir(folder.join("crds")).expect("a folder");
    let write =
        |file: &str, text: &str| fs::write(folder.join("crds").join(file), text).expect("a file");
    write(
        "a.yaml",
        &definition("doors", "Door").replace("integer, format: uint8", "strng"),
    );
    write(
        "b.yaml",
        &definition("locks", "Lock").replace("Cluster", "Global"),
    );
    write(
        "c.yaml",
        &definition("keys", "Key").replace("name: v1", "name: main"),
    );
    write("d.yaml", "openapi: 3.0.0\npaths: {}\n");
    write(
        "e.yaml",
        &definition("walls", "Wall").replace(", format: uint8", ""),
    );
    let failures = "crds/d.yaml: the document has no kinds\n  \
         help: each version of a group has a document of its own, whose path is in /openapi/v3\n\
         error: crds/b.yaml: locks.example.com: spec.scope is \"Global\", which is neither \"Namespaced\" nor \"Cluster\"\n\
         error: crds/c.yaml: keys.example.com: version \"main\" cannot be the name of a module\n  \
         help: import a copy with another version, such as v1\n\
         error: crds/a.yaml: doors.example.com v1: spec.size: unknown type `strng`\n";
    let strict = format!(
        "error: {failures}error: 4 parts of the definitions are lost; nothing was written\n  help: leave --strict out to import the rest\n"
    );
    refuses(folder, &["house", "crds", "--strict"], "", &strict);
    let output = apiloom(folder, &["house", "crds"], "");
    let told = String::from_utf8_lossy(&output.stderr);
    let end = "error: 4 of 5 inputs failed; the package has the kinds of the others\n";
    assert_eq!(told, format!("error: {failures}{end}"));
    assert_eq!(output.status.code(), Some(1));
    assert!(folder.join("house/src/v1/wall.rs").is_file());
    assert!(!folder.join("house/src/v1/door.rs").exists());
    fs::remove_file(folder.join("crds/e.yaml")).expect("it was written");
    refuses(folder, &["none", "crds"], "", &format!("error: {failures}"));
    assert!(!folder.join("none").exists());
}

#[test]
fn versions_that_a_definition_will_not_serve_are_named() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let one = definition("doors", "Door").replace(", format: uint8", "");
    let version = &one[one.find("  - name: v1").expect("a version")..];
    let other = version
        .replace("v1", "v1beta1")
        .replace("storage: true", "storage: false");
    let output = apiloom(
        root.path(),
        &["house", "-", "--strict"],
        &format!("{one}{other}"),
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(
        told.starts_with("warning: doors.example.com: v1beta1: `served: false` in the definition that is generated: "),
        "{told}"
    );
}
