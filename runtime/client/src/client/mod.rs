//! The client: what all requests to one server share, and the clients of single kinds made from it.

mod builder;
mod delete;
mod encoding;
mod excerpt;
mod failure;
mod list;
mod methods;
mod object;
mod options;
mod pages;
mod patch;
mod path;
mod request;
mod resource;
mod retry;
mod scale;
mod scope;
mod subresource;
mod update_with;
mod watch;
#[cfg(feature = "websocket")]
mod websocket;
mod write;

pub use builder::{Client, ClientBuilder};
pub use delete::{DeleteCollectionRequest, DeleteRequest, Deletion, Propagation};
pub use list::{GetRequest, ListRequest, ObjectList, Undecodable};
pub use methods::ObjectClient;
pub use object::{ApiObject, ApiResource, Kind};
pub use options::{FieldValidation, ListOptions, VersionMatch};
pub(crate) use pages::MAX_EMPTY_PAGES;
pub use patch::{Patch, PatchRequest};
pub use request::RawRequest;
pub use resource::ResourceClient;
pub use retry::RetryRules;
pub use scale::{Scale, ScaleSpec, ScaleStatus};
pub use scope::{AllNamespaces, Cluster, NamespaceScope, Namespaced, ObjectScope, Scope};
pub use subresource::Subresource;
pub use watch::{Bookmark, WatchEvent, WatchRequest, WatchStream};
#[cfg(feature = "websocket")]
pub use websocket::{CHANNEL_PROTOCOLS, Socket, SocketMessage, SocketReceiver, SocketSender};
pub use write::WriteRequest;

#[cfg(test)]
mod tests;
