//! Lists of several pages, with client-go's rules for tokens that expire between them.

use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::list::{ListRequest, ObjectList};
use super::object::ApiObject;
use super::options::ListOptions;
use crate::error::{DecodeError, Error};

/// Most objects of a page unless a limit is set.
const PAGE_SIZE: u32 = 500;

impl<K: ApiObject> ListRequest<K> {
    /// All objects, page by page. All pages show the same state.
    ///
    /// If that state expires before the last page, the list begins again without pages, so that it can end. Pages are of 500
    /// objects unless there is a limit.
    ///
    /// # Errors
    /// Those of each page.
    pub async fn all(self) -> Result<ObjectList<K>, Error> {
        let mut options = self.paged_options();
        let is_from_start = options.continue_token.is_none();
        let mut list = self.page(&options).await?;
        while let Some(next) = self.next_page(&options, &list)? {
            options = next;
            let page = match self.page(&options).await {
                Err(error) if error.is_expired() && is_from_start => {
                    let whole = ListOptions {
                        limit: None,
                        ..self.options.clone()
                    };
                    return self.page(&whole).await;
                }
                page => page?,
            };
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
        let options = self.paged_options();
        let pages = stream::unfold(Some((self, options)), |state| async move {
            let (list, options) = state?;
            let page = list.page(&options).await;
            let page = page.and_then(|page| Ok((list.next_page(&options, &page)?, page)));
            Some(match page {
                Ok((next, page)) => (Ok(page), next.map(|options| (list, options))),
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

    fn paged_options(&self) -> ListOptions {
        ListOptions {
            limit: Some(self.options.limit.unwrap_or(PAGE_SIZE)),
            ..self.options.clone()
        }
    }

    /// The options of the page after this one; `None` after the last one.
    fn next_page(
        &self,
        options: &ListOptions,
        page: &ObjectList<K>,
    ) -> Result<Option<ListOptions>, Error> {
        let Some(token) = page.continue_token() else {
            return Ok(None);
        };
        if options.continue_token.as_deref() == Some(token) {
            return Err(Error::Decode(Box::new(DecodeError {
                path: self.make.path.clone().unwrap_or_default(),
                kind: format!("{}List", self.make.kind),
                name: String::new(),
                reason: "two pages end with the same continue token".to_owned(),
                excerpt: String::new(),
            })));
        }
        Ok(Some(ListOptions {
            continue_token: Some(token.to_owned()),
            // The token has the resourceVersion; servers refuse both.
            resource_version: None,
            resource_version_match: None,
            ..options.clone()
        }))
    }
}
