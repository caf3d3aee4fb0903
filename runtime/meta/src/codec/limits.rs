//! Limits for bodies that occur in error texts.

/// Error text for a document deeper than [`MAX_DEPTH`].
pub(super) const TOO_DEEP: &str = "exceeded max depth";

/// Maximum nesting, that of serde_json; recursion over such a document fits onto a small stack.
pub(crate) const MAX_DEPTH: usize = 127;

/// Maximum number of merge keys (`<<`) in a YAML body, including those repeated by aliases. The parser merges without
/// the walk, and the cost of a chain of merges grows with the cube of its length: 127 merges, 4 KB, took 1.5 s.
#[cfg(feature = "yaml")]
pub(super) const MAX_MERGE_KEYS: usize = 100;
