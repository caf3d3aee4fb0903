//! Lists: pages at one revision.

use etcd_client::GetOptions;

use super::failure::Failure;
use super::store::Etcd;
use super::wire::{self, Range};
use crate::{ListRequest, Page, Revision, StorageError};

/// How often a list of the current state restarts because its revision was compacted meanwhile.
const ATTEMPTS: usize = 3;

impl Etcd {
    pub(super) async fn list_pages(&self, request: &ListRequest) -> Result<Page, StorageError> {
        let Some(range) = Range::new(&request.prefix, &request.start) else {
            return self.nothing(request.at).await;
        };
        for _ in 1..ATTEMPTS {
            match self.chunks(request, range.clone()).await {
                Err(Err(Failure::Compacted)) if request.at.is_none() => {}
                listed => return self.listed(listed, request.at).await,
            }
        }
        let listed = self.chunks(request, range).await;
        self.listed(listed, request.at).await
    }

    /// Reads the page in chunks; the inner error is etcd's.
    async fn chunks(
        &self,
        request: &ListRequest,
        mut range: Range,
    ) -> Result<Page, Result<StorageError, Failure>> {
        let mut page = Page::default();
        // An empty etcd is at revision 1, and 0 would mean the current revision.
        let mut at = request.at.map(|at| at.max(Revision(1)));
        let before = self.history.past.seen();
        loop {
            let wanted = match request.limit {
                0 => self.list_chunk,
                limit => self.list_chunk.min(limit - page.entries.len()),
            };
            let options = GetOptions::new()
                .with_limit(i64::try_from(wanted).unwrap_or(i64::MAX))
                .with_revision(at.map_or(0, wire::number));
            let answer = self.range(&range, options).await.map_err(Err)?;
            let present = wire::header_revision(answer.header.as_ref());
            page.revision = *at.get_or_insert(present);
            let following = answer
                .count
                .unsigned_abs()
                .saturating_sub(answer.kvs.len() as u64);
            for pair in answer.kvs {
                page.entries.push(wire::entry(pair).map_err(Ok)?);
            }
            if let Some(newest) = page.entries.iter().max_by_key(|entry| entry.revision) {
                let past = &self.history.past;
                past.remember(before, &newest.key, &newest.value, newest.revision);
            }
            page.more = answer.more;
            page.remaining = Some(following);
            match page.entries.last() {
                Some(last) if page.more && page.entries.len() != request.limit => {
                    range.from = [last.key.as_bytes(), b"\0"].concat();
                }
                _ => return Ok(page),
            }
        }
    }

    async fn listed(
        &self,
        listed: Result<Page, Result<StorageError, Failure>>,
        at: Option<Revision>,
    ) -> Result<Page, StorageError> {
        match listed {
            Ok(page) => Ok(page),
            Err(Ok(error)) => Err(error),
            Err(Err(failure)) => Err(self.history.error(failure, at.unwrap_or_default()).await),
        }
    }

    /// An empty page for a range that no key can be in.
    async fn nothing(&self, at: Option<Revision>) -> Result<Page, StorageError> {
        let current = match at {
            None => self.history.current_revision().await?,
            Some(at) => match self.history.probe(at).await {
                Ok(_) => at,
                Err(failure) => return Err(self.history.error(failure, at).await),
            },
        };
        Ok(Page {
            revision: current,
            remaining: Some(0),
            ..Page::default()
        })
    }
}
