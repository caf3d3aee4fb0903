//! Get, list and watch by code of the program: what the code answers is checked, selected and cut into pages.
//!
//! The code may answer more than was asked for, since namespace and selectors are hints for it; nothing else reaches the client.

use std::borrow::Cow;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::ApiError;
use futures_util::StreamExt as _;

use super::code_events::{CodeEvents, OpenWatch};
use super::continue_token;
use super::list::{ListResult, Work};
use super::selection::Selection;
use crate::error::handler_timeout;
use crate::objects::code::{CodeList, Read};
use crate::objects::document::Document;
use crate::objects::items::Items;
use crate::objects::json::Json;
use crate::objects::versioned_resource::VersionedResource;
use crate::options::{ListOptions, RequestContext, VersionMatch};

/// Time in which the code has to begin a watch, whose request has no deadline: half of the one that other requests have.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Get, list and watch of one resource in one version, by code.
pub(crate) struct CodeReads {
    resource: Arc<VersionedResource>,
    code: Arc<dyn Read>,
}

impl fmt::Debug for CodeReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeReads")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

/// The objects that a request lists.
struct WantedObjects<'a> {
    /// Prefix of their keys.
    prefix: &'a str,
    /// Key at which they begin; empty for all.
    start: &'a str,
    selection: &'a Selection,
}

impl CodeReads {
    pub(super) fn new(resource: Arc<VersionedResource>, code: Arc<dyn Read>) -> Self {
        Self { resource, code }
    }

    /// Reads one object.
    ///
    /// # Errors
    /// Those of the code; InternalError if it answers another object.
    pub(crate) async fn get(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Document, ApiError> {
        let code = self.code.as_ref();
        let read = self.resource.read_by_code(code, ctx, namespace, name);
        read.await.map(Document::from)
    }

    /// Lists the objects of a namespace, or of all namespaces (`None`).
    ///
    /// # Errors
    /// BadRequest for invalid selectors and tokens; those of the code; InternalError for objects without a place.
    pub(crate) async fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<ListResult, ApiError> {
        let selection = Selection::of(&self.resource, ctx, options).await?;
        let prefix = self.resource.kind.keys.prefix(namespace);
        let cuts_pages = self.code.cuts_pages();
        let start = if cuts_pages || options.continue_token.is_empty() {
            String::new()
        } else {
            continue_token::of_options(options, &prefix)?.start
        };
        let asked = if cuts_pages {
            Cow::Borrowed(options)
        } else {
            Cow::Owned(ListOptions {
                limit: 0,
                continue_token: String::new(),
                ..options.clone()
            })
        };
        let mut listed = self.code.list(ctx, namespace, &asked).await?;
        if !cuts_pages {
            self.check_complete(&listed)?;
        }
        let wanted = WantedObjects {
            prefix: &prefix,
            start: &start,
            selection: &selection,
        };
        let mut chosen = self.chosen(&mut listed, &wanted).await?;
        let mut result = ListResult {
            resource_version: listed.resource_version,
            continue_token: listed.continue_token,
            remaining_item_count: listed.remaining_item_count,
            items: Items::default(),
        };
        if !cuts_pages {
            chosen.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
            let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
            if limit > 0 && chosen.len() > limit {
                let remaining = chosen.len() - limit;
                chosen.truncate(limit);
                let last = chosen.last().map_or("", |(key, _)| key.as_str());
                // NUL is the smallest byte, so this is the smallest key greater than the last one.
                let next = format!("{last}\0");
                result.continue_token = continue_token::encode_inconsistent(&prefix, &next);
                result.remaining_item_count = i64::try_from(remaining).ok();
            }
        }
        // What follows may be left out by selectors, so its number is unknown, as in Kubernetes.
        result.remaining_item_count = result
            .remaining_item_count
            .filter(|_| selection.is_everything());
        let documents = chosen.into_iter().map(|(_, document)| document);
        result.items = Items::read(documents.collect());
        Ok(result)
    }

    /// InternalError if the code answers a page although it was asked for all objects: those that follow would be missing.
    fn check_complete(&self, listed: &CodeList) -> Result<(), ApiError> {
        if listed.continue_token.is_empty() {
            return Ok(());
        }
        Err(ApiError::internal(format!(
            "the code of {} answered with a page of a list where no limit was asked for",
            self.resource.group_resource()
        )))
    }

    /// The wanted objects of a list, with their keys, in the order of the list.
    async fn chosen(
        &self,
        listed: &mut CodeList,
        wanted: &WantedObjects<'_>,
    ) -> Result<Vec<(String, Document)>, ApiError> {
        let mut work = Work::default();
        let mut chosen = Vec::new();
        for object in listed.items.by_ref() {
            work.rest().await?;
            let mut object = object?;
            let key = self.resource.identify(&mut object)?;
            let is_wanted = key.starts_with(wanted.prefix) && *key >= *wanted.start;
            if is_wanted && wanted.selection.matches(&object) {
                // As JSON, which takes a fraction of the memory of the decoded object.
                let json = Json::of(&object, self.resource.schema());
                chosen.push((key, Document::Converted(json)));
            }
        }
        Ok(chosen)
    }

    /// Watches the objects of a namespace, or of all namespaces: those that exist, if the client asked for them, and the
    /// changes after them.
    ///
    /// # Errors
    /// BadRequest for invalid selectors; those of the code; Timeout if it does not begin in time.
    pub(crate) async fn watch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<CodeEvents, ApiError> {
        let selection = Selection::of(&self.resource, ctx, options).await?;
        let given = options.timeout_seconds.filter(|seconds| *seconds > 0);
        let timeout = given.map_or(OPEN_TIMEOUT, Duration::from_secs);
        let opened = self.open(ctx, namespace, options, &selection);
        let opened = tokio::time::timeout(timeout.min(OPEN_TIMEOUT), opened).await;
        let opened = opened.map_err(|_| handler_timeout())??;
        Ok(CodeEvents::new(
            Arc::clone(&self.resource),
            self.resource.kind.keys.prefix(namespace),
            selection,
            options,
            opened,
        ))
    }

    async fn open(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
        selection: &Selection,
    ) -> Result<OpenWatch, ApiError> {
        let is_any = matches!(&*options.resource_version, "" | "0");
        let mut asked = ListOptions {
            label_selector: options.label_selector.clone(),
            field_selector: options.field_selector.clone(),
            ..ListOptions::default()
        };
        if !is_any {
            asked.resource_version.clone_from(&options.resource_version);
        }
        let mut initial = None;
        if options.send_initial_events.unwrap_or(is_any) {
            asked.version_match = (!is_any).then_some(VersionMatch::NotOlderThan);
            let mut listed = self.code.list(ctx, namespace, &asked).await?;
            self.check_complete(&listed)?;
            if listed.resource_version.is_empty() {
                return Err(ApiError::internal(format!(
                    "the code of {} lists without a resourceVersion, from which a watch could go on",
                    self.resource.group_resource()
                )));
            }
            let wanted = WantedObjects {
                prefix: &self.resource.kind.keys.prefix(namespace),
                start: "",
                selection,
            };
            let mut chosen = self.chosen(&mut listed, &wanted).await?;
            chosen.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
            initial = Some(chosen.into_iter().map(|(_, document)| document).collect());
            asked.resource_version = listed.resource_version;
            asked.version_match = None;
        }
        let changes = self.code.watch(ctx, namespace, &asked).await?;
        // A panic would end all requests of the connection, which polls the stream.
        let changes = AssertUnwindSafe(changes).catch_unwind();
        let changes = changes.map(|change| {
            change.unwrap_or_else(|_| Err(ApiError::internal("the code of the watch panicked")))
        });
        Ok(OpenWatch {
            initial,
            delivered: asked.resource_version,
            changes: changes.boxed(),
        })
    }
}
