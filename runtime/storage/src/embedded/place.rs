//! Where a store is, and whether what comes from there is proved.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The file of a store.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Always, but in tests that show what would happen otherwise.
    pub(super) is_proved: bool,
}

impl Place {
    pub(super) fn new(path: PathBuf, is_proved: bool) -> Self {
        Self { path, is_proved }
    }
}

impl Deref for Place {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
