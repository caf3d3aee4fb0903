//! What the wings of the registry may not use of each other.

use std::path::Path;

use super::modules::{Crate, workspace};
use super::uses;

/// A wing, and what no file of it may use.
const FORBIDDEN: [(&str, &[&str]); 5] = [
    (
        "code",
        &["reads", "writes", "rules", "catalog", "endpoint.rs"],
    ),
    (
        "objects",
        &["reads", "rules", "writes", "catalog", "code", "endpoint.rs"],
    ),
    ("reads", &["rules", "writes", "catalog", "endpoint.rs"]),
    ("writes", &["reads", "catalog", "endpoint.rs"]),
    ("rules", &["writes", "catalog", "endpoint.rs"]),
];

#[test]
fn reads_and_writes_do_not_know_each_other() {
    let registry = workspace().join("runtime/registry/src");
    let files = uses::of(&Crate::read(&registry.join("lib.rs")));
    let mut found = Vec::new();
    for (wing, forbidden) in FORBIDDEN {
        let wing = registry.join(wing);
        let of_wing = files.iter().filter(|(file, _)| file.starts_with(&wing));
        assert!(
            of_wing.clone().any(|(_, used)| !used.is_empty()),
            "{} uses nothing",
            wing.display()
        );
        let is_forbidden =
            |used: &Path| forbidden.iter().any(|f| used.starts_with(registry.join(f)));
        found.extend(of_wing.flat_map(|(file, used)| {
            let used = used.iter().filter(|used| is_forbidden(used));
            used.map(move |used| format!("{} -> {}", file.display(), used.display()))
        }));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
