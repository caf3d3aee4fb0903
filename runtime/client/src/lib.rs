//! Clients of API servers with Kubernetes' conventions: apiloom's own and kube-apiserver.
//!
//! A [`Client`] sends requests through a [`Transport`], which is a network, or a server in the same process. A
//! [`ResourceClient`] reads and writes the objects of one kind:
//!
//! ```no_run
//! # use apiloom_client::{Client, Error, HasMetadata as _, Kind, NamespacedKind};
//! # async fn example<Flunder: Kind + NamespacedKind + apiloom_client::verbs::All>(client: Client, flunder: Flunder) -> Result<(), Error> {
//! let flunders = client.namespaced::<Flunder>("default");
//! flunders.create(&flunder).field_manager("example").await?;
//! for flunder in flunders.list().labels("app=web").await?.items {
//!     println!("{}", flunder.name());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This crate knows nothing of servers. Invariant: input of the network is never trusted. Lines, bodies and waits have
//! limits, and malformed input gives an error, never a panic.

/// Implements the traits of all verbs for a type of an object.
macro_rules! all_verbs {
    ($object:ty) => {
        impl apiloom_meta::kind::verbs::Create for $object {}
        impl apiloom_meta::kind::verbs::Delete for $object {}
        impl apiloom_meta::kind::verbs::DeleteCollection for $object {}
        impl apiloom_meta::kind::verbs::Get for $object {}
        impl apiloom_meta::kind::verbs::List for $object {}
        impl apiloom_meta::kind::verbs::Patch for $object {}
        impl apiloom_meta::kind::verbs::Update for $object {}
        impl apiloom_meta::kind::verbs::Watch for $object {}
    };
}

pub mod apply;
pub mod cache;
pub mod client;
mod clientset;
#[cfg(feature = "tls")]
pub mod config;
pub mod controller;
pub mod discovery;
pub mod dynamic;
pub mod error;
mod indexes;
pub mod metrics;
pub mod object;
pub mod signals;
pub mod transport;

#[cfg(test)]
mod scripted;

#[doc(hidden)]
pub use apiloom_meta::codegen::IndexKeys as __IndexKeys;
#[doc(hidden)]
pub use serde as __serde;

pub use apiloom_meta::kind::{ClusterKind, NamespacedKind, verbs};
pub use apply::Configuration;
pub use client::{
    AllNamespaces, ApiObject, ApiResource, Client, ClientBuilder, Cluster, Kind, ListOptions,
    Namespaced, ObjectList, Patch, ResourceClient, WatchEvent, WatchStream,
};
pub use dynamic::{DynamicObject, PartialObjectMetadata};
pub use error::{DecodeError, Error};
pub use http;
pub use object::HasMetadata;
pub use serde;
pub use transport::{Body, Transport, TransportError};
