//! What the gateways say about a route.

use apiloom::prelude::*;

use super::references::ParentReference;

/// HttpRouteStatus is what the gateways say.
#[apiloom::api]
pub struct HttpRouteStatus {
    #[api(flatten)]
    pub route: RouteStatus,
}

/// RouteStatus is what the gateways say about a route of any protocol.
#[apiloom::api]
pub struct RouteStatus {
    /// What each of them says.
    #[api(list = atomic, items = ..=32)]
    pub parents: Vec<RouteParentStatus>,
}

/// RouteParentStatus is what one controller says about one parent.
#[apiloom::api]
pub struct RouteParentStatus {
    /// The parent.
    pub parent_ref: ParentReference,
    /// The controller.
    #[api(len = 1..=253,
        pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$")]
    pub controller_name: String,
    /// Whether the route is accepted, and its references are resolved.
    #[api(required, list = map(type), items = 1..=8)]
    pub conditions: Vec<Condition>,
}
