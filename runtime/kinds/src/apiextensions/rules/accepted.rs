//! The schemas that were found without errors lately, which are not judged again: a definition is often applied after a dry run,
//! updated without a change of its schemas, and published right after it was written.

use std::collections::VecDeque;
use std::sync::LazyLock;

use apiloom_meta::schema::Digests;
use parking_lot::Mutex;

/// How many schemas are remembered, each by 16 bytes: those of a large installation.
const MAX_SCHEMAS: usize = 1024;

/// The schemas of this process. Whether a schema has errors depends on nothing but the schema.
static ACCEPTED: LazyLock<AcceptedSchemas> = LazyLock::new(AcceptedSchemas::default);

/// A schema, as compact JSON, by its digest.
#[derive(Clone, Copy)]
pub struct JudgedSchema(u128);

impl JudgedSchema {
    /// The schema that this compact JSON spells.
    pub fn new(json: &[u8]) -> Self {
        Self(ACCEPTED.digests.of_json(json))
    }

    /// Remembers that it has no errors in a version with or without the subresource `status`.
    pub(super) fn accept(self, has_status: bool) {
        ACCEPTED.add(self.0, has_status);
    }

    /// Whether it was found without errors, in a version with or without the subresource `status`.
    pub(super) fn is_accepted(self, has_status: bool) -> bool {
        ACCEPTED.has(self.0, has_status)
    }

    /// Whether it was found without errors in any version.
    pub fn is_accepted_in_any(self) -> bool {
        self.is_accepted(true) || self.is_accepted(false)
    }
}

/// Digests of schemas without errors, of which the oldest is forgotten first.
#[derive(Default)]
struct AcceptedSchemas {
    digests: Digests,
    /// The last bit of each says whether its version has the subresource `status`.
    found: Mutex<VecDeque<u128>>,
}

fn with_status(digest: u128, has_status: bool) -> u128 {
    (digest & !1) | u128::from(has_status)
}

impl AcceptedSchemas {
    fn has(&self, digest: u128, has_status: bool) -> bool {
        let entry = with_status(digest, has_status);
        self.found.lock().contains(&entry)
    }

    fn add(&self, digest: u128, has_status: bool) {
        let entry = with_status(digest, has_status);
        let mut found = self.found.lock();
        if found.contains(&entry) {
            return;
        }
        if found.len() == MAX_SCHEMAS {
            found.pop_front();
        }
        found.push_back(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(accepted: &AcceptedSchemas, json: &[u8], has_status: bool) -> bool {
        accepted.has(accepted.digests.of_json(json), has_status)
    }

    fn add(accepted: &AcceptedSchemas, json: &[u8], has_status: bool) {
        accepted.add(accepted.digests.of_json(json), has_status);
    }

    #[test]
    fn a_schema_is_accepted_as_it_was_judged() {
        let accepted = AcceptedSchemas::default();
        add(&accepted, b"{}", true);
        assert!(has(&accepted, b"{}", true));
        assert!(!has(&accepted, b"{}", false));
        assert!(!has(&accepted, b"{ }", true));
    }

    #[test]
    fn the_oldest_schema_is_forgotten() {
        let accepted = AcceptedSchemas::default();
        for number in 0..=MAX_SCHEMAS {
            add(&accepted, number.to_string().as_bytes(), false);
            add(&accepted, b"1", false);
        }
        assert!(!has(&accepted, b"0", false));
        assert!(has(&accepted, b"1", false) && has(&accepted, b"2", false));
        assert_eq!(accepted.found.lock().len(), MAX_SCHEMAS);
    }
}
