//! A text that counts how often it is decoded.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

thread_local! {
    /// A test and the tasks of its registry share a thread, which no other test uses.
    static DECODED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct CountedText(pub(super) String);

impl<'de> Deserialize<'de> for CountedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.set(DECODED.get() + 1);
        String::deserialize(deserializer).map(Self)
    }
}

/// How often texts were decoded since the last call.
pub(super) fn take_decoded() -> usize {
    DECODED.take()
}
