//! What a long `enum` keeps for finding a value: the positions of its values by their hash.
//!
//! It knows nothing of equality: `custom/enums.rs` says how values are hashed and compared.

use std::hash::RandomState;
use std::sync::OnceLock;

/// The index of the values of an `enum`, built when the first value is checked.
///
/// It follows from the values, so that copies build their own, and two schemas never differ by it.
#[derive(Debug, Default)]
pub(crate) struct EnumIndex(pub(super) OnceLock<Box<Positions>>);

impl Clone for EnumIndex {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for EnumIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The positions of values by their hash. Its key is random, so that clients cannot choose values that collide.
#[derive(Debug, Default)]
pub(super) struct Positions {
    pub(super) hasher: RandomState,
    /// In order: a map takes six times as much, more than the values.
    pub(super) by_hash: Vec<Position>,
}

/// A hash, and the position of a value that has it.
pub(in crate::engine) type Position = (u64, u32);
