//! A list, page by page.

use super::session::{Session, response};
use crate::cache::object::CacheObject;
use crate::cache::source::{ListPage, ListRequest, SourceError, SourceErrorKind};
use crate::client::MAX_EMPTY_PAGES;

/// Broken responses to lists, one after the other, after which objects are only listed page by page.
const LIST_FAILURES: u32 = 2;

/// What the pages of a list may still have: a server can go on with small ones for ever.
#[derive(Clone, Copy)]
struct Pages {
    /// Bytes of all that follow.
    room: usize,
    /// How many in a row had no object.
    empty: u32,
    /// Whether the list began again, because the state of its first page was gone.
    is_again: bool,
}

impl Pages {
    /// # Errors
    /// If there are too many, or they are too long together.
    fn count<T>(&mut self, page: &ListPage<T>) -> Result<(), SourceError> {
        let endless = |problem| Err(SourceError::new(SourceErrorKind::Transport, problem));
        let Some(room) = self.room.checked_sub(page.bytes) else {
            return endless("the pages of a list are longer than max_list_bytes of the client");
        };
        self.room = room;
        self.empty = if page.items.is_empty() {
            self.empty + 1
        } else {
            0
        };
        if self.empty > MAX_EMPTY_PAGES && page.continue_token.is_some() {
            return endless("the server sends pages without objects and with continue tokens");
        }
        Ok(())
    }
}

impl<T: CacheObject> Session<T> {
    /// Reads the whole state into the store.
    pub(super) async fn page_list(&mut self) -> Result<(), SourceError> {
        let first = self.try_page_list().await;
        let result = match first {
            // Once more, for the most recent state, which every server has.
            Err(error) if self.is_of_version(&error) => self.try_page_list().await,
            result => result,
        };
        match &result {
            Ok(()) => self.list_failures = 0,
            Err(error) if error.kind == SourceErrorKind::Transport => self.list_failures += 1,
            Err(_) => {}
        }
        result
    }

    async fn try_page_list(&mut self) -> Result<(), SourceError> {
        let mut version = self.position.of_list();
        // All objects may be too many for one response, which then breaks off again and again.
        let must_page = self.list_failures >= LIST_FAILURES;
        if must_page && version == "0" {
            // Of any state, a server with a cache sends all objects in spite of a limit.
            version.clear();
        }
        // A limit makes a server read its storage instead of its cache, and makes the version exact.
        let is_whole = !matches!(&*version, "" | "0") && !self.is_paged && !must_page;
        let limit = (!is_whole).then_some(self.page_size);
        let mut request = ListRequest {
            resource_version: version.clone(),
            limit,
            continue_token: None,
        };
        let mut relist = self.begin_list();
        let begin = Pages {
            room: self.source.max_list_bytes(),
            empty: 0,
            is_again: false,
        };
        let mut pages = begin;
        loop {
            let is_first = request.continue_token.is_none();
            let page = match response(self.source.list(request.clone())).await {
                Ok(page) => page,
                // The state of the first page is gone: all objects at once are one state again.
                Err(error)
                    if error.kind == SourceErrorKind::Expired && !is_first && !pages.is_again =>
                {
                    tracing::debug!(
                        cache = self.hub.name(),
                        "a list expired between its pages; all objects are listed"
                    );
                    relist = self.begin_list();
                    pages = Pages {
                        is_again: true,
                        ..begin
                    };
                    request = ListRequest {
                        resource_version: version.clone(),
                        limit: None,
                        continue_token: None,
                    };
                    continue;
                }
                Err(error) => return Err(error),
            };
            pages.count(&page)?;
            for item in page.items {
                self.add(&mut relist, item);
            }
            let Some(token) = page.continue_token else {
                self.finish_list(relist, &page.resource_version);
                return Ok(());
            };
            if request.continue_token.as_ref() == Some(&token) {
                return Err(SourceError::new(
                    SourceErrorKind::Transport,
                    "the server gave the same continue token twice",
                ));
            }
            self.is_paged |= version == "0";
            request = ListRequest {
                resource_version: String::new(),
                limit,
                continue_token: Some(token),
            };
        }
    }
}
