//! The versions of other servers as a source: their requests are forwarded before any other source is asked.

use std::sync::Arc;

use apiloom_meta::kind::SmolStr;
use apiloom_registry::Catalog;
use futures_util::FutureExt as _;
use http::Response;
use http::request::Parts;

use super::merge::merge;
use super::state::Aggregation;
use super::table::{GROUP, Service, Table};
use super::tunnel::{ForwardedResponse, is_requested};
use crate::documents::openapi::OpenApi;
use crate::documents::served::Group;
use crate::observation::metrics::{RequestKind, RequestLabels, verb_label};
use crate::observation::observe::Observation;
use crate::request::request_info::RequestInfo;
use crate::request::version_path::path_of_version;
use crate::response::Body;
use crate::shape::body::RequestBody;
use crate::sources::route_list::ListedRoute;
use crate::sources::source::{AddedSource, Route, Source, SourceMaker, Stream};
use crate::verbs::call::{Call, Serving};

/// The versions that other servers serve.
#[derive(Debug)]
struct ForwardedVersions {
    aggregation: Arc<Aggregation>,
    table: Arc<Table>,
    /// Whether the server has APIServices, whose priorities are the order of groups.
    has_priorities: bool,
    serving: Serving,
}

impl Aggregation {
    /// The versions that other servers serve, as a source.
    pub fn source(self: &Arc<Self>) -> AddedSource {
        AddedSource::new(Arc::clone(self))
    }
}

impl SourceMaker for Arc<Aggregation> {
    fn of_catalog(&self, catalog: &Catalog, serving: &Serving) -> Arc<dyn Source> {
        let mut groups = catalog.groups().iter();
        Arc::new(ForwardedVersions {
            aggregation: Self::clone(self),
            table: self.table(),
            has_priorities: groups.any(|group| group.name == GROUP),
            serving: serving.clone(),
        })
    }
}

impl ForwardedVersions {
    /// Forwards a request to the server of its version. Admission is left to that.
    async fn forward(
        &self,
        service: &Service,
        call: &Call<'_>,
        body: RequestBody,
    ) -> Response<Body> {
        let Serving { metrics, stopping } = &self.serving;
        let labels = RequestLabels {
            verb: verb_label(call.info.verb.as_str()),
            group: SmolStr::new(&service.group),
            version: SmolStr::new(&service.version),
            ..RequestLabels::default()
        };
        let running = match call.info.verb.as_str() {
            _ if call.deadline.is_none() => metrics.begin_long_running(&labels),
            "get" | "list" => metrics.begin(RequestKind::ReadOnly),
            _ => metrics.begin(RequestKind::Mutating),
        };
        let observed = Observation::new(metrics, labels, None, Some(running));
        let forwarded = self
            .aggregation
            .forward(service, call, body, stopping.clone());
        let ForwardedResponse { response, tunnel } = forwarded.await;
        match tunnel {
            Some(tunnel) => observed.upgrade(response, tunnel.run()),
            None => observed.answer(response),
        }
    }
}

impl Source for ForwardedVersions {
    fn name(&self) -> &'static str {
        "forwarded-versions"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let service = self.table.service_of(&call.info.path)?;
        let respond = move |body| self.forward(service, call, body).boxed();
        Some(Route::Other(Box::new(respond)))
    }

    fn routes(&self) -> Vec<ListedRoute> {
        let services = self.table.services().iter();
        let paths = services.flat_map(|service| {
            let path = path_of_version(&service.group, &service.version);
            [path.clone(), format!("{path}/*")]
        });
        paths
            .map(|path| ListedRoute::new(self.name(), path, ["*"]))
            .collect()
    }

    fn is_current(&self) -> bool {
        self.table.generation() == self.aggregation.generation()
    }

    /// The APIServices of the first server are those of the whole chain.
    fn is_delegated(&self) -> bool {
        false
    }

    fn has_version_of(&self, path: &str) -> bool {
        self.table.service_of(path).is_some()
    }

    fn stream(&self, known: Option<Stream>, request: &Parts, info: &RequestInfo) -> Option<Stream> {
        if !is_requested(request) || self.table.service_of(&info.path).is_none() {
            return known;
        }
        Some(Stream {
            connects: true,
            ..known.unwrap_or_default()
        })
    }

    fn add_groups<'a>(&'a self, others: Vec<Group<'a>>) -> Vec<Group<'a>> {
        if self.has_priorities {
            merge(others, &self.table)
        } else {
            others
        }
    }

    fn add_openapi(&self, documents: OpenApi) -> OpenApi {
        if self.table.services().is_empty() {
            return documents;
        }
        documents.with_remote(Arc::clone(&self.table) as _)
    }
}
