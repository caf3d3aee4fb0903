//! What a server serves at one time: its sources, and what is made of all of them. A request uses the same snapshot from beginning to end.

use std::sync::Arc;

use apiloom_registry::Catalog;
use http::Response;
use http::request::Parts;

use super::paths::PathHandlers;
use super::route_list::ListedRoute;
use super::source::{Route, Source, Stream};
use crate::documents::health::Health;
use crate::documents::openapi::OpenApi;
use crate::observation::metrics::{RequestLabels, verb_label};
use crate::request::request_info::RequestInfo;
use crate::response::Body;
use crate::shape::body::RequestBody;
use crate::shape::error::page_not_found;
use crate::verbs::call::Call;

/// What a server serves at one time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) catalog: Arc<Catalog>,
    /// The sources in the order in which requests ask them.
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) openapi: Arc<OpenApi>,
    pub(crate) health: Health,
    /// The handlers of the program, and those of the next servers.
    pub(crate) handlers: Vec<Arc<PathHandlers>>,
}

impl Snapshot {
    /// Whether its sources are up to date.
    pub(crate) fn is_current(&self) -> bool {
        self.sources.iter().all(|source| source.is_current())
    }

    /// The routes of all sources, in the order in which a request is matched.
    pub(crate) fn routes(&self) -> Vec<ListedRoute> {
        let sources = self.sources.iter();
        sources.flat_map(|source| source.routes()).collect()
    }

    /// The sources that answer what another server of the chain leaves to this one.
    pub(crate) fn delegated(&self) -> impl DoubleEndedIterator<Item = &Arc<dyn Source>> {
        let sources = self.sources.iter();
        sources.filter(|source| source.is_delegated())
    }

    /// Whether a request is for a stream; `None` if it is for no known resource.
    pub(crate) fn stream(&self, request: &Parts, info: &RequestInfo) -> Option<Stream> {
        let sources = self.sources.iter().rev();
        sources.fold(None, |known, source| source.stream(known, request, info))
    }

    /// The labels of a request that ends before its response. They contain no text made up by the client.
    pub(crate) fn labels(&self, call: &Call<'_>) -> RequestLabels {
        let mut sources = self.sources.iter();
        let labels = sources.find_map(|source| source.labels(call));
        labels.unwrap_or_else(|| RequestLabels {
            verb: verb_label(call.request.method.as_str()),
            ..RequestLabels::default()
        })
    }

    /// Responds to a request by the first source that has a route for it.
    pub(crate) fn answer<'a, 'r>(
        &'a self,
        call: &'a Call<'r>,
        body: RequestBody,
    ) -> impl Future<Output = Response<Body>> + Send {
        let mut sources = self.sources.iter();
        let route = sources.find_map(|source| source.find(call));
        route
            .unwrap_or_else(|| Route::to(page_not_found()))
            .answer(body)
    }
}
