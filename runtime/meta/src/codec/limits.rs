//! The limits of a body that its errors name.

/// What a document deeper than [`MAX_DEPTH`] gets.
pub(super) const TOO_DEEP: &str = "exceeded max depth";

/// The deepest nesting taken: that of serde_json, so that every walk over a document fits onto a small stack.
pub(super) const MAX_DEPTH: usize = 127;

/// The most merge keys (`<<`) in a YAML body, those that aliases repeat among them. The parser merges by itself, and what
/// a chain of merges costs grows with the cube of its length: 127 of them, 4 KB, took 1.5 s.
pub(super) const MAX_MERGE_KEYS: usize = 100;
