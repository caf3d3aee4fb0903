//! A server that follows a script: for each request, the text that is expected and the answer.
//!
//! A list is answered by objects `a@1`, bad objects `!a@1`, `rv=5` and `continue=c`. A watch sends `+a@1`, `~a@2`, `-a@3`,
//! a bookmark `b@4`, one that ends the initial events `end@5`, and `!a@6`; `wait=30` waits that many seconds, `eof` ends it,
//! and at the end of the text it stays open. An error is a code, `large` (504, too large resourceVersion), `break`
//! (the connection), `progress` (500, no progress notifications) or `429/7` (with Retry-After): alone it answers the request,
//! in a watch it ends the stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use futures_util::stream::{StreamExt, unfold};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::cache::object::ObjectKey;
use crate::cache::source::{
    ListItem, ListPage, ListRequest, ListWatch, SourceError, SourceErrorKind, Undecodable,
    WatchItem, WatchRequest, WatchStream,
};
use crate::cache::test_object::{Pod, pod};

/// The characters that the answers to a list may have together.
pub(super) const MAX_LIST_BYTES: usize = 4096;

/// A request that arrived.
#[derive(Clone, Debug)]
pub(in crate::cache) struct Request {
    pub(super) at: Duration,
    pub(super) text: String,
    /// `timeoutSeconds` of a watch.
    pub(super) timeout: Duration,
}

pub(in crate::cache) struct Script {
    start: Instant,
    answers: Mutex<VecDeque<String>>,
    pub(in crate::cache) requests: Mutex<Vec<Request>>,
}

impl Script {
    pub(in crate::cache) fn new(answers: impl IntoIterator<Item = String>) -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::new(Vec::new()),
        })
    }

    /// The requests so far.
    pub(in crate::cache) fn texts(&self) -> Vec<String> {
        let requests = self.requests.lock();
        requests
            .iter()
            .map(|request| request.text.clone())
            .collect()
    }

    fn next(&self, text: String, timeout: Duration) -> Option<String> {
        let at = self.start.elapsed();
        self.requests.lock().push(Request { at, text, timeout });
        self.answers.lock().pop_front()
    }
}

/// `a@1`.
fn parse(text: &str) -> Pod {
    let (name, version) = text.split_once('@').expect("a name and a version");
    let (name, uid) = name.split_once('/').unwrap_or((name, name));
    pod(name, version.parse().expect("a version")).uid(uid)
}

fn bad(text: &str) -> Undecodable {
    let pod = parse(text);
    Undecodable {
        key: Some(ObjectKey::of(&pod)),
        resource_version: Some(pod.version),
        error: "not a pod".to_owned(),
    }
}

pub(super) fn error(text: &str) -> Option<SourceError> {
    let (code, seconds) = text.split_once('/').unwrap_or((text, ""));
    let kind = match code {
        "410" => SourceErrorKind::Expired,
        "large" => SourceErrorKind::TooLargeResourceVersion,
        "break" => SourceErrorKind::Transport,
        "progress" => {
            let message = "the required storage feature RequestWatchProgress is disabled";
            let status =
                json!({"kind": "Status", "apiVersion": "v1", "code": 500, "message": message});
            let status = serde_json::from_value(status).expect("a status");
            return Some(SourceError::from_status(&status));
        }
        "429" | "500" | "503" => SourceErrorKind::Unavailable,
        "400" | "401" | "403" | "404" | "405" | "422" => SourceErrorKind::Refused,
        _ => return None,
    };
    let mut error = SourceError::new(kind, text);
    error.code = code.parse().ok();
    error.retry_after = seconds.parse().ok().map(Duration::from_secs);
    Some(error)
}

fn page(text: &str) -> Result<ListPage<Pod>, SourceError> {
    if let Some(error) = error(text) {
        return Err(error);
    }
    let mut page = ListPage {
        items: Vec::new(),
        resource_version: String::new(),
        continue_token: None,
        bytes: text.len(),
    };
    for word in text.split_whitespace() {
        if let Some(version) = word.strip_prefix("rv=") {
            page.resource_version = version.to_owned();
        } else if let Some(token) = word.strip_prefix("continue=") {
            page.continue_token = Some(token.to_owned());
        } else if let Some(object) = word.strip_prefix('!') {
            page.items.push(ListItem::Undecodable(bad(object)));
        } else {
            page.items.push(ListItem::Object(parse(word)));
        }
    }
    Ok(page)
}

fn item(word: &str) -> Result<WatchItem<Pod>, SourceError> {
    if let Some(error) = error(word) {
        return Err(error);
    }
    let bookmark = |version: &str, ends_initial_events| WatchItem::Bookmark {
        resource_version: version.to_owned(),
        ends_initial_events,
    };
    if let Some(version) = word.strip_prefix("b@") {
        return Ok(bookmark(version, false));
    }
    if let Some(version) = word.strip_prefix("end@") {
        return Ok(bookmark(version, true));
    }
    let (kind, object) = word.split_at(1);
    Ok(match kind {
        "+" => WatchItem::Added(parse(object)),
        "~" => WatchItem::Modified(parse(object)),
        "-" => WatchItem::Deleted(parse(object)),
        _ => WatchItem::Undecodable(bad(object)),
    })
}

fn stream(text: &str) -> WatchStream<Pod> {
    let words: VecDeque<String> = text.split_whitespace().map(str::to_owned).collect();
    let next = |mut words: VecDeque<String>| async move {
        loop {
            let Some(word) = words.pop_front() else {
                return pending().await;
            };
            if word == "eof" {
                return None;
            }
            let Some(seconds) = word.strip_prefix("wait=") else {
                return Some((item(&word), words));
            };
            sleep(Duration::from_secs_f64(seconds.parse().expect("seconds"))).await;
        }
    };
    unfold(words, next).boxed()
}

impl ListWatch<Pod> for Script {
    fn max_list_bytes(&self) -> usize {
        MAX_LIST_BYTES
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<Pod>, SourceError>> {
        let mut text = match request.continue_token {
            Some(token) => format!("list continue={token}{}", request.resource_version),
            None => format!("list rv={}", request.resource_version),
        };
        if let Some(limit) = request.limit {
            text.push_str(&format!(" limit={limit}"));
        }
        match self.next(text, Duration::ZERO) {
            Some(answer) => ready(page(&answer)).boxed(),
            None => pending().boxed(),
        }
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<Pod>, SourceError>> {
        let verb = if request.initial_events {
            "stream"
        } else {
            "watch"
        };
        let text = format!("{verb} rv={}", request.resource_version);
        let Some(answer) = self.next(text, request.timeout) else {
            return pending().boxed();
        };
        // An error alone is the answer of the request; behind a blank it comes in the stream.
        let result = match error(&answer) {
            Some(error) => Err(error),
            None => Ok(stream(&answer)),
        };
        ready(result).boxed()
    }
}
