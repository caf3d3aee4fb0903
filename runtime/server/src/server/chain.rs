//! The filters of a server as `print-chain` lists them.

use apiloom_http::part_name::{HOST, PartName};
use serde::Serialize;

/// A filter that requests pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChainFilter {
    /// Its name.
    pub name: String,
    /// The part that brought it: `host` for the server itself, `program`, or the name of a [`Part`](crate::Part).
    pub part: PartName,
    /// Its meaning, in one line.
    pub meaning: String,
}

/// The name and the meaning of a filter of the server itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterInfo {
    name: &'static str,
    meaning: &'static str,
}

impl FilterInfo {
    pub(super) const fn new(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning }
    }

    /// Its line in the list.
    pub(super) fn listed(self) -> ChainFilter {
        ChainFilter {
            name: self.name.to_owned(),
            part: HOST,
            meaning: self.meaning.to_owned(),
        }
    }
}
