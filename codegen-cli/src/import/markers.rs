//! Keywords of an import itself: what a document of OpenAPI says of the types of its schemas. They are never written.

/// The name of the component that a schema was.
pub(super) const COMPONENT: &str = "x-apiloom-component";

/// The name of the component, around this schema, that it refers back to.
pub(super) const AGAIN: &str = "x-apiloom-again";

/// The type of the prelude that a component of Kubernetes is.
pub(super) const TYPE: &str = "x-apiloom-type";

/// Whether a list of type set or map takes duplicates, as those of Kubernetes' own types do.
pub(super) const DUPLICATES: &str = "x-apiloom-duplicates";

/// All of them.
pub(super) const MARKERS: [&str; 4] = [COMPONENT, AGAIN, TYPE, DUPLICATES];
