//! The server: its builder and settings, and the traits for code of your own.

pub use apiloom_parts::PartsConfig;
pub use apiloom_parts::builder;
pub use apiloom_parts::builder_with;
pub use apiloom_parts::main;
pub use apiloom_server::Admission;
pub use apiloom_server::AdmissionContext;
pub use apiloom_server::AdmissionRequest;
pub use apiloom_server::AdmittedObject;
pub use apiloom_server::Backend;
pub use apiloom_server::BoundServer;
pub use apiloom_server::Builder;
pub use apiloom_server::Config;
pub use apiloom_server::ControllerNames;
pub use apiloom_server::CreateOptions;
pub use apiloom_server::CreateSubresource;
pub use apiloom_server::Endpoints;
pub use apiloom_server::GetSubresource;
pub use apiloom_server::Handler;
pub use apiloom_server::HookContext;
pub use apiloom_server::Host;
pub use apiloom_server::InProcess;
pub use apiloom_server::ListOptions;
pub use apiloom_server::Lister;
pub use apiloom_server::Loopback;
pub use apiloom_server::ObjectEvent;
pub use apiloom_server::ObjectEvents;
pub use apiloom_server::ObjectList;
pub use apiloom_server::Operation;
pub use apiloom_server::Part;
pub use apiloom_server::Reader;
pub use apiloom_server::RequestContext;
pub use apiloom_server::Server;
pub use apiloom_server::ServerError;
pub use apiloom_server::Strategy;
pub use apiloom_server::Subresource;
pub use apiloom_server::SubresourceRequest;
pub use apiloom_server::UpdateSubresource;
pub use apiloom_server::Writer;
pub use apiloom_server::async_trait;
pub use apiloom_server::server::CancellationToken;
pub use apiloom_server::server::ChainFilter;
pub use apiloom_server::server::EtcdOptions;
pub use apiloom_server::server::EtcdOverride;
pub use apiloom_server::server::Filter;
pub use apiloom_server::server::FilterPlace;
pub use apiloom_server::server::FilterRequest;
pub use apiloom_server::server::GoawayChance;
pub use apiloom_server::server::ListedResource;
pub use apiloom_server::server::ListedRoute;
pub use apiloom_server::server::TlsFiles;
pub use apiloom_server::server::WatchCacheSize;

/// Who sends a request, and what they may do.
pub mod auth {
    pub use apiloom_server::auth::Answer;
    pub use apiloom_server::auth::Attributes;
    pub use apiloom_server::auth::Authenticated;
    pub use apiloom_server::auth::Authentication;
    pub use apiloom_server::auth::Authenticator;
    pub use apiloom_server::auth::Authorization;
    pub use apiloom_server::auth::Authorizer;
    pub use apiloom_server::auth::BoxError;
    pub use apiloom_server::auth::Connection;
    pub use apiloom_server::auth::CredentialHeaders;
    pub use apiloom_server::auth::Credentials;
    pub use apiloom_server::auth::Decision;
    pub use apiloom_server::auth::UserInfo;
}

/// Health checks of a program.
pub mod health {
    pub use apiloom_server::http::documents::health::Check;
    pub use apiloom_server::http::documents::health::Probe;
}

/// Requests and responses of a server, and handlers of them.
pub mod http {
    pub use apiloom_server::http::Body;
    pub use apiloom_server::http::ConnectBody;
    pub use apiloom_server::http::ConnectRequest;
    pub use apiloom_server::http::ConnectResponse;
    pub use apiloom_server::http::ConnectSocket;
    pub use apiloom_server::http::ConnectStream;
    pub use apiloom_server::http::ConnectSubresource;
    pub use apiloom_server::http::CutOff;
    pub use apiloom_server::http::PathHandler;
    pub use apiloom_server::http::PathRequest;
    pub use apiloom_server::http::PathResponse;
    pub use apiloom_server::http::SocketClosed;
    pub use apiloom_server::http::SocketMessage;
}

/// Kubernetes' own kinds, for a registry that a program builds itself.
pub mod kinds {
    pub use apiloom_server::kinds::register_all;
    pub use apiloom_server::kinds::registry;
}

/// Metrics of a program.
pub mod metrics {
    pub use apiloom_server::server::Collect;
    pub use apiloom_server::server::Samples;
}

/// The parts that [`builder`] adds, for programs that add some of them to [`Builder::new`].
pub mod parts {
    #[cfg(feature = "apis-admissionregistration")]
    pub use apiloom_parts::AdmissionWebhooks;
    #[cfg(feature = "apis-apiregistration")]
    pub use apiloom_parts::ApiServices;
    pub use apiloom_parts::Audit;
    #[cfg(feature = "apis-authentication")]
    pub use apiloom_parts::Authentication;
    #[cfg(feature = "apis-apiextensions")]
    pub use apiloom_parts::CustomResources;
    pub use apiloom_parts::EncryptionAtRest;
    pub use apiloom_parts::GarbageCollection;
    pub use apiloom_parts::NamespaceDeletion;
    #[cfg(feature = "apis-authorization")]
    pub use apiloom_parts::{Authorization, AuthorizationMode};
}

/// What is served: kinds at run time, and their objects by code.
pub mod registry {
    pub use apiloom_server::kinds::BuiltIn;
    pub use apiloom_server::registry::CacheReport;
    pub use apiloom_server::registry::Catalog;
    pub use apiloom_server::registry::CatalogChange;
    pub use apiloom_server::registry::CreateOptions;
    pub use apiloom_server::registry::DeleteOptions;
    pub use apiloom_server::registry::DeleteResult;
    pub use apiloom_server::registry::Document;
    pub use apiloom_server::registry::EncodedObject;
    pub use apiloom_server::registry::Endpoint;
    pub use apiloom_server::registry::FieldValidation;
    pub use apiloom_server::registry::GetOptions;
    pub use apiloom_server::registry::Items;
    pub use apiloom_server::registry::Json;
    pub use apiloom_server::registry::ListCounts;
    pub use apiloom_server::registry::ListOptions;
    pub use apiloom_server::registry::ListResult;
    pub use apiloom_server::registry::PatchOptions;
    pub use apiloom_server::registry::Preconditions;
    pub use apiloom_server::registry::PropagationPolicy;
    pub use apiloom_server::registry::Reads;
    pub use apiloom_server::registry::Registry;
    pub use apiloom_server::registry::RegistryBuilder;
    pub use apiloom_server::registry::ResourceReport;
    pub use apiloom_server::registry::ServedGroup;
    pub use apiloom_server::registry::UpdateOptions;
    pub use apiloom_server::registry::VersionMatch;
    pub use apiloom_server::registry::WatchEvent;
    pub use apiloom_server::registry::WatchEventKind;
    pub use apiloom_server::registry::WatchEvents;
    pub use apiloom_server::registry::WriteOptions;
    pub use apiloom_server::registry::WriteRequest;
    pub use apiloom_server::registry::Writes;
    pub use apiloom_server::registry::WrittenObject;
}

/// Where services are reached.
pub mod services {
    pub use apiloom_server::services::ClusterDns;
    pub use apiloom_server::services::ServiceAddress;
    pub use apiloom_server::services::ServiceError;
    pub use apiloom_server::services::ServiceMap;
    pub use apiloom_server::services::ServicePort;
    pub use apiloom_server::services::ServiceResolver;
}
