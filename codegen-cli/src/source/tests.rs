//! Tests of the module tree and of name resolution, on crates written to a temporary folder.

use std::fs;

use super::*;

/// Writes files and loads `lib.rs`.
fn load(files: &[(&str, &str)]) -> (tempfile::TempDir, Crate) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let externs = Externs {
        apiloom: vec!["apiloom".to_owned()],
        others: vec!["other".to_owned()],
    };
    let base = dir.path().to_path_buf();
    let name = |path: &Path| {
        path.strip_prefix(&base)
            .unwrap_or(path)
            .display()
            .to_string()
    };
    let krate = Crate::load(&dir.path().join("lib.rs"), externs, &name);
    (dir, krate)
}

fn check_modules(files: &[(&str, &str)], expected: &[&str]) {
    let (_dir, krate) = load(files);
    assert_eq!(krate.problems, []);
    let paths: Vec<String> = krate
        .modules()
        .map(|(_, module)| module.path.join("::"))
        .collect();
    assert_eq!(paths, expected);
}

fn check_problem(files: &[(&str, &str)], expected: &str) {
    let (_dir, krate) = load(files);
    let text = crate::problem::render(&krate.problems, &krate.files, false);
    assert!(text.contains(expected), "{text}");
}

/// Resolves `path` in the module `x` of a crate, or in the root if there is none.
fn check_resolve(files: &[(&str, &str)], path: &str, expected: Lookup) {
    let (_dir, krate) = load(files);
    assert_eq!(krate.problems, []);
    let module = krate
        .modules()
        .find(|(_, module)| module.path == ["x"])
        .map_or(Crate::ROOT, |(id, _)| id);
    let path: syn::Path = syn::parse_str(path).expect("the test's own path");
    assert_eq!(krate.resolve(module, &path, Namespace::Macro), expected);
}

fn apiloom(name: &str) -> Lookup {
    Lookup::Found(Definition::Apiloom(name.to_owned()))
}

#[test]
fn modules_are_found_in_both_file_layouts() {
    check_modules(
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c;"),
            ("a/c.rs", ""),
            ("b/mod.rs", "mod d;"),
            ("b/d.rs", ""),
        ],
        &["", "a", "a::c", "b", "b::d"],
    );
}

#[test]
fn inline_modules_are_folders() {
    check_modules(
        &[("lib.rs", "mod a { mod b; }"), ("a/b.rs", "")],
        &["", "a", "a::b"],
    );
}

#[test]
fn path_attribute_starts_at_the_file() {
    check_modules(
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "#[path = \"odd.rs\"] mod b;"),
            ("odd.rs", "mod c;"),
            ("c.rs", ""),
        ],
        &["", "a", "a::b", "a::b::c"],
    );
}

#[test]
fn test_modules_are_left_out() {
    check_modules(
        &[(
            "lib.rs",
            "#[cfg(test)] mod tests; #[cfg(not(test))] mod a {}",
        )],
        &["", "a"],
    );
}

#[test]
fn generated_modules_are_never_opened() {
    check_modules(
        &[
            ("lib.rs", "pub mod generated;"),
            ("generated/mod.rs", "broken {"),
        ],
        &[""],
    );
}

#[test]
fn missing_file_is_a_problem() {
    check_problem(&[("lib.rs", "mod a;")], "file not found for module `a`");
}

#[test]
fn syntax_error_is_shown_at_its_line() {
    check_problem(&[("lib.rs", "mod a;"), ("a.rs", "\nstruct {}")], "a.rs:2:8");
}

#[test]
fn include_is_a_problem() {
    check_problem(
        &[("lib.rs", "include!(\"a.rs\");")],
        "cannot look inside `include!`",
    );
}

#[test]
fn full_paths_resolve() {
    check_resolve(&[("lib.rs", "")], "apiloom::resource", apiloom("resource"));
    check_resolve(
        &[("lib.rs", "")],
        "::apiloom::prelude::resource",
        apiloom("resource"),
    );
}

#[test]
fn renames_resolve() {
    check_resolve(
        &[("lib.rs", "use apiloom::{resource as kind, api};")],
        "kind",
        apiloom("resource"),
    );
    check_resolve(
        &[("lib.rs", "extern crate apiloom as loom;")],
        "loom::api",
        apiloom("api"),
    );
    check_resolve(
        &[("lib.rs", "use apiloom as loom;")],
        "loom::api",
        apiloom("api"),
    );
}

#[test]
fn preludes_resolve_through_other_modules() {
    check_resolve(
        &[("lib.rs", "use apiloom::prelude::*; mod x { use super::*; }")],
        "resource",
        apiloom("resource"),
    );
    check_resolve(
        &[(
            "lib.rs",
            "mod p { pub use apiloom::resource as kind; } mod x { use crate::p::kind; }",
        )],
        "kind",
        apiloom("resource"),
    );
}

#[test]
fn outer_imports_do_not_reach_inner_modules() {
    check_resolve(
        &[("lib.rs", "use apiloom::resource; mod x {}")],
        "resource",
        Lookup::Missing,
    );
}

#[test]
fn foreign_names_are_foreign() {
    check_resolve(
        &[("lib.rs", "use other::resource;")],
        "resource",
        Lookup::Found(Definition::Foreign),
    );
    check_resolve(&[("lib.rs", "use other::*;")], "resource", Lookup::Unknown);
    check_resolve(&[("lib.rs", "")], "resource", Lookup::Missing);
}

/// Each glob was searched for the first name of the others, and these in it again.
#[test]
fn globs_of_several_crates_are_searched_once() {
    let root = "use other::*; use apiloom::prelude::*; use apiloom::*; pub struct Local;";
    check_resolve(&[("lib.rs", root)], "Elsewhere", Lookup::Unknown);
    check_resolve(&[("lib.rs", root)], "apiloom::Thing", apiloom("Thing"));
}

#[test]
fn cycles_of_imports_end() {
    check_resolve(
        &[(
            "lib.rs",
            "mod a { pub use crate::b::*; } mod b { pub use crate::a::*; } use a::*;",
        )],
        "q",
        Lookup::Missing,
    );
}

/// Checks the path by which generated code names `Item` of the crate.
#[track_caller]
fn check_public_path(root: &str, expected: Option<&str>) {
    let (_dir, krate) = load(&[("lib.rs", root)]);
    assert_eq!(krate.problems, []);
    let declares =
        |item: &syn::Item| matches!(item, syn::Item::Struct(item) if item.ident == "Item");
    let module = krate
        .modules()
        .find_map(|(id, module)| module.items.iter().any(declares).then_some(id))
        .expect("the crate has the item");
    let found = krate.public_path(module, "Item", Namespace::Type);
    assert_eq!(
        found.map(|path| path.join("::")).as_deref(),
        expected,
        "{root}"
    );
}

#[test]
fn items_of_private_modules_are_found_where_they_are_re_exported() {
    for (root, expected) in [
        (
            "pub mod v { pub struct Item; } pub use v::Item;",
            Some("v::Item"),
        ),
        // Items private to the root are visible in the whole crate.
        ("mod v { pub struct Item; }", Some("v::Item")),
        ("pub mod v { mod x { pub struct Item; } }", None),
        (
            "pub mod v { mod x { pub struct Item; } use x::Item; }",
            None,
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub use x::Item; }",
            Some("v::Item"),
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub use x::Item as r#type; }",
            Some("v::type"),
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub use x::*; }",
            Some("v::Item"),
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub(super) use x::*; }",
            Some("v::Item"),
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub(self) use x::*; }",
            None,
        ),
        (
            "pub mod v { mod x { pub struct Item; } use x::*; pub mod y { pub use super::Item; } }",
            Some("v::y::Item"),
        ),
        (
            "pub mod v { mod x { mod y { pub struct Item; } pub use y::*; } pub use self::x::*; }",
            Some("v::Item"),
        ),
        (
            "pub mod v { mod x { mod y { pub struct Item; } pub use y::Item as A; } pub use x::A as B; }",
            Some("v::B"),
        ),
        (
            "pub mod v { mod x { pub mod y { pub struct Item; } } pub use x::y; }",
            Some("v::y::Item"),
        ),
        (
            "pub mod v { mod x { pub mod y { pub struct Item; } } pub use x::*; }",
            Some("v::y::Item"),
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub use x::*; pub enum Item {} }",
            None,
        ),
        (
            "pub mod v { mod x { pub struct Item; } pub use x::*; } pub use v::*;",
            Some("v::Item"),
        ),
        (
            "pub mod v { mod x { pub struct Item; } } use v::x::Item;",
            Some("Item"),
        ),
        (
            "pub mod v { mod x { pub use super::super::v::*; pub struct Item; } pub use x::*; }",
            Some("v::Item"),
        ),
    ] {
        check_public_path(root, expected);
    }
}
