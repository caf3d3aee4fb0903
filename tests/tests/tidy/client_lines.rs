//! How much code is generated for clients: what they do belongs into the runtime.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of all client files for each kind in each version; one more is allowed for each field.
const LINES_PER_KIND: usize = 60;

/// Lines for a method that a kind declares itself: its signature names the user's types, and its body is a call of the runtime.
const LINES_PER_METHOD: usize = 7;

/// The generated files of servers, and of the clients of another library.
const OTHERS: [&str; 4] = ["install.rs", "kube.rs", "mod.rs", "registry.rs"];

/// The folders of generated code that have clients.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let folders = ["examples", "tests/ports", "tests/fixtures/generator"];
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        if folder.join("apply.rs").exists() {
            found.push(folder.clone());
        }
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            }
        }
    }
    found
}

/// The lines of a file that are neither empty nor comments.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a file");
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.map(str::to_owned).collect()
}

/// How many lines of a file have one of these texts.
fn count(path: &Path, texts: &[&str]) -> usize {
    let lines = code(path).into_iter();
    let has_text = |line: &String| texts.iter().any(|text| line.contains(text));
    lines.filter(has_text).count()
}

// Each package for itself, also one with a single kind.
#[test]
fn generated_clients_are_small() {
    let (mut all_kinds, mut all_fields) = (0, 0);
    for folder in folders() {
        let (mut lines, mut methods) = (0, 0);
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| OTHERS.contains(&name)) {
                lines += code(&path).len();
            }
            if name == Some("methods.rs") {
                methods = count(&path, &["fn "]);
            }
        }
        // Kinds without the verb patch have no builder.
        let kinds = count(&folder.join("clientset.rs"), &["(namespaced", "(cluster"]);
        let fields = count(&folder.join("apply.rs"), &["\": "]);
        let allowed = kinds * LINES_PER_KIND + fields + methods * LINES_PER_METHOD;
        let folder = folder.display();
        assert!(
            lines <= allowed,
            "{folder}: {lines} lines for {kinds} kinds with {fields} fields and {methods} methods, {allowed} are allowed"
        );
        (all_kinds, all_fields) = (all_kinds + kinds, all_fields + fields);
    }
    assert!(
        all_kinds >= 10 && all_fields >= 150,
        "{all_kinds} kinds, {all_fields} fields"
    );
}
