//! `ListWatch`: what a reflector needs of a server. It is implemented for typed clients, and by a script in tests.

use std::time::Duration;

use apiloom_meta::Status;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::object::ObjectKey;

/// Lists and watches the objects of one resource, with fixed scope and selectors.
pub trait ListWatch<T>: Send + Sync + 'static {
    /// Reads one page of a list.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<T>, SourceError>>;
    /// Opens a watch; the result is there when the server has accepted it. A stream that ends without an error was ended
    /// by the server in order; an ERROR event of the server, and a connection that breaks, are errors of the stream,
    /// which ends then.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<T>, SourceError>>;
    /// Whether a watch can always begin with the present state ([`WatchRequest::initial_events`]), also if the server is known
    /// to refuse that. Default false.
    fn always_streams(&self) -> bool {
        false
    }
    /// Most bytes of all pages of a list together, as [`ListPage::bytes`] counts them. Default: no limit.
    fn max_list_bytes(&self) -> usize {
        usize::MAX
    }
}

impl<T, S: ListWatch<T> + ?Sized> ListWatch<T> for std::sync::Arc<S> {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<T>, SourceError>> {
        (**self).list(request)
    }
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<T>, SourceError>> {
        (**self).watch(request)
    }
    fn always_streams(&self) -> bool {
        (**self).always_streams()
    }
    fn max_list_bytes(&self) -> usize {
        (**self).max_list_bytes()
    }
}

/// The items of a watch.
pub type WatchStream<T> = BoxStream<'static, Result<WatchItem<T>, SourceError>>;

/// Parameters of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// `resourceVersion`; empty for the most recent state, `0` for any state.
    pub resource_version: String,
    /// `limit`; `None` for all objects.
    pub limit: Option<u32>,
    /// `continue`, of the page before.
    pub continue_token: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct ListPage<T> {
    /// The objects of the page.
    pub items: Vec<ListItem<T>>,
    /// The state that all pages of the list show; empty if the server has no versions.
    pub resource_version: String,
    /// Token of the next page; `None` for the last one.
    pub continue_token: Option<String>,
    /// The length of the page as it arrived, for the limit of the whole list; 0 without one.
    pub bytes: usize,
}

/// An item of a list.
#[derive(Clone, Debug)]
pub enum ListItem<T> {
    /// An object.
    Object(T),
    /// An item that is no such object.
    Undecodable(Undecodable),
}

/// An object that cannot be cached: it cannot be decoded, or the transformation of the cache fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object {} cannot be cached: {error}", .key.as_ref().map_or_else(|| "without a name".to_owned(), ToString::to_string))]
pub struct Undecodable {
    /// Its key, if that can be read.
    pub key: Option<ObjectKey>,
    /// Its resourceVersion, if that can be read.
    pub resource_version: Option<String>,
    /// What is wrong with it.
    pub error: String,
}

/// Parameters of a watch. Bookmarks are always asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// `resourceVersion`; empty for the most recent state.
    pub resource_version: String,
    /// `timeoutSeconds`: the server ends the watch after this time.
    pub timeout: Duration,
    /// Whether the state is sent first (`sendInitialEvents=true`, `resourceVersionMatch=NotOlderThan`).
    pub initial_events: bool,
}

/// An item of a watch.
#[derive(Clone, Debug)]
pub enum WatchItem<T> {
    /// ADDED.
    Added(T),
    /// MODIFIED.
    Modified(T),
    /// DELETED, with the last state of the object and the resourceVersion of its deletion.
    Deleted(T),
    /// BOOKMARK: all events as far as this state were sent.
    Bookmark {
        /// The state.
        resource_version: String,
        /// Whether it has the annotation `k8s.io/initial-events-end: "true"`.
        ends_initial_events: bool,
    },
    /// An event of one of the first three types whose object cannot be decoded.
    Undecodable(Undecodable),
}

/// What a reflector does after an error follows from its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceErrorKind {
    /// 410: the server does not know the resourceVersion any more; the objects must be listed again.
    Expired,
    /// 504 with this cause: the server does not know the resourceVersion yet.
    TooLargeResourceVersion,
    /// 4xx: the server does not accept the request. Or 500: its storage has no progress notifications, which streaming lists
    /// need.
    Refused,
    /// 429 and 5xx: the server asks to come back later, or has failed.
    Unavailable,
    /// The connection could not be made, broke, or sent what is not the protocol.
    Transport,
}

/// A failure of a list or a watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// The kind of failure.
    pub kind: SourceErrorKind,
    /// The HTTP status code, or the code of the Status, if there is one.
    pub code: Option<u16>,
    /// The message.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

/// How a server says that its storage cannot tell when it has sent all changes up to a version: etcd before 3.4.31 and 3.5.13.
const NO_PROGRESS: &str = "storage feature RequestWatchProgress is disabled";

impl SourceError {
    /// An error of this kind.
    pub fn new(kind: SourceErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: message.into(),
            retry_after: None,
        }
    }

    /// An error that the server reports, in a response or in a watch.
    pub fn from_status(status: &Status) -> Self {
        let details = status.details.as_ref();
        let is_too_large = details.is_some_and(|details| {
            let mut causes = details.causes.iter();
            causes.any(|cause| cause.reason == "ResourceVersionTooLarge")
        });
        // Servers before Kubernetes 1.16 report the condition by its message alone.
        let is_too_large = is_too_large || status.message.contains("Too large resource version");
        // The error has no reason of its own.
        let has_no_progress = status.message.contains(NO_PROGRESS);
        let kind = match (status.code, &*status.reason) {
            _ if is_too_large => SourceErrorKind::TooLargeResourceVersion,
            _ if has_no_progress => SourceErrorKind::Refused,
            (Some(410), _) | (_, "Expired" | "Gone") => SourceErrorKind::Expired,
            (Some(429), _) => SourceErrorKind::Unavailable,
            (Some(400..=499), _) => SourceErrorKind::Refused,
            _ => SourceErrorKind::Unavailable,
        };
        let seconds = details.map_or(0, |details| details.retry_after_seconds);
        Self {
            kind,
            code: status.code,
            message: status.message.clone(),
            retry_after: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: &str, kind: SourceErrorKind, retry_after: Option<u64>) {
        let status = format!(r#"{{"kind":"Status","apiVersion":"v1",{status}}}"#);
        let status: Status = serde_json::from_str(&status).expect("a status");
        let error = SourceError::from_status(&status);
        assert_eq!(error.kind, kind, "{status:?}");
        assert_eq!(error.retry_after, retry_after.map(Duration::from_secs));
    }

    #[test]
    fn the_kind_of_an_error_is_that_of_its_status() {
        use SourceErrorKind::{Expired, Refused, TooLargeResourceVersion, Unavailable};
        check(r#""reason":"Expired","code":410"#, Expired, None);
        check(r#""reason":"Gone""#, Expired, None);
        check(r#""code":410"#, Expired, None);
        check(
            r#""reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}"#,
            TooLargeResourceVersion,
            Some(1),
        );
        check(
            r#""reason":"Timeout","code":504,"message":"Too large resource version: 9, current: 5""#,
            TooLargeResourceVersion,
            None,
        );
        check(r#""reason":"Timeout","code":504"#, Unavailable, None);
        check(
            r#""code":429,"details":{"retryAfterSeconds":3}"#,
            Unavailable,
            Some(3),
        );
        for code in [400, 401, 403, 404, 405, 422] {
            check(&format!(r#""code":{code}"#), Refused, None);
        }
        check(r#""code":500"#, Unavailable, None);
        check(
            r#""code":500,"message":"a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled""#,
            Refused,
            None,
        );
        check(r#""message":"without anything""#, Unavailable, None);
    }
}
