//! `apiloom new` as a process: what it writes, and what it refuses.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn apiloom(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apiloom"))
        .current_dir(folder)
        .arg("new")
        .args(arguments)
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .output()
        .expect("the command")
}

/// Runs, and compares the exit code and stderr.
#[track_caller]
fn refuses(folder: &Path, arguments: &[&str], code: i32, told: &str) {
    let output = apiloom(folder, arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.starts_with(told), "{text}");
    assert_eq!(output.stdout, b"");
}

#[test]
fn a_package_is_written() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let output = apiloom(root.path(), &["zoo-keeper"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "zoo-keeper: kind ZooKeeper of zoo-keeper.example.com/v1alpha1, in src/v1alpha1.rs\n  \
         serve it:    apiloom run zoo-keeper\n  \
         test it:     cd zoo-keeper && cargo test\n"
    );
    let read = |file: &str| fs::read_to_string(root.path().join("zoo-keeper").join(file));
    let manifest = read("Cargo.toml").expect("a manifest");
    // Found by itself: the clone that the command was built from.
    assert!(manifest.contains("runtime\", features = "), "{manifest}");
    assert!(!manifest.contains("[workspace]"), "{manifest}");
    assert!(!manifest.contains("kube"), "{manifest}");
    assert!(read("tests/kube.rs").is_err());
    for file in [
        ".gitignore",
        "Cargo.lock",
        "README.md",
        "generated/main.rs",
        "src/generated/clientset.rs",
        "src/generated/fake.rs",
        "src/generated/install.rs",
        "src/controller.rs",
        "src/main.rs",
        "tests/controller.rs",
    ] {
        assert!(read(file).is_ok_and(|text| !text.contains("{{")), "{file}");
    }
    // Nothing is overwritten.
    let told = "error: zoo-keeper exists and is not empty\n  help: name another folder";
    refuses(root.path(), &["zoo-keeper"], 1, told);
}

#[test]
fn types_for_kube_rs_are_added() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let output = apiloom(root.path(), &["zoo", "--kube"]);
    assert!(output.status.success(), "{output:?}");
    let read = |file: &str| fs::read_to_string(root.path().join("zoo").join(file)).expect(file);
    assert!(read("Cargo.toml").contains("kube = [\"dep:kube\"]"));
    assert!(read("src/generated/kube.rs").contains("kube_view!"));
    assert!(read("tests/kube.rs").contains("use zoo::generated::kube::zoo_v1alpha1::Zoo;"));
    assert!(read("README.md").contains("| `tests/kube.rs` |"));
    let told = "error: `kube` cannot be the name of a package: it is the name of another crate";
    refuses(root.path(), &["kube", "--kube"], 1, told);
}

/// The dependencies of a package's programs or tests, with their features.
fn dependencies(package: &Path, edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(package)
        .args(["tree", "--offline", "--prefix=none", "--edges", edges])
        .arg("--format={p} {f}")
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.map(str::to_owned).collect()
}

// With other features of a dependency, cargo would build the server again for the tests.
#[test]
fn programs_and_tests_of_a_package_share_the_build_of_the_server() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let output = apiloom(root.path(), &["zoo"]);
    assert!(output.status.success(), "{output:?}");
    let package = root.path().join("zoo");
    let programs = dependencies(&package, "normal,no-proc-macro");
    let tests = dependencies(&package, "normal,dev,no-proc-macro");
    let of_tests: Vec<&str> = tests
        .difference(&programs)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(of_tests, ["apiloom", "apiloom-testing", "zoo"]);
}

// Clients have methods for groups and plurals, which may not be identifiers.
#[test]
fn groups_and_kinds_may_have_names_that_are_no_identifiers() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let names = ["--group", "3d-print.example.com", "--kind", "U"];
    let output = apiloom(root.path(), &[&["zoo"], &names[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let read = |file: &str| fs::read_to_string(root.path().join("zoo").join(file)).expect(file);
    let clients = read("src/generated/clientset.rs");
    for (method, call) in [
        (
            "version group_3d_print_v1alpha1 ",
            ".group_3d_print_v1alpha1()",
        ),
        (" us \"us\" ", ".us()"),
    ] {
        assert!(clients.contains(method), "{clients}");
        assert!(read("src/controller.rs").contains(call));
    }
}

#[test]
fn names_are_given_apart() {
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(root.path().join("My Folder")).expect("an empty folder");
    let names = ["--name", "zoo", "--group", "a.b", "--kind", "Animal"];
    let arguments = [&["My Folder"], &names[..]].concat();
    let output = apiloom(root.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let types = root.path().join("My Folder/src/v1alpha1.rs");
    let types = fs::read_to_string(types).expect("the types");
    assert!(types.contains("group = \"a.b\"") && types.contains("pub struct Animal {"));
}

#[test]
fn a_package_in_a_workspace_is_its_own() {
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::write(root.path().join("Cargo.toml"), "[workspace]\n").expect("a workspace");
    let output = apiloom(root.path(), &["tools/zoo"]);
    assert!(output.status.success(), "{output:?}");
    let manifest = root.path().join("tools/zoo/Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("a manifest");
    assert!(manifest.ends_with("\n[workspace]\n"), "{manifest}");
}

#[test]
fn what_cannot_be_is_told_before_anything_is_written() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path();
    fs::write(folder.join("file"), "text").expect("a file");
    refuses(folder, &["file"], 1, "error: file is, or is in, a file");
    refuses(
        folder,
        &["file/zoo"],
        1,
        "error: file/zoo is, or is in, a file",
    );
    refuses(
        folder,
        &["My_Zoo"],
        1,
        "error: `My_Zoo` cannot be the name of a package",
    );
    refuses(
        folder,
        &["async"],
        1,
        "error: `async` cannot be the name of a package: it is a keyword",
    );
    refuses(
        folder,
        &["option"],
        1,
        "error: `Option` cannot be the name of the kind",
    );
    refuses(
        folder,
        &["zoo", "--kind", "a"],
        1,
        "error: `a` cannot be the name of a kind",
    );
    refuses(
        folder,
        &["zoo", "--group", "zoo"],
        1,
        "error: `zoo` cannot be the name of an API group",
    );
    refuses(
        folder,
        &["zoo", "--apiloom-path", "."],
        1,
        "error: no apiloom in .\n  help: --apiloom-path",
    );
    refuses(
        folder,
        &[],
        2,
        "error: the following required arguments were not provided",
    );
    let left: Vec<_> = fs::read_dir(folder).expect("the folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
