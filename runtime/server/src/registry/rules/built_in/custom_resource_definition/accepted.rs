//! The schemas that were found without errors lately, which are not judged again: a definition is often applied after a dry run,
//! updated without a change of its schemas, and published right after it was written.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use parking_lot::Mutex;

/// How many schemas are remembered, each by 16 bytes: those of a large installation.
const MAX_SCHEMAS: usize = 1024;

/// The schemas of this process. Whether a schema has errors depends on nothing but the schema.
static ACCEPTED: LazyLock<Accepted> = LazyLock::new(Accepted::default);

/// Remembers a schema, as compact JSON, that has no errors in a version with or without the subresource `status`.
pub(super) fn add(json: &[u8], has_status: bool) {
    ACCEPTED.add(json, has_status);
}

/// Whether a schema was found without errors, in a version with or without the subresource `status`.
pub(super) fn is_accepted(json: &[u8], has_status: bool) -> bool {
    ACCEPTED.has(json, has_status)
}

/// Whether a schema was found without errors in any version.
pub(crate) fn is_accepted_in_any(json: &[u8]) -> bool {
    [true, false]
        .iter()
        .any(|status| is_accepted(json, *status))
}

/// Digests of schemas, of which the oldest is forgotten first. Their keys are random, so that no schema can be made that has the
/// digest of another.
#[derive(Default)]
struct Accepted {
    keys: [RandomState; 2],
    digests: Mutex<VecDeque<u128>>,
}

impl Accepted {
    fn digest(&self, json: &[u8], has_status: bool) -> u128 {
        let half = |key: &RandomState| u128::from(key.hash_one((json, has_status)));
        (half(&self.keys[0]) << 64) | half(&self.keys[1])
    }

    fn has(&self, json: &[u8], has_status: bool) -> bool {
        let digest = self.digest(json, has_status);
        self.digests.lock().contains(&digest)
    }

    fn add(&self, json: &[u8], has_status: bool) {
        let digest = self.digest(json, has_status);
        let mut digests = self.digests.lock();
        if digests.contains(&digest) {
            return;
        }
        if digests.len() == MAX_SCHEMAS {
            digests.pop_front();
        }
        digests.push_back(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_accepted_as_it_was_judged() {
        let accepted = Accepted::default();
        accepted.add(b"{}", true);
        assert!(accepted.has(b"{}", true));
        assert!(!accepted.has(b"{}", false));
        assert!(!accepted.has(b"{ }", true));
    }

    #[test]
    fn the_oldest_schema_is_forgotten() {
        let accepted = Accepted::default();
        for number in 0..=MAX_SCHEMAS {
            accepted.add(number.to_string().as_bytes(), false);
            accepted.add(b"1", false);
        }
        assert!(!accepted.has(b"0", false));
        assert!(accepted.has(b"1", false) && accepted.has(b"2", false));
        assert_eq!(accepted.digests.lock().len(), MAX_SCHEMAS);
    }
}
