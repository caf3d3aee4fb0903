//! References to other objects.

use apiloom::prelude::*;

use super::filters::{self, Filter};

/// ParentReference names a gateway, or a listener of one.
#[apiloom::api]
pub struct ParentReference {
    /// The group of its kind.
    #[api(
        default = "gateway.networking.k8s.io",
        len(max = 253),
        pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    )]
    pub group: String,
    /// Its kind.
    #[api(default = "Gateway", len = 1..=63, pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
    pub kind: String,
    /// Its namespace; that of the route when left out.
    #[api(len = 1..=63, pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    pub namespace: Option<String>,
    /// Its name.
    #[api(len = 1..=253)]
    pub name: String,
    /// The listener; all of them when left out.
    #[api(len = 1..=253, pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")]
    pub section_name: Option<String>,
    /// The port of the listener; any when left out.
    #[api(range = 1..=65535)]
    pub port: Option<i32>,
}

/// References to the same parent differ in their section, and then each has one.
#[allow(clippy::ptr_arg, reason = "a check takes the type of its field")]
pub(super) fn parents_are_distinct(
    parents: &Vec<ParentReference>,
    path: &FieldPath,
) -> Option<FieldError> {
    let parent = |one: &ParentReference| {
        let namespace = one.namespace.clone().unwrap_or_default();
        (
            one.group.clone(),
            one.kind.clone(),
            namespace,
            one.name.clone(),
        )
    };
    let pairs = parents
        .iter()
        .enumerate()
        .flat_map(|(at, one)| parents[..at].iter().map(move |other| (one, other)));
    let mut same = pairs.filter(|(one, other)| parent(one) == parent(other));
    same.find_map(|(one, other)| {
        let detail = if one.section_name.is_some() != other.section_name.is_some() {
            "sectionName must be specified when parentRefs includes 2 or more references to the same parent"
        } else if one.section_name == other.section_name {
            "sectionName must be unique when parentRefs includes 2 or more references to the same parent"
        } else {
            return None;
        };
        Some(FieldError::invalid(path, parents, detail))
    })
}

/// LocalObjectReference names an object in the same namespace.
#[apiloom::api]
pub struct LocalObjectReference {
    /// The group of its kind.
    #[api(
        len(max = 253),
        pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    )]
    pub group: String,
    /// Its kind.
    #[api(len = 1..=63, pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
    pub kind: String,
    /// Its name.
    #[api(len = 1..=253)]
    pub name: String,
}

/// BackendObjectReference names what requests are sent to.
#[apiloom::api]
#[api(custom = BackendObjectReference::check)]
pub struct BackendObjectReference {
    /// The group of its kind.
    #[api(
        default = "",
        len(max = 253),
        pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    )]
    pub group: String,
    /// Its kind.
    #[api(default = "Service", len = 1..=63, pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
    pub kind: String,
    /// Its name.
    #[api(len = 1..=253)]
    pub name: String,
    /// Its namespace; that of the route when left out.
    #[api(len = 1..=63, pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    pub namespace: Option<String>,
    /// The port; a Service needs one.
    #[api(range = 1..=65535)]
    pub port: Option<i32>,
}

impl BackendObjectReference {
    fn check(&self, path: &FieldPath) -> Option<FieldError> {
        let is_service = self.group.is_empty() && self.kind == "Service";
        (is_service && self.port.is_none()).then(|| {
            FieldError::required(&path.child("port"), "Must have port for Service reference")
        })
    }
}

/// BackendRef is a backend and its share of the requests.
#[apiloom::api]
pub struct BackendRef {
    #[api(flatten)]
    pub backend: BackendObjectReference,
    /// Its share, beside those of the other backends.
    #[api(default = 1, range = 0..=1_000_000)]
    pub weight: i32,
}

/// HttpBackendRef is a backend of HTTP requests.
#[apiloom::api]
pub struct HttpBackendRef {
    #[api(flatten)]
    pub backend_ref: BackendRef,
    /// What is done with requests to this backend alone.
    #[api(list = atomic, items = ..=16, custom = filters::fit_together)]
    pub filters: Vec<Filter>,
}
