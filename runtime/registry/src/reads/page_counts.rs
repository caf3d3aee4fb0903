//! PageCounts-item counts of pages. Counting the items behind a page of a large list costs as much as the page itself,
//! so the counts of recent pages are kept: the next page of a client subtracts from its count.

use std::sync::Arc;

use apiloom_storage::Revision;

use crate::objects::cached_object::State;
use crate::recent::Recent;

/// PageCounts-item counts of recent pages. They stay valid, since a snapshot does not change.
#[derive(Debug, Default)]
pub(crate) struct PageCounts(Recent<PageCount>);

#[derive(Debug)]
struct PageCount {
    revision: Revision,
    prefix: String,
    last: Arc<str>,
    count: usize,
}

/// A page of a snapshot.
pub(crate) struct ListPage<'a> {
    pub(crate) state: &'a State,
    pub(crate) prefix: &'a str,
    /// Key at which the page starts; empty for the first page.
    pub(crate) start: &'a str,
    pub(crate) taken: usize,
    /// Key of the last object of the page.
    pub(crate) last: &'a Arc<str>,
    pub(crate) next: &'a str,
}

impl PageCounts {
    /// Number of objects behind a page.
    pub(crate) fn behind(&self, page: &ListPage<'_>) -> usize {
        let count = match self.count_before(page) {
            Some(left) => left.saturating_sub(page.taken),
            None => page.state.range(page.prefix, page.next).count(),
        };
        let left = PageCount {
            revision: page.state.revision(),
            prefix: page.prefix.to_owned(),
            last: Arc::clone(page.last),
            count,
        };
        let bytes = size_of::<PageCount>() + left.prefix.len() + left.last.len();
        self.0.keep(left, bytes);
        count
    }

    /// Number of objects behind the previous page, if it is known.
    fn count_before(&self, page: &ListPage<'_>) -> Option<usize> {
        // A page starts at the smallest key that is greater than the last key of the previous one.
        let before = page.start.strip_suffix('\0')?;
        self.0.find(|left| {
            let same = left.revision == page.state.revision()
                && *left.last == *before
                && left.prefix == page.prefix;
            same.then_some(left.count)
        })
    }
}
