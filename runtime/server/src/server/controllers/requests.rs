//! Requests of the server's own controllers to the server, through its whole filter chain.

use std::sync::Arc;

use apiloom_client::client::RetryRules;
use apiloom_client::controller::{GuardedTransport, WriteGuard};
use apiloom_client::dynamic::PartialObjectMetadata;
use apiloom_client::{ApiResource, Client, Error, Kind};
use apiloom_meta::kind::{Scope, SmolStr};
use apiloom_meta::{ObjectMeta, ResourceDef, Status};
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::registry::{Endpoint, Registry};
use crate::server::loopback::Loopback;

/// Metadata only.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Metadata only, of the objects of a list.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// As little as a server responds to a deletion.
const LITTLE: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A client of the server itself, for one controller.
#[derive(Clone)]
pub(super) struct Requests {
    registry: Arc<Registry>,
    client: Client,
}

/// Why a request had no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("no resource is served for the kind {kind} of the group {group:?}")]
    NotServed { group: SmolStr, kind: SmolStr },
    #[error("the objects of some kinds are not listed yet")]
    NotListed,
    #[error("the owner {0:?} exists, but was not seen yet")]
    NotObserved(String),
    #[error("{0} changes all the time")]
    Busy(String),
    #[error(transparent)]
    Client(#[from] Error),
}

impl RequestError {
    /// Whether the object has changed since it was read.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Client(error) if error.is_conflict())
    }

    /// Whether the resource does not have the verb.
    pub(super) fn is_not_allowed(&self) -> bool {
        matches!(self, Self::Client(Error::Api(status)) if status.code == Some(405))
    }
}

/// How a kind is served.
#[derive(Clone, Debug)]
pub(super) struct Served {
    resource: ApiResource,
    pub(super) is_namespaced: bool,
}

impl Served {
    pub(super) fn new(def: &ResourceDef) -> Self {
        let (group, version) = (def.group.clone(), def.version.clone());
        Self {
            resource: ApiResource::new(group, version, def.kind.clone(), def.plural.clone()),
            is_namespaced: def.scope == Scope::Namespaced,
        }
    }

    /// The path of the objects of a namespace, which is empty for cluster-scoped kinds.
    pub(super) fn collection(&self, namespace: &str) -> Result<String, Error> {
        self.resource.collection_path(in_namespace(namespace))
    }

    /// The path of an object.
    pub(super) fn object(&self, namespace: &str, name: &str) -> Result<String, Error> {
        self.resource.object_path(in_namespace(namespace), name)
    }
}

fn in_namespace(namespace: &str) -> Option<&str> {
    Some(namespace).filter(|namespace| !namespace.is_empty())
}

impl Requests {
    /// A client for the controller with this name, which is the manager of the fields that it writes. The guard refuses
    /// writes once another server may run the controller.
    pub(super) fn new(
        registry: Arc<Registry>,
        loopback: &Loopback,
        name: &'static str,
        guard: Option<WriteGuard>,
    ) -> Self {
        let builder = Client::builder(loopback.privileged()).user_agent(name);
        // The queues of the controllers have delays of their own.
        let builder = builder.retry(RetryRules::none()).on_warning(|_| {});
        let client = builder.build().expect("a name is a good header");
        let client = match guard {
            Some(guard) => client.wrap_transport(|inner| GuardedTransport::new(inner, guard)),
            None => client,
        };
        Self { registry, client }
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How a kind is served, in any of its versions.
    ///
    /// # Errors
    /// [`RequestError::NotServed`].
    pub(super) fn served(&self, group: &str, kind: &str) -> Result<Served, RequestError> {
        let catalog = self.registry.catalog();
        let is_of_kind = |endpoint: &&Arc<Endpoint>| {
            let def = endpoint.def();
            def.kind == kind && def.group == group
        };
        let endpoint = catalog.endpoints().iter().find(is_of_kind);
        let not_served = || RequestError::NotServed {
            group: group.into(),
            kind: kind.into(),
        };
        Ok(Served::new(endpoint.ok_or_else(not_served)?.def()))
    }

    /// The metadata of an object, as the store has it; `None` if it does not exist.
    pub(super) async fn metadata(&self, path: &str) -> Result<Option<ObjectMeta>, RequestError> {
        let request = self.client.request(Method::GET, path).accept(METADATA);
        let found = request.json::<PartialObjectMetadata>().await;
        found_or_none(found.map(|object| object.metadata))
    }

    /// An object; `None` if it does not exist.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, RequestError> {
        found_or_none(self.client.request(Method::GET, path).json().await)
    }

    /// Changes an object by a merge patch; `None` if it does not exist.
    pub(super) async fn merge(
        &self,
        path: &str,
        patch: &Value,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let request = self.client.request(Method::PATCH, path).accept(METADATA);
        let request = request.body("application/merge-patch+json", patch.to_string());
        let patched = request.json::<PartialObjectMetadata>().await;
        found_or_none(patched.map(|object| object.metadata))
    }

    /// A page of a list, metadata only, after the one with this token; `None` if the resource is not served.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        limit: usize,
        after: &str,
    ) -> Result<Option<T>, RequestError> {
        let request = self.client.request(Method::GET, path).accept(METADATA_LIST);
        let mut request = request.query("limit", limit.to_string());
        if !after.is_empty() {
            request = request.query("continue", after);
        }
        found_or_none(request.json().await)
    }

    /// Replaces an object; `None` if it does not exist.
    pub(super) async fn put<K: Kind>(
        &self,
        path: &str,
        object: &K,
    ) -> Result<Option<K>, RequestError> {
        /// An object with its type, which its own JSON does not have.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed<'a, K> {
            api_version: String,
            kind: &'a str,
            #[serde(flatten)]
            object: &'a K,
        }
        let resource = K::api_resource();
        let document = Typed {
            api_version: resource.api_version(),
            kind: &resource.kind,
            object,
        };
        let request = self.client.request(Method::PUT, path);
        found_or_none(request.json_body(&document).json().await)
    }

    /// Deletes an object, or all of a collection; nothing if it does not exist. What the server responds is not read.
    pub(super) async fn delete(&self, path: &str, options: Value) -> Result<(), RequestError> {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let (Some(body), Value::Object(options)) = (body.as_object_mut(), options) {
            body.extend(options);
        }
        let request = self.client.request(Method::DELETE, path).accept(LITTLE);
        found_or_none(request.json_body(&body).stream().await).map(drop)
    }
}

/// `None` in place of the error that there is no such object. That its kind is not served any more stays an error: the
/// object may exist.
fn found_or_none<T>(found: Result<T, Error>) -> Result<Option<T>, RequestError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Api(status)) if status.code == Some(404) && names_an_object(&status) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn names_an_object(status: &Status) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| !details.name.is_empty())
}
