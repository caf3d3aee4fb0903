//! The resources of the server's own catalog.

use std::sync::Arc;

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, ResourceDef};
use apiloom_registry::{Catalog, Endpoint, Registry};
use futures_util::FutureExt as _;
use http::Response;
use http::request::Parts;

use super::route_list::{KindParts, ListedResource, ListedRoute};
use super::source::{Route, Source, Stream};
use crate::documents::served::{Group, add_missing, served};
use crate::observation::metrics::RequestLabels;
use crate::observation::observe::resource_labels;
use crate::request::request_info::RequestInfo;
use crate::request::version_path::version_of;
use crate::response::Body;
use crate::shape::error::page_not_found;
use crate::shape::negotiate::check_route;
use crate::shape::{body, format};
use crate::verbs::call::{Call, Serving};
use crate::verbs::resource::ResourceRoute;
use crate::verbs::route::{connects, is_out_of_scope, paths, route, stream_of};

/// The resources of a catalog.
#[derive(Debug)]
pub(crate) struct CatalogResources {
    registry: Arc<Registry>,
    catalog: Arc<Catalog>,
    parts: Arc<KindParts>,
    serving: Serving,
}

impl CatalogResources {
    pub(crate) fn new(
        registry: Arc<Registry>,
        catalog: Arc<Catalog>,
        parts: Arc<KindParts>,
        serving: Serving,
    ) -> Self {
        Self {
            registry,
            catalog,
            parts,
            serving,
        }
    }

    fn endpoint(&self, info: &RequestInfo) -> Option<&Arc<Endpoint>> {
        self.catalog
            .endpoint(&info.api_group, &info.api_version, &info.resource)
    }

    /// Finds the endpoint and the verb of a request for a resource. Errors are in the order of kube-apiserver's router: path and method,
    /// then what [`route_to`](Self::route_to) checks.
    fn find_endpoint(&self, call: &Call<'_>) -> Result<(&Arc<Endpoint>, Verb), ApiError> {
        let endpoint = self.endpoint(&call.info);
        let endpoint = endpoint.ok_or_else(ApiError::no_such_resource)?;
        let verb = route(endpoint.def(), &call.request.method, &call.info)?;
        Ok((endpoint, verb))
    }

    /// The route to an endpoint.
    fn route_to<'a, 'r>(
        &'a self,
        endpoint: &'a Arc<Endpoint>,
        verb: Verb,
        call: &'a Call<'r>,
    ) -> Route<'a, 'r> {
        match check(endpoint, verb, call) {
            Ok(()) => Route::Resource(ResourceRoute {
                catalog: &self.catalog,
                endpoint,
                verb,
                call,
                serving: &self.serving,
            }),
            Err(error) => Route::to(self.refuse(call, &error)),
        }
    }

    /// The response to a request for which there is no endpoint, or whose path or method the endpoint does not have. It depends
    /// on the dialect of the kind, as in kube-apiserver.
    fn refuse(&self, call: &Call<'_>, error: &ApiError) -> Response<Body> {
        let info = &call.info;
        let Some(endpoint) = self.endpoint(info) else {
            return if tells_unknown_paths(&self.catalog, &info.api_group) {
                call.respond(error)
            } else {
                page_not_found()
            };
        };
        let def = endpoint.def();
        if def.dialect.hides_unknown_paths {
            if is_out_of_scope(def, info) {
                return page_not_found();
            }
            if let [_, name, _, ..] = &info.parts[..]
                && *error == ApiError::no_such_resource()
            {
                return call.respond(&ApiError::not_found(&def.group_resource(), name));
            }
        }
        call.respond(error)
    }
}

impl Source for CatalogResources {
    fn name(&self) -> &'static str {
        "resources"
    }

    /// A group of the catalog is all its own: other paths in it are errors.
    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        let info = &call.info;
        if !call.is_for_resource() || !has_group(&self.catalog, &info.api_group) {
            return None;
        }
        Some(match self.find_endpoint(call) {
            Ok((endpoint, verb)) if endpoint.is_prepared(verb) => {
                self.route_to(endpoint, verb, call)
            }
            Ok((endpoint, verb)) => Route::Other(Box::new(move |body| {
                let prepared = self.registry.prepare(endpoint, verb);
                let answer =
                    prepared.then(move |()| self.route_to(endpoint, verb, call).answer(body));
                answer.boxed()
            })),
            Err(error) => Route::to(self.refuse(call, &error)),
        })
    }

    fn routes(&self) -> Vec<ListedRoute> {
        let name = self.name();
        let groups = served(&self.catalog).into_iter();
        let versions = groups.flat_map(|group| group.versions);
        let kinds = versions.flat_map(|version| version.kinds);
        let routes = kinds.flat_map(|kind| {
            let (def, part) = (kind.def, self.parts.part_of(kind.def));
            paths(def).into_iter().map(move |path| ListedRoute {
                resource: Some(listed_resource(def, path.subresource)),
                ..ListedRoute::new(name, path.path, path.verbs).of_part(part)
            })
        });
        routes.collect()
    }

    fn has_version_of(&self, path: &str) -> bool {
        let Some((group, version)) = version_of(path) else {
            return false;
        };
        let mut groups = self.catalog.groups().iter();
        let found = groups.find(|of| of.name == group);
        found.is_some_and(|of| of.versions.iter().any(|served| served == version))
    }

    fn stream(&self, known: Option<Stream>, _: &Parts, info: &RequestInfo) -> Option<Stream> {
        let Some(endpoint) = self.endpoint(info) else {
            return known;
        };
        let stream = stream_of(endpoint.def(), info);
        Some(Stream {
            connects: stream.is_some(),
            takes_input: stream.is_some_and(|stream| stream.verbs.contains(&Verb::Create)),
        })
    }

    fn add_groups<'a>(&'a self, others: Vec<Group<'a>>) -> Vec<Group<'a>> {
        add_missing(served(&self.catalog), others)
    }

    fn labels(&self, call: &Call<'_>) -> Option<RequestLabels> {
        let (info, request) = (&call.info, call.request);
        if !info.is_resource_request {
            return None;
        }
        self.endpoint(info).and_then(|endpoint| {
            let verb = route(endpoint.def(), &request.method, info).ok()?;
            let dry_run = call.query.first("dryRun").is_some();
            Some(resource_labels(endpoint.def(), verb, info, dry_run))
        })
    }
}

/// Checks what kube-apiserver's router checks of a request with a path and a method that it knows: the schema, the content type, the
/// accepted types. Where a handler negotiates, the schema alone is checked.
fn check(endpoint: &Endpoint, verb: Verb, call: &Call<'_>) -> Result<(), ApiError> {
    let (info, request) = (&call.info, call.request);
    endpoint.check_schema()?;
    if connects(endpoint.def(), info) || endpoint.def().dialect.negotiates_in_handler {
        return Ok(());
    }
    if verb == Verb::Patch {
        body::patch_format(&request.headers, endpoint.patch_formats(&info.subresource))?;
    }
    let is_stream = matches!(verb, Verb::List | Verb::Watch);
    let streams = is_stream.then(format::stream_types);
    check_route(&call.accepts, streams.into_iter().flatten())
}

fn listed_resource(def: &ResourceDef, subresource: &str) -> ListedResource {
    ListedResource {
        group: def.group.to_string(),
        version: def.version.to_string(),
        kind: def.kind.to_string(),
        resource: def.plural.to_string(),
        subresource: subresource.to_owned(),
    }
}

/// Whether a catalog has versions of a group.
pub(super) fn has_group(catalog: &Catalog, group: &str) -> bool {
    catalog.groups().iter().any(|of| of.name == group)
}

/// Whether an unknown path in a group is told of as a resource, because of one of its kinds.
pub(super) fn tells_unknown_paths(catalog: &Catalog, group: &str) -> bool {
    let mut kinds = catalog.endpoints().iter().map(|one| one.def());
    kinds.any(|def| def.group == group && !def.dialect.hides_unknown_paths)
}
