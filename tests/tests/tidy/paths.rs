//! The paths of source files that documents and comments name, and the length of the first documents.

use super::modules::{libraries, workspace};
use super::words::{comment, files, is_rust};

/// Paths that stand for those of a package.
const EXAMPLES: [&str; 3] = ["children/x.rs", "children/x/mod.rs", "src/v2.rs"];

/// The paths between backticks in a line.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
        text.len() > 3 && text.ends_with(".rs") && text.bytes().all(is_path)
    })
}

/// A path as it may be named: without the folders `src`, of which each crate has one.
fn named(path: &str) -> String {
    format!("/{path}").replace("/src/", "/")
}

#[test]
fn paths_in_documents_exist() {
    let files = files(workspace());
    let known = files.iter().filter_map(|(path, _)| path.to_str());
    let known: Vec<String> = known.map(named).collect();
    let mut checked = 0;
    let mut problems = Vec::new();
    for (path, text) in &files {
        // A history names files that are gone.
        if path.starts_with("benches/history") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let line = if is_rust(path) {
                comment(line)
            } else {
                Some(line)
            };
            for wanted in line.into_iter().flat_map(paths) {
                checked += 1;
                let end = named(wanted);
                let exists = known.iter().any(|known| known.ends_with(&end));
                // Generated files are those of a package.
                let is_of_package = wanted.contains("generated/") || EXAMPLES.contains(&wanted);
                if !exists && !is_of_package {
                    problems.push(format!(
                        "{}:{}: no file {wanted}",
                        path.display(),
                        index + 1
                    ));
                }
            }
        }
    }
    assert!(checked > 100, "{checked} paths are found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_first_documents_are_short() {
    const MAX_README_LINES: usize = 150;
    const MAX_ARCHITECTURE_BYTES: usize = 12 * 1024;
    let read = |name| std::fs::read_to_string(workspace().join(name)).unwrap();
    let lines = read("README.md").lines().count();
    assert!(
        lines <= MAX_README_LINES,
        "README.md has {lines} lines, more than {MAX_README_LINES}: what is long is a page of the guide"
    );
    let bytes = read("ARCHITECTURE.md").len();
    assert!(
        bytes <= MAX_ARCHITECTURE_BYTES,
        "ARCHITECTURE.md has {bytes} bytes, more than {MAX_ARCHITECTURE_BYTES}: how a part works stands at the head of its folder"
    );
}

#[test]
fn each_published_crate_has_a_readme() {
    let mut folders: Vec<_> = libraries()
        .into_iter()
        .map(|library| library.source.parent().unwrap().to_owned())
        .collect();
    folders.push(workspace().join("serve"));
    for folder in folders {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = "));
        let readme = std::fs::read_to_string(folder.join("README.md"));
        let title =
            readme.unwrap_or_else(|error| panic!("{}/README.md: {error}", folder.display()));
        let wanted = format!("# {}\n", name.unwrap().trim_matches('"'));
        assert!(title.starts_with(&wanted), "{}: {wanted}", folder.display());
    }
}
