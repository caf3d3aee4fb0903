//! Keywords of an import itself: what a document of OpenAPI says of the types of its schemas. They are never written.

/// The name of the component that a schema was.
pub(super) const COMPONENT: &str = "x-apiloom-component";

/// The name of the component, around this schema, that it refers back to.
pub(super) const AGAIN: &str = "x-apiloom-again";

/// The type of the prelude that a component of Kubernetes is.
pub(super) const TYPE: &str = "x-apiloom-type";

/// All of them.
pub(super) const MARKERS: [&str; 3] = [COMPONENT, AGAIN, TYPE];
