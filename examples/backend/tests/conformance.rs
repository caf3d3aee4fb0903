//! The conformance suite of `apiloom-storage`, over the store and with a watch cache in front of it.

use std::sync::Arc;

use apiloom::storage::Storage;
use apiloom_storage::conformance::{Backend, ThroughCache};
use json_lines_store::JsonLines;

/// A file for one test.
struct InFile(tempfile::TempDir);

impl Backend for InFile {
    async fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    async fn open(&self) -> Arc<dyn Storage> {
        let store = JsonLines::open(&self.0.path().join("store.jsonl"));
        Arc::new(store.expect("the store opens"))
    }
}

mod in_file {
    apiloom_storage::conformance_tests!(super::InFile);
}

mod through_cache {
    apiloom_storage::conformance_tests!(super::ThroughCache<super::InFile>);
}
