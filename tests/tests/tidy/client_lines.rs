//! How much code is generated for clients: what they do belongs into the runtime.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of all client files for each kind in each version; one more is allowed for each field.
const LINES_PER_KIND: usize = 60;

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

#[test]
fn generated_clients_are_small() {
    let (mut lines, mut kinds, mut fields) = (0, 0, 0);
    for folder in folders() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| OTHERS.contains(&name)) {
                lines += code(&path).len();
            }
        }
        // Kinds without the verb patch have no builder.
        for line in code(&folder.join("clientset.rs")) {
            let scopes = ["::client::Namespaced>", "::client::Cluster>"];
            kinds += usize::from(scopes.iter().any(|scope| line.contains(scope)));
        }
        for line in code(&folder.join("apply.rs")) {
            fields += usize::from(line.contains("\": "));
        }
    }
    assert!(
        kinds >= 10 && fields >= 150,
        "{kinds} kinds, {fields} fields"
    );
    let allowed = kinds * LINES_PER_KIND + fields;
    assert!(
        lines <= allowed,
        "{lines} lines for {kinds} kinds with {fields} fields, {allowed} are allowed"
    );
}
