//! What the packages of the graph allow: their licences, the registry that they come from, and the Rust that they need.
//! `deny.toml` says it, in the form of `cargo deny`, which no registry of this project's tools has.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use spdx::{Expression, ParseMode};
use toml::{Table, Value};

use super::modules::workspace;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A banned package that features of tests bring into this graph, which has no other features. `tests/all` looks for it in that of programs.
const BY_TESTS: &str = "ring";

/// The packages for this system: those of others are not downloaded.
fn metadata() -> Metadata {
    let version = Command::new("rustc").arg("-vV").output().expect("rustc");
    let version = String::from_utf8(version.stdout).expect("a text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let platform = format!("--filter-platform={}", host.expect("a host"));
    MetadataCommand::new()
        .manifest_path(workspace().join("Cargo.toml"))
        .other_options(["--locked".to_owned(), "--offline".to_owned(), platform])
        .exec()
        .expect("metadata of the workspace")
}

/// The texts of an array of `deny.toml`, or those of a field of its tables.
fn texts(table: &Table, section: &str, key: &str, field: &str) -> Vec<String> {
    let values = table[section][key].as_array().expect("an array");
    let text = |value: &Value| {
        let text = value.get(field).unwrap_or(value);
        text.as_str().expect("a text").to_owned()
    };
    values.iter().map(text).collect()
}

fn is_allowed(license: &str, allowed: &[String]) -> bool {
    // Some packages write `MIT/Apache-2.0`.
    let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else {
        return false;
    };
    expression.evaluate(|requirement| {
        let license = requirement.to_string();
        // Or a later version of it.
        allowed
            .iter()
            .any(|allowed| *allowed == license.trim_end_matches('+'))
    })
}

/// The packages that some packages depend on, directly or by way of others, and these.
fn graph(metadata: &Metadata, with_tests: bool) -> BTreeSet<&PackageId> {
    let nodes = &metadata.resolve.as_ref().expect("a graph").nodes;
    let nodes: BTreeMap<&PackageId, _> = nodes.iter().map(|node| (&node.id, node)).collect();
    let mut found = BTreeSet::new();
    let mut next: Vec<&PackageId> = metadata.workspace_members.iter().collect();
    while let Some(id) = next.pop() {
        if found.insert(id) {
            let used = nodes[id].deps.iter().filter(|dependency| {
                let mut kinds = dependency.dep_kinds.iter();
                kinds.any(|of| with_tests || of.kind != DependencyKind::Development)
            });
            next.extend(used.map(|dependency| &dependency.pkg));
        }
    }
    found
}

fn problems(package: &Package, allowed: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    match &package.license {
        Some(license) if is_allowed(license, allowed) => {}
        license => problems.push(format!("its licence is {license:?}")),
    }
    if package
        .source
        .as_ref()
        .is_some_and(|source| source.repr != REGISTRY)
    {
        problems.push(format!("it comes from {:?}", package.source));
    }
    problems
}

#[test]
fn packages_are_those_that_are_allowed() {
    let deny = std::fs::read_to_string(workspace().join("deny.toml")).expect("a file");
    let deny: Table = deny.parse().expect("TOML");
    let allowed = texts(&deny, "licenses", "allow", "allow");
    let banned = texts(&deny, "bans", "deny", "crate");
    let metadata = metadata();
    let rust = metadata.workspace_packages()[0].rust_version.clone();
    let rust = rust.expect("a version of Rust");
    let (all, of_programs) = (graph(&metadata, true), graph(&metadata, false));
    assert!(of_programs.len() > 150, "packages are missing");
    let mut found = Vec::new();
    for package in metadata
        .packages
        .iter()
        .filter(|package| all.contains(&package.id))
    {
        let is_own = package.source.is_none();
        let mut problems = if is_own {
            Vec::new()
        } else {
            problems(package, &allowed)
        };
        let is_banned = banned.iter().any(|banned| *banned == *package.name);
        if is_banned && *package.name != BY_TESTS && of_programs.contains(&package.id) {
            problems.push("it is banned".to_owned());
        }
        if let Some(needed) = package
            .rust_version
            .as_ref()
            .filter(|needed| **needed > rust)
        {
            problems.push(format!("it needs Rust {needed}, and {rust} is declared"));
        }
        let (name, version) = (&package.name, &package.version);
        found.extend(
            problems
                .iter()
                .map(|problem| format!("{name} {version}: {problem}")),
        );
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn licences_are_expressions() {
    let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for license in [
        "MIT",
        "MIT/GPL-3.0",
        "MIT OR GPL-3.0-only",
        "MIT AND Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(is_allowed(license, &allowed), "{license}");
    }
    for license in [
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "Apache-2.0",
        "MITT",
        "",
    ] {
        assert!(!is_allowed(license, &allowed), "{license}");
    }
}
