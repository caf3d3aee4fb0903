//! Counts the code that wardle's author has to write.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use apiloom_tests::{Kubectl, Server, build, repository};

/// Lines of hand-written code of a file, without blank lines and comments. Formatting is checked by `cargo fmt
/// --check`.
fn code_lines(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

fn hand_written(package: &str) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(repository().join("examples").join(package).join("src"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .collect();
    files.sort();
    files
}

#[test]
fn wardle_is_at_most_120_lines_of_hand_written_code() {
    let files = hand_written("wardle");
    let lines: usize = files.iter().map(|file| code_lines(file)).sum();
    assert!(files.len() >= 3 && lines > 50, "something was counted");
    assert!(lines <= 120, "{lines} lines");
}

#[test]
fn hello_is_under_60_lines() {
    let lines: usize = hand_written("hello")
        .iter()
        .map(|file| code_lines(file))
        .sum();
    assert!(lines > 10 && lines < 60, "{lines} lines");
}

#[test]
fn generated_code_names_no_field_of_wardle() {
    // But for builders, which have a method for each field.
    let generated = repository().join("examples/wardle/src/generated");
    for entry in std::fs::read_dir(generated).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("apply.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for field in ["reference", "disallowed", "spec", "status"] {
            assert!(!text.contains(field), "{} names {field}", path.display());
        }
    }
}

/// One more kind with one field.
const CASTLE: &str = r#"
/// Castle is where Flunders live.
#[apiloom::resource(group = "wardle.example.com", version = "v1alpha1", namespaced, storage)]
pub struct Castle {
    pub metadata: ObjectMeta,
    /// How many towers it has.
    #[api(min = 1)]
    pub towers: i32,
}
"#;

#[test]
fn one_more_kind_is_at_most_15_lines_in_one_file() {
    let lines = CASTLE
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
        .count();
    assert!(lines <= 15, "{lines} lines");

    // A copy of the package outside, which is built in this workspace's folder: its dependencies are there already.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("castles");
    std::fs::create_dir_all(copy.join("src")).unwrap();
    for file in hand_written("wardle") {
        std::fs::copy(&file, copy.join("src").join(file.file_name().unwrap())).unwrap();
    }
    let runtime = repository().join("runtime");
    let manifest = format!(
        "[package]\nname = \"castles\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [[bin]]\nname = \"castles-server\"\npath = \"generated/main.rs\"\n\n\
         [dependencies]\napiloom = {{ path = {runtime:?} }}\n"
    );
    std::fs::write(copy.join("Cargo.toml"), manifest).unwrap();
    let file = copy.join("src/v1alpha1.rs");
    let source = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, source + CASTLE).unwrap();

    let output = Command::new(build("apiloom"))
        .args(["generate", "castles"])
        .current_dir(dir.path())
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");

    let server = Server::start_binary(
        &copy.join("target/apiloom-builds/debug/castles-server"),
        &[],
    );
    let kubectl = Kubectl::new("1.36", server.kubeconfig());
    let castle = "apiVersion: wardle.example.com/v1alpha1\nkind: Castle\nmetadata: {name: home}\nspec: {}\ntowers: 3\n";
    let output = kubectl.run(&["create", "--validate=ignore", "-f", "-"], castle);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "castle.wardle.example.com/home created\n"),
        "{}",
        output.stderr
    );
    let output = kubectl.run(&["get", "castles", "-o", "jsonpath={.items[*].towers}"], "");
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "3"),
        "{}",
        output.stderr
    );
    let output = kubectl.run(
        &["create", "-f", "-"],
        &castle.replace("3", "0").replace("spec: {}\n", ""),
    );
    assert_eq!(output.code, 1, "a declared bound rejects");
}
