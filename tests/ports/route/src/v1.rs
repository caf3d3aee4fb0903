//! gateway.networking.k8s.io/v1.

use apiloom::prelude::*;

mod filters;
mod matches;
mod references;
mod rules;
mod status;

pub use filters::{
    CorsFilter, Filter, FilterType, Fraction, Header, HeaderFilter, MirrorFilter, PathModifier,
    PathModifierType, RedirectFilter, RewriteFilter, Scheme, WildcardMethod,
};
pub use matches::{
    HeaderMatch, HeaderMatchType, Method, PathMatch, PathMatchType, QueryParamMatch, RouteMatch,
};
pub use references::{
    BackendObjectReference, BackendRef, HttpBackendRef, LocalObjectReference, ParentReference,
};
pub use rules::{RouteRule, Timeouts};
pub use status::{HttpRouteStatus, RouteParentStatus, RouteStatus};

/// HTTPRoute sends requests that arrive at a gateway to backends.
#[apiloom::resource(
    group = "gateway.networking.k8s.io",
    version = "v1",
    namespaced,
    status,
    kind = "HTTPRoute",
    category = "gateway-api",
    printcolumn(name = "Hostnames", json_path = ".spec.hostnames", type = "string")
)]
pub struct HttpRoute {
    pub metadata: ObjectMeta,
    /// Where requests come from and where they go.
    pub spec: HttpRouteSpec,
    /// What the gateways say.
    pub status: Option<HttpRouteStatus>,
}

/// CommonRouteSpec is what routes of all protocols have.
#[apiloom::api]
pub struct CommonRouteSpec {
    /// The gateways, or listeners of gateways, that the route wants to be attached to.
    #[api(list = atomic, items = ..=32, custom = references::parents_are_distinct)]
    pub parent_refs: Vec<ParentReference>,
}

/// HttpRouteSpec is where requests come from and where they go.
#[apiloom::api]
pub struct HttpRouteSpec {
    #[api(flatten)]
    pub common: CommonRouteSpec,
    /// Hosts whose requests are meant; all hosts when left out.
    #[api(list = atomic, items = ..=16,
        each(len = 1..=253, pattern = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub hostnames: Vec<String>,
    /// What is done with which request; the most exact match wins.
    #[api(list = atomic, items = 1..=16, default = vec![RouteRule::default()], custom = rules::matches_are_few)]
    pub rules: Vec<RouteRule>,
}
