//! list: the objects below a prefix at one revision, complete or in pages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_meta::{ApiError, StatusReason};
use apiloom_storage::cache::{Item, WatchCache};
use apiloom_storage::{Entry, ListRequest, Page, Revision, StorageError};

use super::cached::{self, Freshness};
use super::continue_token;
use super::page_counts::ListPage;
use super::selection::Selection;
use super::stored::StoredReads;
use crate::error;
use crate::large::check_wanted_after;
use crate::objects::cached_object::{self, CachedObject, State};
use crate::objects::converted;
use crate::objects::document::Document;
use crate::objects::items::Items;
use crate::objects::json::Json;
use crate::objects::normalizer::CacheNormalizer;
use crate::objects::readers::Objects;
use crate::options::{ListOptions, RequestContext, VersionMatch};

/// Maximum number of entries read from the store at once in search for selected objects.
const MAX_PAGE: usize = 10_000;

/// Number of objects after which the task yields: the work of about a millisecond, if each has to be decoded.
const YIELD_EVERY: usize = 64;

/// To find and select an object takes as long as to send this many bytes.
const OBJECT_BYTES: usize = 1024;

/// Message for a continue token whose revision is compacted.
const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder \
    of the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The read that a list request needs.
struct Plan {
    prefix: String,
    /// Start key; empty for the whole prefix.
    start: String,
    /// Exact revision to show; `None` for the present state.
    at: Option<Revision>,
    /// Minimum revision of the present state.
    at_least: u64,
    /// Whether any state of the cache will do (resourceVersion "0").
    any: bool,
    /// Maximum number of items; 0 for all.
    limit: usize,
    /// Start key of the client's continue token, from which an expired list can be continued at the present state;
    /// `None` without a token.
    continued: Option<String>,
}

impl Plan {
    /// The read that goes on where the client's continue token says.
    fn continued(self, options: &ListOptions) -> Result<Self, ApiError> {
        let token = continue_token::of_options(options, &self.prefix)?;
        let is_any = options.resource_version == "0";
        Ok(Self {
            continued: Some(token.start.clone()),
            start: token.start,
            at: token.at.map(Revision),
            any: is_any,
            // With resourceVersion "0" the limit is ignored, as in kube-apiserver.
            limit: if is_any { 0 } else { self.limit },
            ..self
        })
    }
}

/// A list of objects, complete or one page.
#[derive(Clone, Debug, Default)]
pub struct ListResult {
    /// The objects, in key order; converted while they are read.
    pub items: Items,
    /// resourceVersion of the state that the list shows.
    pub resource_version: String,
    /// Token for the next page; empty on the last page.
    pub continue_token: String,
    /// Number of objects on the following pages; `None` if it is unknown, or if selectors are used.
    pub remaining_item_count: Option<i64>,
}

/// The end of a page that is not the last: its last object, and the next one.
struct PageEnd<'a> {
    state: &'a State,
    plan: &'a Plan,
    /// Number of objects in the page.
    taken: usize,
    last: &'a Arc<str>,
    next: &'a Arc<str>,
}

impl StoredReads {
    /// Lists the objects of a namespace, or of all namespaces (`None`).
    ///
    /// # Errors
    /// BadRequest for invalid selectors and tokens, Expired for a compacted revision, Timeout for a future one.
    pub(crate) async fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<ListResult, ApiError> {
        let selection = Selection::of(&self.resource, ctx, options).await?;
        let plan = self.plan(namespace, options)?;
        // A page without selectors costs the store no more than the page itself, so the cache need not be filled.
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
            .map(|name| self.resource.kind.keys.key(namespace, name))
        {
            // Of a namespaced kind, a name alone is a key only within one namespace.
            Some(Ok(key)) => self.list_one(&plan, &selection, key).await,
            _ => self.list_prefix(plan, &selection).await,
        }
    }

    /// A list from the watch cache; `None` if it does not have the requested state.
    async fn list_cached(
        &self,
        cache: &WatchCache<CacheNormalizer>,
        plan: &Plan,
        selection: &Selection,
        namespace: Option<&str>,
    ) -> Result<Option<ListResult>, ApiError> {
        let wanted = match plan.at {
            Some(at) => Freshness::Exactly(at),
            None if plan.any || plan.at_least > 0 => Freshness::AtLeast(plan.at_least),
            None => Freshness::Latest,
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
            .map(|name| self.resource.kind.keys.key(namespace, name))
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
        self.list_selected(state, plan, selection, replaced)
            .await
            .map(Some)
    }

    fn listed(
        &self,
        state: &State,
        items: Vec<Arc<Item<CachedObject>>>,
        replaced: u64,
    ) -> ListResult {
        ListResult {
            items: Items::selected(
                (&self.resource.kind, self.resource.version),
                items,
                replaced,
            ),
            resource_version: state.revision().to_string(),
            ..ListResult::default()
        }
    }

    /// Lists everything below a prefix. The objects are read from the snapshot while they are sent.
    async fn list_all(
        &self,
        state: State,
        plan: &Plan,
        replaced: u64,
    ) -> Result<ListResult, ApiError> {
        if let Some(damaged) = state.damaged(&plan.prefix, &plan.start).next() {
            cached_object::object(damaged)?;
        }
        if !self.is_stored()
            || self
                .resource
                .kind
                .has_other_versions
                .load(Ordering::Acquire)
        {
            let mut work = Work::default();
            let versions = &self.resource.kind.versions;
            for item in state.range(&plan.prefix, &plan.start) {
                work.rest().await?;
                converted::check_convertible(versions, item, self.resource.version)?;
            }
        }
        let objects = if plan.start.is_empty() && plan.prefix == self.resource.kind.keys.of_all() {
            state.len()
        } else {
            state.range(&plan.prefix, &plan.start).count()
        };
        self.resource.kind.reads.cached(None, objects, objects);
        let resource_version = state.revision().to_string();
        let objects = Objects::Range {
            state,
            prefix: plan.prefix.clone(),
            start: plan.start.clone(),
        };
        let of = (&self.resource.kind, self.resource.version);
        Ok(ListResult {
            items: Items::cached(of, objects, replaced),
            resource_version,
            ..ListResult::default()
        })
    }

    /// Lists the selected objects, up to the limit.
    async fn list_selected(
        &self,
        state: State,
        plan: &Plan,
        selection: &Selection,
        replaced: u64,
    ) -> Result<ListResult, ApiError> {
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
            work.rest().await?;
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
        if let Some((last, next)) = following {
            let end = PageEnd {
                state: &state,
                plan,
                taken,
                last,
                next,
            };
            self.continue_after(&end, selection, &mut listed);
        }
        Ok(listed)
    }

    /// Sets the continue token of a page that is not the last, and the remaining-item count if there are no selectors.
    fn continue_after(&self, end: &PageEnd<'_>, selection: &Selection, listed: &mut ListResult) {
        let PageEnd {
            state,
            plan,
            taken,
            last,
            next,
        } = *end;
        listed.continue_token = continue_token::encode(&plan.prefix, last, state.revision().0);
        if selection.is_everything() {
            let page = ListPage {
                state,
                prefix: &plan.prefix,
                start: &plan.start,
                taken,
                last,
                next,
            };
            listed.remaining_item_count = i64::try_from(self.page_counts.behind(&page)).ok();
        }
    }

    /// Lists the selected objects of a kind that is converted asynchronously, up to the limit. A complete list is one
    /// batch of the converter, and so is a page without selectors.
    async fn list_in_batches(
        &self,
        state: &State,
        plan: &Plan,
        selection: &Selection,
    ) -> Result<ListResult, ApiError> {
        let mut work = Work::default();
        let mut candidates = Vec::new();
        for item in state.range(&plan.prefix, &plan.start) {
            work.rest().await?;
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
            let versions = &self.resource.kind.versions;
            for item in versions.items_in(&batch, self.resource.version).await? {
                documents.extend(self.select_converted(&item, None, selection)?);
            }
        }
        let taken = documents.len();
        self.resource.kind.reads.cached(None, fetched, taken);
        let mut listed = ListResult {
            items: Items::read(documents),
            resource_version: state.revision().to_string(),
            ..ListResult::default()
        };
        if let Some((last, next)) = following {
            let end = PageEnd {
                state,
                plan,
                taken,
                last,
                next,
            };
            self.continue_after(&end, selection, &mut listed);
        }
        Ok(listed)
    }

    /// Decides what to read, from resourceVersion, resourceVersionMatch, limit and continue.
    fn plan(&self, namespace: Option<&str>, options: &ListOptions) -> Result<Plan, ApiError> {
        let prefix = self.resource.kind.keys.prefix(namespace);
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
        // The token is judged before the resourceVersion is read, as in kube-apiserver.
        if !options.continue_token.is_empty() {
            return plan.continued(options);
        }
        let version = error::version_option(&options.resource_version).map_err(|error| {
            ApiError::bad_request(format!("invalid resource version: {}", error.message))
        })?;
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

    /// Lists by an exact name: reads one key.
    async fn list_one(
        &self,
        plan: &Plan,
        selection: &Selection,
        key: String,
    ) -> Result<ListResult, ApiError> {
        // The key itself comes first of all keys that begin with it.
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
        Ok(ListResult {
            items: Items::read(items),
            resource_version: page.revision.to_string(),
            ..ListResult::default()
        })
    }

    async fn list_prefix(
        &self,
        mut plan: Plan,
        selection: &Selection,
    ) -> Result<ListResult, ApiError> {
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
                return Ok(ListResult {
                    items: Items::read(items),
                    resource_version: revision.to_string(),
                    ..ListResult::default()
                });
            };
            if plan.limit > 0 && items.len() >= plan.limit {
                let remaining = page.remaining.filter(|_| selection.is_everything());
                self.resource.kind.reads.stored(fetched, items.len());
                return Ok(ListResult {
                    items: Items::read(items),
                    resource_version: revision.to_string(),
                    continue_token: continue_token::encode(&plan.prefix, &last, revision.0),
                    remaining_item_count: remaining
                        .and_then(|count| i64::try_from(count + unread(&page.entries, &last)).ok()),
                });
            }
            // Selected objects are rare here, so the pages grow. All pages are read at the revision of the first.
            page_size = (page_size * 2).min(MAX_PAGE);
            plan = Plan {
                start: format!("{last}\0"),
                at: Some(revision),
                at_least: 0,
                ..plan
            };
        }
    }

    /// Appends the selected objects of a page until the limit is reached; returns the key at which it was.
    async fn take_selected(
        &self,
        entries: &[Entry],
        selection: &Selection,
        limit: usize,
        items: &mut Vec<Document>,
    ) -> Result<Option<String>, ApiError> {
        let mut work = Work::default();
        // A page is one batch of a converter; without a converter, one object at a time is held.
        let mut batch = if self.resource.kind.versions.is_asynchronous() {
            self.resource
                .kind
                .entries_in(entries, self.resource.version)
                .await?
                .into_iter()
        } else {
            Vec::new().into_iter()
        };
        for entry in entries {
            work.rest().await?;
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
                // As JSON, which takes a fraction of the memory of the decoded object.
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

    /// Reads a page from the store, with the error of the API if the revision is not available.
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
        // Lists read the store itself; waiting does not produce a future revision.
        if page.revision.0 < plan.at_least {
            return Err(error::too_large(plan.at_least, page.revision));
        }
        Ok(page)
    }
}

/// Number of entries of a page behind a key.
fn unread(entries: &[Entry], last: &str) -> u64 {
    entries
        .iter()
        .rev()
        .take_while(|entry| entry.key != last)
        .count() as u64
}

/// Counts processed objects, yields to other tasks at intervals, and asks more often than that whether the work is still wanted. What looks
/// into a large object asks by itself.
#[derive(Default)]
pub(super) struct Work(usize);

impl Work {
    /// Counts one more object; yields after every [`YIELD_EVERY`].
    ///
    /// # Errors
    /// As [`check_wanted_after`].
    pub(super) async fn rest(&mut self) -> Result<(), ApiError> {
        self.0 += 1;
        if self.0.is_multiple_of(YIELD_EVERY) {
            tokio::task::yield_now().await;
        }
        check_wanted_after(OBJECT_BYTES)
    }
}
