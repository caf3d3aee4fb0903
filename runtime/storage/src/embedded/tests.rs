//! Tests of what only the embedded store does.

use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::conformance::Backend;

struct InDirectory(TempDir);

impl Backend for InDirectory {
    async fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    async fn open(&self) -> Arc<dyn Storage> {
        Embedded::open(self.0.path(), EmbeddedConfig::default()).expect("opened")
    }
}

mod conformance {
    crate::conformance_tests!(super::InDirectory, persistent);
}
