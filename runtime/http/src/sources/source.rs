//! A source: one origin of what a server serves. Requests ask the sources of a server in order; discovery, OpenAPI, health and metrics ask
//! all of them, and none by its name.

use std::fmt;
use std::sync::Arc;

use apiloom_registry::Catalog;
use futures_util::future::{BoxFuture, Either, FutureExt as _, ready};
use http::Response;
use http::request::Parts;

use super::route_list::ListedRoute;
use crate::documents::health::Health;
use crate::documents::openapi::OpenApi;
use crate::documents::served::Group;
use crate::observation::metrics::RequestLabels;
use crate::request::request_info::RequestInfo;
use crate::response::Body;
use crate::shape::body::RequestBody;
use crate::verbs::call::{Call, Serving};
use crate::verbs::resource::ResourceRoute;

/// An origin of what a server serves, as it is for one catalog.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Its name in lists.
    fn name(&self) -> &'static str;

    /// The route of a request; `None` if the source leaves it to the next ones.
    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>>;

    /// The routes that it finds, in the order in which it looks for them. One that refuses requests alone has none.
    fn routes(&self) -> Vec<ListedRoute> {
        Vec::new()
    }

    /// Whether it is up to date. A change of the catalog makes all sources anew, and needs no answer here.
    fn is_current(&self) -> bool {
        true
    }

    /// Whether it also answers requests that another server of a chain leaves to this one.
    fn is_delegated(&self) -> bool {
        true
    }

    /// Whether it has the version of a path.
    fn has_version_of(&self, _path: &str) -> bool {
        false
    }

    /// The kind of stream that a request is for. `known` is the answer of the sources after this one; `None` means that no source has
    /// the resource.
    fn stream(&self, known: Option<Stream>, _: &Parts, _: &RequestInfo) -> Option<Stream> {
        known
    }

    /// Adds its groups to those of the sources after it.
    fn add_groups<'a>(&'a self, others: Vec<Group<'a>>) -> Vec<Group<'a>> {
        others
    }

    /// Paths of the source in the list at `/`.
    fn listed_paths(&self) -> Vec<String> {
        Vec::new()
    }

    /// Adds its documents to those of the server.
    fn add_openapi(&self, documents: OpenApi) -> OpenApi {
        documents
    }

    /// Adds its checks to those of the server.
    fn add_checks(&self, health: Health) -> Health {
        health
    }

    /// The labels of a request that ends before its response. They contain no text made up by the client.
    fn labels(&self, _: &Call<'_>) -> Option<RequestLabels> {
        None
    }
}

/// What makes a source for each catalog.
pub(crate) trait SourceMaker: fmt::Debug + Send + Sync {
    /// The source as it is now, beside what a catalog has.
    fn of_catalog(&self, catalog: &Catalog, serving: &Serving) -> Arc<dyn Source>;
}

/// A source that a part of the server adds to it.
#[derive(Clone, Debug)]
pub struct AddedSource(Arc<dyn SourceMaker>);

impl AddedSource {
    pub(crate) fn new(maker: impl SourceMaker + 'static) -> Self {
        Self(Arc::new(maker))
    }

    pub(crate) fn of_catalog(&self, catalog: &Catalog, serving: &Serving) -> Arc<dyn Source> {
        self.0.of_catalog(catalog, serving)
    }
}

/// Whether a request is for a stream, and of which kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    /// Whether it is a stream at all.
    pub(crate) connects: bool,
    /// Whether its client sends to it, for which it needs the verb create too.
    pub(crate) takes_input: bool,
}

/// Responds to a request with this body.
pub(crate) type Respond<'a> =
    Box<dyn FnOnce(RequestBody) -> BoxFuture<'a, Response<Body>> + Send + 'a>;

/// The way from a request to its response.
pub(crate) enum Route<'a, 'r> {
    /// To a resource of the server. It is not boxed, since most requests take it.
    Resource(ResourceRoute<'a, 'r>),
    Other(Respond<'a>),
}

impl Route<'_, '_> {
    /// The route to a response that needs no work.
    pub(crate) fn to(response: Response<Body>) -> Self {
        Self::Other(Box::new(move |_| ready(response).boxed()))
    }

    /// Responds to the request.
    pub(crate) fn answer(self, body: RequestBody) -> impl Future<Output = Response<Body>> + Send {
        match self {
            Self::Resource(route) => Either::Left(route.answer(body)),
            Self::Other(respond) => Either::Right(respond(body)),
        }
    }
}
