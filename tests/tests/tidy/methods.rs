//! A type with very many methods is several things.

use super::modules::{Crate, libraries};
use super::uses::Methods;

/// Most inherent methods of a type.
const MOST: usize = 40;

#[test]
fn types_have_few_methods() {
    let mut found = Vec::new();
    for library in libraries() {
        let krate = Crate::read(&library.source.join("lib.rs"));
        for ((_, name), methods) in Methods::of(&krate).0 {
            if methods.len() > MOST {
                let count = methods.len();
                found.push(format!("{}: {name} has {count}", library.name));
            }
        }
    }
    assert!(found.is_empty(), "types with many methods: {found:#?}");
}
