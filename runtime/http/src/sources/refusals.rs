//! Requests that the server refuses after it has looked for all paths that could be theirs.

use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_registry::Catalog;

use super::resources::tells_unknown_paths;
use super::source::{Route, Source};
use crate::streams::extended_connect;
use crate::verbs::call::Call;

/// Refuses a CONNECT of HTTP/2 to a path without WebSocket, after the paths of a program.
#[derive(Debug)]
pub(crate) struct PathsWithoutWebSocket;

impl Source for PathsWithoutWebSocket {
    fn name(&self) -> &'static str {
        "paths-without-websocket"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let is_refused = extended_connect::is_converted(call.request) && !call.info.connects;
        is_refused.then(|| Route::to(call.respond(&extended_connect::no_websocket())))
    }
}

/// Refuses unknown paths that begin like those of a served group, if it has kinds which are no custom resources.
#[derive(Debug)]
pub(crate) struct UnknownPaths(pub(crate) Arc<Catalog>);

impl UnknownPaths {
    fn is_inside_a_group(&self, path: &str) -> bool {
        let mut segments = path.trim_matches('/').split('/');
        let group = match segments.next() {
            Some("api") => Some(""),
            Some("apis") => segments.next().filter(|group| !group.is_empty()),
            _ => None,
        };
        group.is_some_and(|group| tells_unknown_paths(&self.0, group))
    }
}

impl Source for UnknownPaths {
    fn name(&self) -> &'static str {
        "unknown-paths"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let is_refused = call.is_for_document() && self.is_inside_a_group(&call.info.path);
        is_refused.then(|| Route::to(call.respond(&ApiError::no_such_resource())))
    }
}
