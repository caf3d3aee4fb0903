//! Lists of several pages, with client-go's rules for tokens that expire between them.

use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::list::{ListRequest, ObjectList};
use super::object::ApiObject;
use super::options::ListOptions;
use crate::error::{DecodeError, Error};

/// Most objects of a page unless a limit is set.
const PAGE_SIZE: u32 = 500;

/// Most pages in a row without an object. Servers send pages that are not full, and one that is empty when all its objects
/// were deleted; a token after each of many is an endless list.
pub(crate) const MAX_EMPTY_PAGES: u32 = 16;

/// The next page of a list, and how many before it had no object.
struct NextPage {
    options: ListOptions,
    empty: u32,
}

impl<K: ApiObject> ListRequest<K> {
    /// All objects, page by page. All pages show the same state.
    ///
    /// If that state expires before the last page, the list begins again without pages, so that it can end. Pages are of 500
    /// objects unless there is a limit.
    ///
    /// # Errors
    /// Those of each page, and if all together are longer than [`ClientBuilder::max_list_bytes`](super::ClientBuilder::max_list_bytes).
    pub async fn all(self) -> Result<ObjectList<K>, Error> {
        let first = self.first_page();
        let is_from_start = first.options.continue_token.is_none();
        // Of all pages together: a server can go on with small ones for ever.
        let mut room = self.make.client.settings().max_list_bytes;
        let mut list = self.page_within(&first.options, &mut room).await?;
        let mut next = self.next_page(&first, &list)?;
        while let Some(present) = next {
            let page = match self.page_within(&present.options, &mut room).await {
                Err(error) if error.is_expired() && is_from_start => {
                    let whole = ListOptions {
                        limit: None,
                        ..self.options.clone()
                    };
                    return self.page(&whole).await;
                }
                page => page?,
            };
            next = self.next_page(&present, &page)?;
            list.metadata = page.metadata;
            list.items.extend(page.items);
            list.undecodable.extend(page.undecodable);
        }
        Ok(list)
    }

    /// The pages, each read when it is asked for. Ends after an error.
    ///
    /// A token that expires between two pages is an error ([`Error::is_expired`]): objects that were given out already
    /// cannot be taken back.
    pub fn pages(self) -> BoxStream<'static, Result<ObjectList<K>, Error>> {
        let first = self.first_page();
        let pages = stream::unfold(Some((self, first)), |state| async move {
            let (list, present) = state?;
            let page = list.page(&present.options).await;
            let page = page.and_then(|page| Ok((list.next_page(&present, &page)?, page)));
            Some(match page {
                Ok((next, page)) => (Ok(page), next.map(|next| (list, next))),
                Err(error) => (Err(error), None),
            })
        });
        pages.boxed()
    }

    /// The objects, page by page; see [`ListRequest::pages`]. Objects that cannot be decoded are errors of their page,
    /// unless they are kept: then they are left out.
    pub fn stream(self) -> BoxStream<'static, Result<K, Error>> {
        let objects = self.pages().flat_map(|page| {
            let (items, error) = match page {
                Ok(page) => (page.items, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            stream::iter(items.into_iter().map(Ok).chain(error.map(Err)))
        });
        objects.boxed()
    }

    fn first_page(&self) -> NextPage {
        NextPage {
            options: ListOptions {
                limit: Some(self.options.limit.unwrap_or(PAGE_SIZE)),
                ..self.options.clone()
            },
            empty: 0,
        }
    }

    /// The page after this one; `None` after the last one.
    fn next_page(
        &self,
        present: &NextPage,
        page: &ObjectList<K>,
    ) -> Result<Option<NextPage>, Error> {
        let Some(token) = page.continue_token() else {
            return Ok(None);
        };
        if present.options.continue_token.as_deref() == Some(token) {
            return Err(self.endless("two pages end with the same continue token".to_owned()));
        }
        let is_empty = page.items.is_empty() && page.undecodable.is_empty();
        let empty = if is_empty { present.empty + 1 } else { 0 };
        if empty > MAX_EMPTY_PAGES {
            return Err(self.endless(format!(
                "{empty} pages in a row have no objects and a continue token"
            )));
        }
        Ok(Some(NextPage {
            options: ListOptions {
                continue_token: Some(token.to_owned()),
                // The token has the resourceVersion; servers refuse both.
                resource_version: None,
                resource_version_match: None,
                ..present.options.clone()
            },
            empty,
        }))
    }

    fn endless(&self, reason: String) -> Error {
        Error::Decode(Box::new(DecodeError {
            path: self.make.path.clone().unwrap_or_default(),
            kind: format!("{}List", self.make.kind),
            name: String::new(),
            reason,
            excerpt: String::new(),
        }))
    }
}
