//! Files of one crate that use each other, directly or by way of others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::{Crate, libraries};
use super::uses::{self, Uses};

/// Everything that can be reached from a file or a module.
pub(crate) fn reachable<'a, T: Ord>(
    uses: &'a BTreeMap<T, BTreeSet<T>>,
    from: &T,
) -> BTreeSet<&'a T> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&T> = uses.get(from).into_iter().flatten().collect();
    while let Some(used) = next.pop() {
        if reached.insert(used) {
            next.extend(uses.get(used).into_iter().flatten());
        }
    }
    reached
}

/// The uses that are part of a cycle, one line per file.
fn uses_in_cycles(folder: &Path, files: &BTreeMap<PathBuf, Uses>) -> Vec<String> {
    let name = |file: &Path| {
        file.strip_prefix(folder)
            .unwrap_or(file)
            .display()
            .to_string()
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = files
        .keys()
        .map(|file| (file, reachable(files, file)))
        .collect();
    let leads_back = |file: &PathBuf, used: &PathBuf| reached[used].contains(file);
    let mut lines = Vec::new();
    for (file, uses) in files {
        let used = uses.iter().filter(|used| leads_back(file, used));
        let names: Vec<String> = used.map(|used| name(used)).collect();
        if !names.is_empty() {
            lines.push(format!("{} -> {}", name(file), names.join(", ")));
        }
    }
    lines
}

/// The known cycles. A change that removes some removes their lines from the snapshot; none may be added.
#[test]
fn no_new_cycle_between_files() {
    let mut text = String::new();
    for library in libraries() {
        let folder = &library.source;
        let files = uses::of(&Crate::read(&folder.join("lib.rs")));
        let name = &library.name;
        assert!(
            files.len() == 1 || files.values().any(|uses| !uses.is_empty()),
            "no file of {name} uses another"
        );
        text.push_str(&format!("{name}\n"));
        for line in uses_in_cycles(folder, &files) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    insta::assert_snapshot!(text);
}

/// The uses of a crate of these files, in a folder.
fn uses_of(sources: &[(&str, &str)]) -> (tempfile::TempDir, BTreeMap<PathBuf, Uses>) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in sources {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let files = uses::of(&Crate::read(&folder.path().join("lib.rs")));
    (folder, files)
}

#[test]
fn a_cycle_is_found() {
    let (folder, files) = uses_of(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        (
            "a.rs",
            "use crate::b; pub struct A; impl A { fn f() { b::g() } }",
        ),
        ("b.rs", "pub fn g() { vec![super::A]; crate::c::h(); }"),
        (
            "c.rs",
            "pub fn h() {} #[cfg(test)] mod tests { use crate::A; }",
        ),
    ]);
    let lines = uses_in_cycles(folder.path(), &files);
    assert_eq!(lines, ["a.rs -> b.rs", "b.rs -> a.rs"]);
}

/// A type whose methods stand in several files, which call each other.
#[test]
fn a_cycle_of_methods_is_found() {
    let (folder, files) = uses_of(&[
        (
            "lib.rs",
            "mod a; mod b; mod c; pub struct A; pub trait T { fn t(&self); }",
        ),
        (
            "a.rs",
            "impl crate::A { pub(crate) fn one(&self) { self.two() } fn other(&self) {} }",
        ),
        (
            "b.rs",
            "use crate::A; impl A { pub(crate) fn two(&self) { Self::one(self) } }",
        ),
        (
            "c.rs",
            "struct C; impl C { fn other(&self) { self.one() } } impl crate::T for crate::A { fn t(&self) { self.one() } }",
        ),
    ]);
    let lines = uses_in_cycles(folder.path(), &files);
    assert_eq!(lines, ["a.rs -> b.rs", "b.rs -> a.rs"]);
    let [a, c] = ["a.rs", "c.rs"].map(|name| folder.path().join(name));
    assert!(files[&c].contains(&a));
}
