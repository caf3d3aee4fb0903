//! Clients, caches and controllers: programs that use the kinds of a server.
//!
//! `apiloom generate` makes a `Clientset`, `Informers` and builders of apply configurations ([`apply`]) of a package's kinds, if
//! its Cargo.toml has `clients = true` in `[package.metadata.apiloom]`. With `kube = true` it makes types for kube-rs, in
//! `generated::kube` behind the package's cargo feature `kube`. A controller is written as [`crate::guide::controllers`] shows.

pub use apiloom_client::AllNamespaces;
pub use apiloom_client::ApiObject;
pub use apiloom_client::ApiResource;
pub use apiloom_client::Body;
pub use apiloom_client::Client;
pub use apiloom_client::ClientBuilder;
pub use apiloom_client::Cluster;
pub use apiloom_client::ClusterKind;
pub use apiloom_client::DecodeError;
pub use apiloom_client::Error;
pub use apiloom_client::HasMetadata;
pub use apiloom_client::Kind;
pub use apiloom_client::ListOptions;
pub use apiloom_client::Namespaced;
pub use apiloom_client::NamespacedKind;
pub use apiloom_client::ObjectList;
pub use apiloom_client::Patch;
pub use apiloom_client::ResourceClient;
pub use apiloom_client::Transport;
pub use apiloom_client::TransportError;
pub use apiloom_client::WatchEvent;
pub use apiloom_client::WatchStream;
pub use apiloom_client::apply;
pub use apiloom_client::cache;
#[cfg(feature = "websocket")]
pub use apiloom_client::client::CHANNEL_PROTOCOLS;
#[cfg(feature = "websocket")]
pub use apiloom_client::client::Socket;
#[cfg(feature = "websocket")]
pub use apiloom_client::client::SocketMessage;
#[cfg(feature = "websocket")]
pub use apiloom_client::client::SocketReceiver;
#[cfg(feature = "websocket")]
pub use apiloom_client::client::SocketSender;
pub use apiloom_client::clientset;
pub use apiloom_client::config;
pub use apiloom_client::configurations;
pub use apiloom_client::controller;
pub use apiloom_client::indexes;
pub use apiloom_client::methods;
pub use apiloom_client::verbs;

/// The requests of generated methods, and what they are made of: for functions that take or return them.
pub mod requests {
    pub use apiloom_client::client::GetRequest;
    pub use apiloom_client::client::ListRequest;
    pub use apiloom_client::client::ObjectClient;
    pub use apiloom_client::client::ObjectScope;
    pub use apiloom_client::client::Patch;
    pub use apiloom_client::client::PatchRequest;
    pub use apiloom_client::client::RawRequest;
    pub use apiloom_client::client::ResourceClient;
    pub use apiloom_client::client::WriteRequest;
    pub use apiloom_client::http::Method;
    pub use apiloom_client::serde::Serialize;
}
