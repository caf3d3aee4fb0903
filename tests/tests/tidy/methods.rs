//! A type with very many methods is several things.

use super::modules::{Crate, libraries};
use super::uses::Methods;

/// Most inherent methods of a type.
const MOST: usize = 40;

/// The types that have more, with what they have. None may be added, and none may grow.
const MORE: &[(&str, &str, usize)] = &[
    ("runtime/meta", "Schema", 47),
    ("runtime/server", "Kind", 57),
    ("runtime/server", "Writes", 138),
];

#[test]
fn types_have_few_methods() {
    let mut found = Vec::new();
    for library in libraries() {
        let krate = Crate::read(&library.source.join("lib.rs"));
        for ((_, name), methods) in Methods::of(&krate).0 {
            if methods.len() > MOST {
                found.push((library.name.clone(), name, methods.len()));
            }
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(library, name, count)| (&**library, &**name, *count))
        .collect();
    assert_eq!(found, MORE);
}
