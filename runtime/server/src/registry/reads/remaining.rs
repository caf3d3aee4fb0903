//! How many objects lie behind a page. Counting them costs as much as the rest of a large list's page does, so what the
//! last pages left is remembered: a client that goes on there has its count without counting.

use std::sync::Arc;

use apiloom_storage::Revision;

use crate::recent::Recent;
use crate::registry::objects::cached_object::State;

/// What the last pages left behind them. Nothing that it says can become wrong: a revision names a state.
#[derive(Debug, Default)]
pub(crate) struct Remaining(Recent<Left>);

#[derive(Debug)]
struct Left {
    revision: Revision,
    prefix: String,
    last: Arc<str>,
    count: usize,
}

/// A page of a state.
pub(crate) struct Given<'a> {
    pub(crate) state: &'a State,
    pub(crate) prefix: &'a str,
    /// The key from which on it was taken; empty for the first page.
    pub(crate) start: &'a str,
    pub(crate) taken: usize,
    /// The key of its last object, and of the one behind it.
    pub(crate) last: &'a Arc<str>,
    pub(crate) next: &'a str,
}

impl Remaining {
    /// How many objects lie behind a page.
    pub(crate) fn behind(&self, page: &Given<'_>) -> usize {
        let count = match self.left_before(page) {
            Some(left) => left.saturating_sub(page.taken),
            None => page.state.range(page.prefix, page.next).count(),
        };
        let left = Left {
            revision: page.state.revision(),
            prefix: page.prefix.to_owned(),
            last: Arc::clone(page.last),
            count,
        };
        let bytes = size_of::<Left>() + left.prefix.len() + left.last.len();
        self.0.keep(left, bytes);
        count
    }

    /// How many lay behind the page before, if that is known.
    fn left_before(&self, page: &Given<'_>) -> Option<usize> {
        // A page goes on behind the last key of the one before: at the smallest key that is greater.
        let before = page.start.strip_suffix('\0')?;
        self.0.find(|left| {
            let same = left.revision == page.state.revision()
                && *left.last == *before
                && left.prefix == page.prefix;
            same.then_some(left.count)
        })
    }
}
