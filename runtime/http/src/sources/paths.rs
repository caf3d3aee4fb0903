//! Handlers of a program for paths outside of the API: an exact path, or all paths below a prefix.
//!
//! They come after all filters. An exact path comes before the documents of the server, which it may replace; a prefix comes
//! after them, and before the next server of the chain.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_registry::UserInfo;
use apiloom_registry::auth::BoxError;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Response, StatusCode};

use super::route_list::ListedRoute;
use super::source::{Route, Source};
use crate::observation::observe::{Observation, path_labels};
use crate::part_name::PartName;
use crate::request::query::Query;
use crate::response::{Body, plain};
use crate::shape::body::RequestBody;
use crate::streams::shutdown_signal::ShutdownSignal;
use crate::verbs::call::{Call, Serving};
use crate::verbs::connect::{ConnectBody, headers_for_other_server, http_response, until_stopped};

/// A request for a path of a [`PathHandler`].
#[non_exhaustive]
pub struct PathRequest {
    /// The user.
    pub user: Arc<UserInfo>,
    /// The method.
    pub method: Method,
    /// The decoded path, as it was authorized.
    pub path: String,
    /// The headers, without credentials and without those about the connection, as in
    /// [`ConnectRequest`](crate::ConnectRequest::headers).
    pub headers: HeaderMap,
    /// The body, which is read as the handler reads it.
    pub body: ConnectBody,
    /// The query as it was sent.
    pub raw_query: String,
    query: Query,
}

impl PathRequest {
    /// The first value of a parameter of the query; empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.query.text(name)
    }
}

/// The response of a [`PathHandler`]; made of any response.
pub struct PathResponse(Response<Body>);

impl PathResponse {
    /// The response.
    ///
    /// # Errors
    /// Its status, if it is informational: hyper would hand over the connection.
    pub fn into_final(self) -> Result<Response<Body>, StatusCode> {
        let code = self.0.status();
        if code.is_informational() {
            Err(code)
        } else {
            Ok(self.0)
        }
    }
}

impl<B> From<Response<B>> for PathResponse
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// As [`ConnectResponse::http`](crate::ConnectResponse::http).
    fn from(response: Response<B>) -> Self {
        Self(http_response(response))
    }
}

impl From<String> for PathResponse {
    /// A 200 response in plain text.
    fn from(text: String) -> Self {
        Self(plain(StatusCode::OK, text))
    }
}

/// Answers requests for a path that is none of the API, given to `Builder::path` and `Builder::prefix`. An asynchronous
/// function from a [`PathRequest`] to a [`Response`] or a text is one.
///
/// The request was authorized by its path and method. It has the deadline of all requests that are not long-running.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle the requests for a path",
    note = "write an asynchronous function from `PathRequest` to a `Response` or a `String`"
)]
pub trait PathHandler: Send + Sync + 'static {
    /// Handles a request. A panic is answered with 500. The future is dropped when the server stops.
    fn handle(&self, request: PathRequest) -> BoxFuture<'static, PathResponse>;
}

impl<F, A> PathHandler for F
where
    F: Fn(PathRequest) -> A + Send + Sync + 'static,
    A: Future + Send + 'static,
    A::Output: Into<PathResponse>,
{
    fn handle(&self, request: PathRequest) -> BoxFuture<'static, PathResponse> {
        self(request).map(Into::into).boxed()
    }
}

/// The handlers of a program. Cheap to clone.
#[derive(Clone, Default)]
pub struct PathHandlers {
    exact: BTreeMap<String, Entry>,
    /// Each ends with a slash.
    prefixes: BTreeMap<String, Entry>,
}

#[derive(Clone)]
struct Entry {
    part: PartName,
    handler: Arc<dyn PathHandler>,
    is_listed: bool,
}

impl Entry {
    /// The route of its path.
    fn listed(&self, source: &'static str, path: String) -> ListedRoute {
        ListedRoute::new(source, path, ["*"]).of_part(self.part)
    }
}

impl fmt::Debug for PathHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.exact.keys().chain(self.prefixes.keys());
        f.debug_list().entries(paths).finish()
    }
}

impl PathHandlers {
    /// Adds the handler of a path, or of all paths below one that ends with a slash.
    ///
    /// # Errors
    /// A path that cannot have a handler, or that has one.
    pub fn add(
        &mut self,
        part: PartName,
        (path, is_prefix): (&str, bool),
        handler: Arc<dyn PathHandler>,
        is_listed: bool,
    ) -> Result<(), String> {
        let kind = if is_prefix { "prefix" } else { "path" };
        if !path.starts_with('/') || path.contains("//") {
            return Err(format!(
                "the {kind} {path:?} of a handler must begin with a slash, and have no empty segment"
            ));
        }
        if path.ends_with('/') != is_prefix {
            return Err(if is_prefix {
                format!("the prefix {path:?} of a handler must end with a slash")
            } else {
                format!(
                    "the path {path:?} of a handler must not end with a slash; Builder::prefix is for all paths below one"
                )
            });
        }
        let of_kind = if is_prefix {
            &mut self.prefixes
        } else {
            &mut self.exact
        };
        let entry = Entry {
            part,
            handler,
            is_listed,
        };
        match of_kind.insert(path.to_owned(), entry) {
            None => Ok(()),
            Some(_) => Err(format!("the {kind} {path:?} has two handlers")),
        }
    }

    /// The listed paths and prefixes, for the list at `/`.
    fn listed(&self) -> impl Iterator<Item = String> + use<'_> {
        let all = self.exact.iter().chain(&self.prefixes);
        let listed = all.filter(|(_, entry)| entry.is_listed);
        listed.map(|(path, _)| path.clone())
    }

    /// The handler of exactly this path, with its path.
    fn exact(&self, path: &str) -> Option<Found<'_>> {
        let found = self.exact.get_key_value(path);
        found.map(|(path, entry)| Found { path, entry })
    }

    /// The handler of the longest prefix of a path. The prefix without its slash is not below it.
    fn below(&self, path: &str) -> Option<Found<'_>> {
        let all = self.prefixes.iter();
        let fitting = all.filter(|(prefix, _)| path.starts_with(prefix.as_str()));
        let longest = fitting.max_by_key(|(prefix, _)| prefix.len());
        longest.map(|(path, entry)| Found { path, entry })
    }
}

/// The handlers of exact paths, as a source before the documents and resources of a server.
#[derive(Debug)]
pub(crate) struct ExactPaths {
    pub(crate) handlers: Arc<PathHandlers>,
    pub(crate) serving: Serving,
}

impl Source for ExactPaths {
    fn name(&self) -> &'static str {
        "paths"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let found = self.handlers.exact(&call.info.path)?;
        Some(found.route(call, &self.serving))
    }

    fn routes(&self) -> Vec<ListedRoute> {
        let handlers = self.handlers.exact.iter();
        handlers
            .map(|(path, entry)| entry.listed(self.name(), path.clone()))
            .collect()
    }
}

/// The handlers of a chain of servers, as a source of paths that the first server does not have otherwise.
#[derive(Debug)]
pub(crate) struct OtherPaths {
    /// Those of each server, in the order of the chain.
    pub(crate) handlers: Vec<Arc<PathHandlers>>,
    pub(crate) serving: Serving,
}

impl Source for OtherPaths {
    fn name(&self) -> &'static str {
        "other-paths"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let path = &call.info.path;
        let found = self.handlers.iter().find_map(|handlers| {
            let exact = handlers.exact(path);
            exact.or_else(|| handlers.below(path))
        })?;
        Some(found.route(call, &self.serving))
    }

    fn routes(&self) -> Vec<ListedRoute> {
        let exact = self.handlers.iter().skip(1);
        let exact = exact.flat_map(|handlers| handlers.exact.iter());
        let exact = exact.map(|(path, entry)| entry.listed(self.name(), path.clone()));
        let prefixes = self.handlers.iter().flat_map(|handlers| {
            let mut prefixes: Vec<_> = handlers.prefixes.iter().collect();
            prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            prefixes
        });
        let prefixes =
            prefixes.map(|(prefix, entry)| entry.listed(self.name(), format!("{prefix}*")));
        exact.chain(prefixes).collect()
    }

    fn listed_paths(&self) -> Vec<String> {
        let handlers = self.handlers.iter();
        handlers.flat_map(|handlers| handlers.listed()).collect()
    }
}

/// A handler, and the path or prefix that it was added for.
struct Found<'a> {
    path: &'a str,
    entry: &'a Entry,
}

impl<'a> Found<'a> {
    /// The route of a request to the handler.
    fn route<'r>(self, call: &'a Call<'r>, serving: &'a Serving) -> Route<'a, 'r> {
        let respond = move |body| {
            let respond = async move {
                let labels = path_labels(&call.request.method, self.path);
                let observed = Observation::new(&serving.metrics, labels, None, None);
                let stopping = serving.stopping.clone();
                observed.answer(self.answer(call, body, stopping).await)
            };
            respond.boxed()
        };
        Route::Other(Box::new(respond))
    }

    /// The handler's response to a request.
    async fn answer(
        &self,
        call: &Call<'_>,
        body: RequestBody,
        stopping: ShutdownSignal,
    ) -> Response<Body> {
        let peer = call.arrival.connection.peer.map(|peer| peer.ip());
        let request = PathRequest {
            user: Arc::clone(call.user.user()),
            method: call.request.method.clone(),
            path: call.info.path.clone(),
            headers: headers_for_other_server(&call.request.headers, peer),
            body: ConnectBody::new(body),
            raw_query: call.request.uri.query().unwrap_or_default().to_owned(),
            query: call.query.clone(),
        };
        let handler = Arc::clone(&self.entry.handler);
        // Called in the future too, so that a panic of the call itself is caught.
        let handled = async move { handler.handle(request).await };
        let handled = AssertUnwindSafe(handled).catch_unwind();
        let response = tokio::select! {
            biased;
            handled = handled => handled,
            () = stopping.clone().wait() => {
                let text = "apiserver is shutting down";
                return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{text}\n"));
            }
        };
        match response.map(PathResponse::into_final) {
            Ok(Ok(response)) => response.map(|body| until_stopped(body, stopping)),
            Ok(Err(code)) => {
                let text = format!("a handler responded with the status {code}");
                call.respond(&ApiError::internal_text(text))
            }
            // The panic hook has logged it.
            Err(_) => call.respond(&ApiError::internal_text("a handler panicked".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part_name::PROGRAM;

    fn add(handlers: &mut PathHandlers, path: &str, is_prefix: bool) -> Result<(), String> {
        let handler = async |_: PathRequest| String::new();
        handlers.add(PROGRAM, (path, is_prefix), Arc::new(handler), true)
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut handlers = PathHandlers::default();
        for prefix in ["/a/", "/a/b/", "/"] {
            add(&mut handlers, prefix, true).unwrap();
        }
        add(&mut handlers, "/a/b", false).unwrap();
        for (path, expected) in [
            ("/a/b/c", "/a/b/"),
            ("/a/b/", "/a/b/"),
            ("/a/b", "/a/"),
            ("/a/bc", "/a/"),
            ("/a", "/"),
        ] {
            assert_eq!(handlers.below(path).unwrap().path, expected, "{path}");
        }
        assert!(handlers.exact("/a/b").is_some());
        assert!(handlers.exact("/a/b/").is_none());
        let listed: Vec<String> = handlers.listed().collect();
        assert_eq!(listed, ["/a/b", "/", "/a/", "/a/b/"]);
    }

    #[test]
    fn a_path_that_cannot_have_a_handler_is_refused() {
        let mut handlers = PathHandlers::default();
        add(&mut handlers, "/once", false).unwrap();
        for (path, is_prefix, expected) in [
            ("/once", false, "has two handlers"),
            ("once", false, "must begin with a slash"),
            ("/a//b", false, "no empty segment"),
            ("/a/", false, "must not end with a slash"),
            ("/a", true, "must end with a slash"),
            ("", true, "must begin with a slash"),
        ] {
            let error = add(&mut handlers, path, is_prefix).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
