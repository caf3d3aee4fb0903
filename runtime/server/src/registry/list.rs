//! list: the objects of a prefix at one state, whole or in pages.

use apiloom_meta::{ApiError, StatusReason};
use apiloom_storage::cache::WatchCache;
use apiloom_storage::{Entry, ListRequest, Page, Revision, StorageError};

use super::cached::{self, Wanted};
use super::continue_token;
use super::document::{Document, Served};
use super::endpoint::{Endpoint, Listed};
use super::selection::Selection;
use super::{ListOptions, RequestContext, VersionMatch, error};

/// The most keys read at once while looking for selected objects.
const MAX_PAGE: usize = 10_000;

/// How many objects are decoded before other requests get their turn on the thread: about a millisecond's worth.
const YIELD_EVERY: usize = 64;

/// What clients read when their continue token is too old.
const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder \
    of the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// What to read of a prefix.
struct Plan {
    prefix: String,
    /// The key to begin at; empty for the whole prefix.
    start: String,
    /// The state to show; `None` for the present one.
    at: Option<Revision>,
    /// The state that the present one must have reached.
    at_least: u64,
    /// Whether any state at all will do.
    any: bool,
    /// How many items at most; 0 for all.
    limit: usize,
    /// Where the client's continue token began, to which an expired list sends it back; `None` without a token.
    continued: Option<String>,
}

impl Endpoint {
    /// Objects of a namespace, or of all of them (`None`).
    ///
    /// # Errors
    /// BadRequest for selectors and tokens, Expired, Timeout.
    pub async fn list(
        &self,
        _ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Listed, ApiError> {
        let selection = Selection::new(
            self.version(),
            &options.label_selector,
            &options.field_selector,
        )?;
        let plan = self.plan(namespace, options)?;
        if let Some(cache) = &self.cache
            && let Some(listed) = self
                .list_cached(cache, &plan, &selection, namespace)
                .await?
        {
            return Ok(listed);
        }
        match selection.name().map(|name| self.kind.key(namespace, name)) {
            // Of a kind in namespaces, a name alone is a key only below one namespace.
            Some(Ok(key)) => self.list_one(&plan, &selection, key).await,
            _ => self.list_prefix(plan, &selection).await,
        }
    }

    /// A list from the watch cache; `None` when it does not have the state.
    async fn list_cached(
        &self,
        cache: &WatchCache<Served>,
        plan: &Plan,
        selection: &Selection,
        namespace: Option<&str>,
    ) -> Result<Option<Listed>, ApiError> {
        let wanted = match plan.at {
            Some(at) => Wanted::Exactly(at),
            None if plan.any || plan.at_least > 0 => Wanted::AtLeast(plan.at_least),
            None => Wanted::Present,
        };
        let Some(state) = self.state(cache, wanted, "list").await? else {
            return Ok(None);
        };
        let mut listed = Listed {
            resource_version: state.revision().to_string(),
            ..Listed::default()
        };
        if let Some(Ok(key)) = selection.name().map(|name| self.kind.key(namespace, name)) {
            let item = state
                .get(&key)
                .filter(|item| item.key.as_ref() >= plan.start.as_str());
            if let Some(item) = item {
                listed.items.extend(self.select(item, selection)?);
            }
            return Ok(Some(listed));
        }
        let mut last: Option<&str> = None;
        let candidates = cached::candidates(self, &state, selection, &plan.prefix, &plan.start);
        for (i, item) in candidates.enumerate() {
            if plan.limit > 0 && listed.items.len() >= plan.limit {
                let last = last.unwrap_or_default();
                listed.continue_token =
                    continue_token::encode(&plan.prefix, last, state.revision().0);
                if selection.is_everything() {
                    let rest = state.range(&plan.prefix, &item.key).count();
                    listed.remaining_item_count = i64::try_from(rest).ok();
                }
                break;
            }
            if i % YIELD_EVERY == YIELD_EVERY - 1 {
                tokio::task::yield_now().await;
            }
            last = Some(&item.key);
            listed.items.extend(self.select(item, selection)?);
        }
        Ok(Some(listed))
    }

    /// Which state and which keys the options ask for: the matrix of resourceVersion, match, limit and continue.
    fn plan(&self, namespace: Option<&str>, options: &ListOptions) -> Result<Plan, ApiError> {
        let prefix = self.kind.prefix(namespace);
        let version = error::parse_version(&options.resource_version)
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
        let plan = Plan {
            prefix,
            start: String::new(),
            at: None,
            at_least: 0,
            any: false,
            limit,
            continued: None,
        };
        if !options.continue_token.is_empty() {
            if version != 0 {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = continue_token::decode(&options.continue_token, &plan.prefix)?;
            // With resourceVersion "0" any state will do, and upstream then gives the whole remainder.
            let limit = if options.resource_version == "0" {
                0
            } else {
                limit
            };
            return Ok(Plan {
                continued: Some(token.start.clone()),
                start: token.start,
                at: token.at.map(Revision),
                any: options.resource_version == "0",
                limit,
                ..plan
            });
        }
        Ok(match (options.version_match, version) {
            (_, 0) if options.resource_version.is_empty() => plan,
            (_, 0) => Plan {
                limit: 0,
                any: true,
                ..plan
            },
            (Some(VersionMatch::Exact), _) => Plan {
                at: Some(Revision(version)),
                ..plan
            },
            (None, _) if limit > 0 => Plan {
                at: Some(Revision(version)),
                ..plan
            },
            _ => Plan {
                at_least: version,
                ..plan
            },
        })
    }

    /// A list by exact name: one key is read.
    async fn list_one(
        &self,
        plan: &Plan,
        selection: &Selection,
        key: String,
    ) -> Result<Listed, ApiError> {
        // The key itself is the first of all keys that begin with it.
        let request = ListRequest {
            prefix: key.clone(),
            start: String::new(),
            limit: 1,
            at: plan.at,
        };
        let page = self.page(plan, request).await?;
        let entry = page
            .entries
            .first()
            .filter(|entry| entry.key == key && entry.key >= plan.start);
        let object = entry
            .map(|entry| self.kind.read_entry(entry, self.version))
            .transpose()?;
        let items = object
            .into_iter()
            .filter(|object| selection.matches(object))
            .map(Document::from)
            .collect();
        Ok(Listed {
            items,
            resource_version: page.revision.to_string(),
            ..Listed::default()
        })
    }

    async fn list_prefix(&self, mut plan: Plan, selection: &Selection) -> Result<Listed, ApiError> {
        let mut items: Vec<Document> = Vec::new();
        let mut page_size = plan.limit.min(MAX_PAGE);
        loop {
            let request = ListRequest {
                prefix: plan.prefix.clone(),
                start: plan.start.clone(),
                limit: page_size,
                at: plan.at,
            };
            let page = self.page(&plan, request).await?;
            let revision = page.revision;
            let full = self
                .take_selected(&page.entries, selection, plan.limit, &mut items)
                .await?;
            let last = full.or_else(|| page.entries.last().map(|entry| entry.key.clone()));
            let is_last_of_page =
                last.as_deref() == page.entries.last().map(|entry| entry.key.as_str());
            let (true, Some(last)) = (page.more || !is_last_of_page, last) else {
                return Ok(Listed {
                    items,
                    resource_version: revision.to_string(),
                    ..Listed::default()
                });
            };
            if plan.limit > 0 && items.len() >= plan.limit {
                let remaining = page.remaining.filter(|_| selection.is_everything());
                return Ok(Listed {
                    items,
                    resource_version: revision.to_string(),
                    continue_token: continue_token::encode(&plan.prefix, &last, revision.0),
                    remaining_item_count: remaining
                        .and_then(|count| i64::try_from(count + unread(&page.entries, &last)).ok()),
                });
            }
            // Selected objects are rare here: the following pages grow, and show the same state as the first.
            page_size = (page_size * 2).min(MAX_PAGE);
            plan = Plan {
                start: format!("{last}\0"),
                at: Some(revision),
                at_least: 0,
                ..plan
            };
        }
    }

    /// Adds the selected objects of a page until the limit is reached; gives the key at which it was.
    async fn take_selected(
        &self,
        entries: &[Entry],
        selection: &Selection,
        limit: usize,
        items: &mut Vec<Document>,
    ) -> Result<Option<String>, ApiError> {
        for (i, entry) in entries.iter().enumerate() {
            if i % YIELD_EVERY == YIELD_EVERY - 1 {
                tokio::task::yield_now().await;
            }
            let object = self.kind.read_entry(entry, self.version)?;
            if selection.matches(&object) {
                items.push(object.into());
                if limit > 0 && items.len() >= limit {
                    return Ok(Some(entry.key.clone()));
                }
            }
        }
        Ok(None)
    }

    /// Reads a page and translates what can be wrong with the state asked for.
    async fn page(&self, plan: &Plan, request: ListRequest) -> Result<Page, ApiError> {
        let page = self.kind.store.list(request).await;
        let page = page.map_err(|error| match (error, &plan.continued) {
            (StorageError::Compacted { .. }, Some(start)) => {
                let mut error = ApiError::new(StatusReason::Expired, CONTINUE_EXPIRED);
                let token = continue_token::encode_inconsistent(&plan.prefix, start);
                error.continue_token = Some(token);
                error
            }
            (error, _) => self.kind.error(error, "list"),
        })?;
        // Lists read the store itself, so a state that it does not have yet will not arrive by waiting.
        if page.revision.0 < plan.at_least {
            return Err(error::too_large(plan.at_least, page.revision));
        }
        Ok(page)
    }
}

/// How many entries of a page lie behind a key.
fn unread(entries: &[Entry], last: &str) -> u64 {
    entries
        .iter()
        .rev()
        .take_while(|entry| entry.key != last)
        .count() as u64
}
