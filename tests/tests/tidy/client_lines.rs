//! How much code is generated for clients: what they do belongs into the runtime.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of the client files for a kind in a version, besides one for each field.
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

/// The lines of client files, by what they are for.
#[derive(Debug, Default, PartialEq)]
struct Lines {
    /// Of a kind in a version, by its Rust type.
    kinds: BTreeMap<String, usize>,
    /// Of the whole package.
    shared: usize,
    /// Of fields of builders.
    fields: usize,
}

impl Lines {
    /// Adds a file. What begins with a line that names a kind is of this kind, up to the next semicolon.
    fn add(&mut self, path: &Path) {
        let mut kind: Option<String> = None;
        for line in code(path) {
            if let Some(named) = kind_of(&line) {
                kind = Some(named.to_owned());
            }
            if line.contains("\": ") {
                self.fields += 1;
            } else if let Some(kind) = &kind {
                *self.kinds.entry(kind.clone()).or_default() += 1;
            } else {
                self.shared += 1;
            }
            if line.ends_with(';') {
                kind = None;
            }
        }
    }
}

/// The Rust type that a line declares something of: ` of crate::v1::Order`, or `crate::v1::Order: i64 = |object| ..`.
fn kind_of(line: &str) -> Option<&str> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
    let rust_type = match line.split_once(" of ") {
        Some((_, rust_type)) => rust_type.split(is_end).next()?,
        None => line.split_once(" = |object| ")?.0.split_once(": ")?.0,
    };
    Some(rust_type.trim_end_matches(':'))
}

// Each kind for itself, with all lines of its package that are of no single kind: as in a package with this kind alone.
#[test]
fn generated_clients_are_small() {
    let (mut all_kinds, mut all_fields) = (0, 0);
    for folder in folders() {
        let mut lines = Lines::default();
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| OTHERS.contains(&name)) {
                lines.add(&path);
            }
        }
        let (folder, shared) = (folder.display(), lines.shared);
        for (kind, own) in &lines.kinds {
            assert!(
                own + shared <= LINES_PER_KIND,
                "{folder}: {own} lines for {kind} and {shared} for its package, besides those of fields"
            );
        }
        (all_kinds, all_fields) = (all_kinds + lines.kinds.len(), all_fields + lines.fields);
    }
    assert!(
        all_kinds >= 10 && all_fields >= 150,
        "{all_kinds} kinds, {all_fields} fields"
    );
}

#[test]
fn lines_of_kinds_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("methods.rs");
    let text = [
        "// A comment",
        "macro! {",
        "    version v1 \"v1\" (V1, V1Informers):",
        "        a \"a\" (namespaced) of crate::A,",
        "        b \"b\" (namespaced) of crate::B;",
        "    version v1 \"v1\":",
        "        kind BMethods \"b\" of crate::B:",
        "            get x -> X,",
        "            list y -> X;",
        "    index Size \"size\":",
        "        crate::A: i32 = |object| object.size,",
        "        crate::B: i32 = |object| object.size;",
        "    kind A(cluster) of crate::A:",
        "        #[cfg(unix)]",
        "        spec \"spec\": text,",
        "        size \"size\": text;",
        "    part C:",
        "        size \"size\": text;",
        "}",
    ];
    fs::write(&path, text.join("\n")).expect("a file");
    let mut lines = Lines::default();
    lines.add(&path);
    let kinds = [("crate::A", 4), ("crate::B", 5)];
    let expected = Lines {
        kinds: kinds.map(|(kind, lines)| (kind.to_owned(), lines)).into(),
        shared: 6,
        fields: 3,
    };
    assert_eq!(lines, expected);
}
