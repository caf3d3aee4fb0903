//! Where the CustomResourceDefinitions of other projects are: `tests/corpus/fetch` obtains most, some are written by hand.

use std::fs;
use std::path::PathBuf;

use crate::repository;

/// The folders of the corpus. Each has a folder of definitions for each project, and beside those files with objects of their
/// kinds.
pub fn folders() -> [PathBuf; 2] {
    let fetched = repository().join("target/tools/crds");
    let packages = fs::read_to_string(fetched.join("packages.txt")).unwrap_or_default();
    let listed = fs::read_to_string(repository().join("tests/corpus/packages.txt")).unwrap();
    assert_eq!(packages, listed, "{}: run tests/tools", fetched.display());
    [fetched, repository().join("tests/corpus/written")]
}
