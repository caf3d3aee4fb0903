//! list: the objects of a prefix at one state, whole or in pages.

use std::sync::Arc;

use apiloom_meta::{ApiError, StatusReason};
use apiloom_storage::cache::{Item, WatchCache};
use apiloom_storage::{Entry, ListRequest, Page, Revision, StorageError};

use super::Reads;
use super::cached::{self, Wanted};
use super::continue_token;
use super::remaining::Given;
use super::selection::Selection;
use crate::registry::error;
use crate::registry::objects::cached_object::{self, CachedObject, State};
use crate::registry::objects::converted;
use crate::registry::objects::document::Document;
use crate::registry::objects::items::Items;
use crate::registry::objects::json::Json;
use crate::registry::objects::served::Served;
use crate::registry::options::{ListOptions, RequestContext, VersionMatch};

/// The most keys read at once while looking for selected objects.
const MAX_PAGE: usize = 10_000;

/// How many objects are looked at before other requests get their turn on the thread: at most about a millisecond's
/// worth, when each has to be decoded.
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

/// A list of objects.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The objects, in key order.
    pub items: Items,
    /// The state the list shows.
    pub resource_version: String,
    /// Token for the next page; empty at the end.
    pub continue_token: String,
    /// How many follow, when known and nothing was selected.
    pub remaining_item_count: Option<i64>,
}

impl Reads {
    /// Objects of a namespace, or of all of them (`None`).
    ///
    /// # Errors
    /// BadRequest for selectors and tokens, Expired, Timeout.
    pub async fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Listed, ApiError> {
        let selection = self.selection(ctx, options).await?;
        let plan = self.plan(namespace, options)?;
        // A page of everything costs the store no more than it gives.
        if options.limit == 0 || !selection.is_everything() {
            self.check_filled()?;
        }
        if let Some(cache) = &self.resource.cache
            && let Some(listed) = self
                .list_cached(cache, &plan, &selection, namespace)
                .await?
        {
            return Ok(listed);
        }
        match selection
            .name()
            .map(|name| self.resource.kind.key(namespace, name))
        {
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
        let replaced = cache.replaced_bytes();
        let Some(state) = self.state(cache, wanted, "list").await? else {
            return Ok(None);
        };
        if self.is_awaited() {
            return self
                .list_in_batches(&state, plan, selection)
                .await
                .map(Some);
        }
        if let Some(Ok(key)) = selection
            .name()
            .map(|name| self.resource.kind.key(namespace, name))
        {
            let mut items = Vec::new();
            let item = state
                .get(&key)
                .filter(|item| item.key.as_ref() >= plan.start.as_str());
            if let Some(item) = item
                && self.is_selected(item, selection)?
            {
                items.push(Arc::clone(item));
            }
            self.resource.kind.reads.cached(None, 1, items.len());
            return Ok(Some(self.listed(&state, items, replaced)));
        }
        if plan.limit == 0 && selection.is_everything() {
            return self.list_all(state, plan, replaced).await.map(Some);
        }
        self.list_chosen(state, plan, selection, replaced)
            .await
            .map(Some)
    }

    fn listed(&self, state: &State, items: Vec<Arc<Item<CachedObject>>>, replaced: u64) -> Listed {
        Listed {
            items: Items::chosen(
                (&self.resource.kind, self.resource.version),
                items,
                replaced,
            ),
            resource_version: state.revision().to_string(),
            ..Listed::default()
        }
    }

    /// Everything below a prefix, which is read from the state while it is sent.
    async fn list_all(&self, state: State, plan: &Plan, replaced: u64) -> Result<Listed, ApiError> {
        if let Some(damaged) = state.damaged(&plan.prefix, &plan.start).next() {
            cached_object::object(damaged)?;
        }
        if !self.is_stored() {
            let mut work = Work::default();
            for item in state.range(&plan.prefix, &plan.start) {
                work.rest().await;
                converted::try_once(&self.resource.kind, item, self.resource.version)?;
            }
        }
        let objects = match plan.start.is_empty() && plan.prefix == self.resource.kind.prefix(None)
        {
            true => state.len(),
            false => state.range(&plan.prefix, &plan.start).count(),
        };
        self.resource.kind.reads.cached(None, objects, objects);
        let resource_version = state.revision().to_string();
        let range = (plan.prefix.as_str(), plan.start.as_str());
        Ok(Listed {
            items: Items::all(
                (&self.resource.kind, self.resource.version),
                state,
                range,
                replaced,
            ),
            resource_version,
            ..Listed::default()
        })
    }

    /// What is selected, up to the limit.
    async fn list_chosen(
        &self,
        state: State,
        plan: &Plan,
        selection: &Selection,
        replaced: u64,
    ) -> Result<Listed, ApiError> {
        let mut chosen = Vec::new();
        let mut following = None;
        let mut last: Option<&Arc<str>> = None;
        let mut work = Work::default();
        let mut fetched = 0;
        for item in cached::candidates(self, &state, selection, &plan.prefix, &plan.start) {
            if plan.limit > 0 && chosen.len() >= plan.limit {
                following = last.zip(Some(&item.key));
                break;
            }
            work.rest().await;
            last = Some(&item.key);
            fetched += 1;
            if self.is_selected(item, selection)? {
                chosen.push(Arc::clone(item));
            }
        }
        let taken = chosen.len();
        let index = self.index_of(selection).map(|(index, _)| index);
        self.resource.kind.reads.cached(index, fetched, taken);
        let mut listed = self.listed(&state, chosen, replaced);
        if let Some(following) = following {
            self.continue_after(following, &state, plan, selection, taken, &mut listed);
        }
        Ok(listed)
    }

    /// Says in a page of so many objects, whose last key and the one behind it are given, that others follow, and how many if
    /// nothing was selected.
    fn continue_after(
        &self,
        (last, next): (&Arc<str>, &Arc<str>),
        state: &State,
        plan: &Plan,
        selection: &Selection,
        taken: usize,
        listed: &mut Listed,
    ) {
        listed.continue_token = continue_token::encode(&plan.prefix, last, state.revision().0);
        if selection.is_everything() {
            let page = Given {
                state,
                prefix: &plan.prefix,
                start: &plan.start,
                taken,
                last,
                next,
            };
            listed.remaining_item_count = i64::try_from(self.remaining.behind(&page)).ok();
        }
    }

    /// What is selected of a kind whose objects are converted asynchronously, up to the limit: one batch for a list, and for
    /// a page that takes all objects that it looks at.
    async fn list_in_batches(
        &self,
        state: &State,
        plan: &Plan,
        selection: &Selection,
    ) -> Result<Listed, ApiError> {
        let mut work = Work::default();
        let mut candidates = Vec::new();
        for item in state.range(&plan.prefix, &plan.start) {
            work.rest().await;
            if !self.is_left_out(item, selection) {
                candidates.push(item);
            }
        }
        let fetched = candidates.len();
        let mut candidates = candidates.into_iter().peekable();
        let mut documents = Vec::new();
        let mut following = None;
        let mut last: Option<&Arc<str>> = None;
        while let Some(next) = candidates.peek() {
            let room = match plan.limit {
                0 => usize::MAX,
                limit => limit.saturating_sub(documents.len()),
            };
            if room == 0 {
                following = last.zip(Some(&next.key));
                break;
            }
            let batch: Vec<_> = candidates.by_ref().take(room).collect();
            last = batch.last().map(|item| &item.key);
            let batch: Vec<_> = batch.into_iter().cloned().collect();
            for item in self
                .resource
                .kind
                .items_in(&batch, self.resource.version)
                .await?
            {
                documents.extend(self.select_converted(&item, None, selection)?);
            }
        }
        let taken = documents.len();
        self.resource.kind.reads.cached(None, fetched, taken);
        let mut listed = Listed {
            items: Items::read(documents),
            resource_version: state.revision().to_string(),
            ..Listed::default()
        };
        if let Some(following) = following {
            self.continue_after(following, state, plan, selection, taken, &mut listed);
        }
        Ok(listed)
    }

    /// Which state and which keys the options ask for: the matrix of resourceVersion, match, limit and continue.
    fn plan(&self, namespace: Option<&str>, options: &ListOptions) -> Result<Plan, ApiError> {
        let prefix = self.resource.kind.prefix(namespace);
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
            uncounted: true,
        };
        let page = self.page(plan, request).await?;
        let entry = page
            .entries
            .first()
            .filter(|entry| entry.key == key && entry.key >= plan.start);
        let object = match entry {
            Some(entry) => Some(
                self.resource
                    .kind
                    .entry_in(entry, self.resource.version)
                    .await?,
            ),
            None => None,
        };
        let items: Vec<Document> = object
            .into_iter()
            .filter(|object| selection.matches(object))
            .map(Document::from)
            .collect();
        self.resource
            .kind
            .reads
            .stored(page.entries.len(), items.len());
        Ok(Listed {
            items: Items::read(items),
            resource_version: page.revision.to_string(),
            ..Listed::default()
        })
    }

    async fn list_prefix(&self, mut plan: Plan, selection: &Selection) -> Result<Listed, ApiError> {
        let mut items: Vec<Document> = Vec::new();
        let mut page_size = plan.limit.min(MAX_PAGE);
        let mut fetched = 0;
        loop {
            let request = ListRequest {
                prefix: plan.prefix.clone(),
                start: plan.start.clone(),
                limit: page_size,
                at: plan.at,
                uncounted: !selection.is_everything(),
            };
            let page = self.page(&plan, request).await?;
            let revision = page.revision;
            let full = self
                .take_selected(&page.entries, selection, plan.limit, &mut items)
                .await?;
            let last = full.or_else(|| page.entries.last().map(|entry| entry.key.clone()));
            let is_last_of_page =
                last.as_deref() == page.entries.last().map(|entry| entry.key.as_str());
            fetched += page.entries.len();
            let (true, Some(last)) = (page.more || !is_last_of_page, last) else {
                self.resource.kind.reads.stored(fetched, items.len());
                return Ok(Listed {
                    items: Items::read(items),
                    resource_version: revision.to_string(),
                    ..Listed::default()
                });
            };
            if plan.limit > 0 && items.len() >= plan.limit {
                let remaining = page.remaining.filter(|_| selection.is_everything());
                self.resource.kind.reads.stored(fetched, items.len());
                return Ok(Listed {
                    items: Items::read(items),
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
        let mut work = Work::default();
        // A page is one batch of a converter; otherwise no more is held than the object of the moment.
        let mut batch = match self.resource.kind.is_asynchronous() {
            true => self
                .resource
                .kind
                .entries_in(entries, self.resource.version)
                .await?
                .into_iter(),
            false => Vec::new().into_iter(),
        };
        for entry in entries {
            work.rest().await;
            let object = match batch.next() {
                Some(object) => object,
                None => {
                    let (key, bytes) = (&entry.key, &entry.value);
                    self.resource
                        .kind
                        .read(key, bytes, entry.revision, self.resource.version)?
                }
            };
            if selection.matches(&object) {
                // As the JSON that is sent, which takes a fraction of the object's own memory.
                items.push(Document::Converted(Json::of(
                    &object,
                    self.resource.version().schema(),
                )));
                if limit > 0 && items.len() >= limit {
                    return Ok(Some(entry.key.clone()));
                }
            }
        }
        Ok(None)
    }

    /// Reads a page and translates what can be wrong with the state asked for.
    async fn page(&self, plan: &Plan, request: ListRequest) -> Result<Page, ApiError> {
        let page = self.resource.kind.store.list(request).await;
        let page = page.map_err(|error| match (error, &plan.continued) {
            (StorageError::Compacted { .. }, Some(start)) => {
                let mut error = ApiError::new(StatusReason::Expired, CONTINUE_EXPIRED);
                let token = continue_token::encode_inconsistent(&plan.prefix, start);
                error.continue_token = Some(token);
                error
            }
            (error, _) => self.resource.kind.error(error, "list"),
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

/// Counts objects, and lets others have the thread after some of them.
#[derive(Default)]
struct Work(usize);

impl Work {
    /// Another object is to be looked at.
    async fn rest(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(YIELD_EVERY) {
            tokio::task::yield_now().await;
        }
    }
}
