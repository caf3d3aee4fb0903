//! Requests of the server's own controllers to the server, through its whole filter chain.

use std::sync::Arc;

use apiloom_client::client::{RawRequest, RetryRules};
use apiloom_client::controller::{GuardedTransport, WriteGuard};
use apiloom_client::dynamic::PartialObjectMetadata;
use apiloom_client::metrics::RequestMetrics;
use apiloom_client::{ApiResource, Client, Error, Kind};
use apiloom_meta::kind::{DeletionRule, Dependents, Scope, SmolStr, Verb};
use apiloom_meta::{GroupResource, ObjectMeta, ResourceDef, Status};
use apiloom_registry::{Endpoint, Registry};
use apiloom_storage::StorageError;
use http::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::servers::Servers;
use crate::server::loopback::Loopback;

/// Metadata only.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Metadata only, of the objects of a list.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Whole objects and lists.
const JSON: &str = "application/json";

/// As little as a server responds to a deletion.
const LITTLE: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A client of the server itself, for one controller.
#[derive(Clone)]
pub struct Requests {
    registry: Arc<Registry>,
    client: Client,
    /// The servers over the same store, if there may be others.
    servers: Option<Arc<Servers>>,
}

/// Why a request had no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No version of the kind is served.
    #[error("no resource is served for the kind {kind} of the group {group:?}")]
    NotServed {
        /// API group.
        group: SmolStr,
        /// Kind.
        kind: SmolStr,
    },
    /// The resource has none of the verbs that the request needs.
    #[error("{resource} has no verb {verbs}")]
    NoVerb {
        /// The resource.
        resource: GroupResource,
        /// The verbs, of which one is enough.
        verbs: &'static str,
    },
    /// Another server over the same store may have objects that this one does not see.
    #[error(
        "another server over the same store serves the kind {kind} of the group {group:?}, and this one does not"
    )]
    OnlyElsewhere {
        /// API group.
        group: SmolStr,
        /// Kind.
        kind: SmolStr,
    },
    /// A controller does not know all objects yet.
    #[error("the objects of some kinds are not listed yet")]
    NotListed,
    /// A controller was not told of an object yet that it read.
    #[error("the owner {0:?} exists, but was not seen yet")]
    NotObserved(String),
    /// An object changed between each read and the write that followed.
    #[error("{0} changes all the time")]
    Busy(String),
    /// That of a request that several waited for.
    #[error(transparent)]
    Shared(Arc<RequestError>),
    /// The server refused the request, or did not answer it.
    #[error(transparent)]
    Client(#[from] Error),
    /// The records of the servers over the store cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl RequestError {
    /// Whether the object has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Client(error) if error.is_conflict())
    }

    /// Whether the server answered that the request itself is wrong or not allowed: the same one is refused again.
    pub fn is_refusal(&self) -> bool {
        let Self::Client(Error::Api(status)) = self else {
            return false;
        };
        matches!(status.code, Some(400 | 403 | 405 | 422))
    }

    /// Whether it stays as it is while the same kinds are served.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Shared(error) => error.is_lasting(),
            Self::NotServed { .. } | Self::NoVerb { .. } | Self::Client(Error::Request(_)) => true,
            _ => false,
        }
    }

    /// Whether the resource does not have the verb.
    pub fn is_not_allowed(&self) -> bool {
        matches!(self, Self::Client(Error::Api(status)) if status.code == Some(405))
    }
}

/// Whether the garbage collector follows the objects of a kind, as that of Kubernetes does: those that can be listed,
/// watched and deleted, but no Events, whose deletion has no rules for dependents, and none by code of the program, whose
/// changes have no revision of the store.
pub fn is_followed(def: &ResourceDef) -> bool {
    let can = |verb: Verb| def.verbs.contains(&verb);
    let has_no_dependents = matches!(
        &def.deletion,
        DeletionRule::Object(rule) if rule.dependents == Dependents::Unsupported
    );
    def.has_store && can(Verb::List) && can(Verb::Watch) && can(Verb::Delete) && !has_no_dependents
}

/// How a kind is served.
#[derive(Clone, Debug)]
pub struct ServedKind {
    resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether the garbage collector sees its objects.
    pub is_followed: bool,
    can_get: bool,
    can_list: bool,
    can_patch: bool,
    can_update: bool,
}

/// An object of a served kind.
#[derive(Clone, Debug)]
pub struct Target {
    served: ServedKind,
    /// The path of the object.
    pub path: String,
    collection: String,
    name: String,
}

impl Target {
    /// Group and version in which it is requested.
    pub fn api_version(&self) -> String {
        self.served.resource.api_version()
    }

    fn no_verb(&self, verbs: &'static str) -> RequestError {
        RequestError::NoVerb {
            resource: self.served.resource.group_resource(),
            verbs,
        }
    }
}

impl ServedKind {
    /// The kind with this definition.
    pub fn new(def: &ResourceDef) -> Self {
        let (group, version) = (def.group.clone(), def.version.clone());
        let can = |verb: Verb| def.verbs.contains(&verb);
        Self {
            resource: ApiResource::new(group, version, def.kind.clone(), def.plural.clone()),
            is_namespaced: def.scope == Scope::Namespaced,
            is_followed: is_followed(def),
            can_get: can(Verb::Get),
            can_list: can(Verb::List),
            can_patch: can(Verb::Patch),
            can_update: can(Verb::Update),
        }
    }

    /// An object in a namespace, which is empty for cluster-scoped kinds.
    ///
    /// # Errors
    /// If no object can have the name.
    pub fn target(&self, namespace: &str, name: &str) -> Result<Target, Error> {
        Ok(Target {
            path: self.object(namespace, name)?,
            collection: self.collection(namespace)?,
            name: name.to_owned(),
            served: self.clone(),
        })
    }

    /// The path of the objects of a namespace, which is empty for cluster-scoped kinds.
    pub fn collection(&self, namespace: &str) -> Result<String, Error> {
        self.resource.collection_path(in_namespace(namespace))
    }

    /// The path of an object.
    pub fn object(&self, namespace: &str, name: &str) -> Result<String, Error> {
        self.resource.object_path(in_namespace(namespace), name)
    }
}

/// The field selector of a name. In a value, a backslash protects what has a meaning in selectors.
fn selector_of(name: &str) -> String {
    let mut selector = String::from("metadata.name=");
    for c in name.chars() {
        if matches!(c, '\\' | ',' | '=') {
            selector.push('\\');
        }
        selector.push(c);
    }
    selector
}

/// The objects of a list.
#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

fn in_namespace(namespace: &str) -> Option<&str> {
    Some(namespace).filter(|namespace| !namespace.is_empty())
}

/// A client for the controller with this name, which is the manager of the fields that it writes. The guard refuses
/// writes once another server may run the controller.
pub(super) fn client(
    loopback: &Loopback,
    name: &'static str,
    guard: Option<WriteGuard>,
    metrics: &RequestMetrics,
) -> Client {
    let builder = Client::builder(loopback.privileged()).user_agent(name);
    // The queues of the controllers have delays of their own.
    let builder = builder.retry(RetryRules::none()).on_warning(|_| {});
    let client = builder.metrics(metrics).build();
    let client = client.expect("a name is a good header");
    match guard {
        Some(guard) => client.wrap_transport(|inner| GuardedTransport::new(inner, guard)),
        None => client,
    }
}

impl Requests {
    /// The requests that a client of this server sends, whose kinds are those of the registry.
    pub(super) fn new(registry: Arc<Registry>, client: Client) -> Self {
        Self {
            registry,
            client,
            servers: None,
        }
    }

    /// The same beside other servers over the same store.
    pub(super) fn beside(self, servers: Option<Arc<Servers>>) -> Self {
        Self { servers, ..self }
    }

    /// Fails if another server over the same store serves a kind that this one does not: what follows from the absence of
    /// objects is left to it.
    pub async fn check_serves_all(&self) -> Result<(), RequestError> {
        let Some(servers) = &self.servers else {
            return Ok(());
        };
        match servers.unserved_kind().await? {
            None => Ok(()),
            Some((group, kind)) => Err(RequestError::OnlyElsewhere { group, kind }),
        }
    }

    /// The registry of the server.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The client, for what sends requests of its own.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How a kind is served, in any of its versions.
    ///
    /// # Errors
    /// [`RequestError::NotServed`].
    pub fn served(&self, group: &str, kind: &str) -> Result<ServedKind, RequestError> {
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
        Ok(ServedKind::new(endpoint.ok_or_else(not_served)?.def()))
    }

    /// The metadata of an object, as the store has it; `None` if it does not exist.
    pub async fn metadata(&self, object: &Target) -> Result<Option<ObjectMeta>, RequestError> {
        let found: Option<PartialObjectMetadata> =
            self.read(object, METADATA, METADATA_LIST).await?;
        Ok(found.map(|object| object.metadata))
    }

    /// An object, by a get or, if its kind has none, by a list.
    async fn read<T: DeserializeOwned>(
        &self,
        object: &Target,
        accept: &'static str,
        accept_list: &'static str,
    ) -> Result<Option<T>, RequestError> {
        if object.served.can_get {
            let request = self.client.request(Method::GET, &object.path);
            return found_or_none(request.accept(accept).json().await);
        }
        if !object.served.can_list {
            return Err(object.no_verb("get or list"));
        }
        let request = self.client.request(Method::GET, &object.collection);
        let request = request.query("fieldSelector", selector_of(&object.name));
        let list: Items<T> = request.accept(accept_list).json().await?;
        Ok(list.items.into_iter().next())
    }

    /// An object; `None` if it does not exist.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, RequestError> {
        found_or_none(self.client.request(Method::GET, path).json().await)
    }

    /// Sets a field of the metadata of an object that has not changed since `latest`, or removes it with null; `None` if
    /// the object does not exist.
    pub async fn set(
        &self,
        object: &Target,
        latest: &ObjectMeta,
        field: &str,
        value: Value,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let version = json!(latest.resource_version);
        let fields = [("resourceVersion", version), (field, value)];
        let fields = fields.map(|(field, value)| (field.to_owned(), value));
        let fields = Map::from_iter(fields);
        if object.served.can_patch {
            return self
                .merge(&object.path, &json!({ "metadata": fields }))
                .await;
        }
        if !object.served.can_update {
            return Err(object.no_verb("patch or update"));
        }
        let Some(changed) = self.with_fields(object, fields).await? else {
            return Ok(None);
        };
        let request = self.client.request(Method::PUT, &object.path);
        metadata_of(request.json_body(&changed)).await
    }

    /// Merges a patch into an object or a subresource; `None` if the object does not exist.
    pub async fn merge(
        &self,
        path: &str,
        patch: &Value,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let request = self.client.request(Method::PATCH, path);
        metadata_of(request.body("application/merge-patch+json", patch.to_string())).await
    }

    /// A whole object with other fields in its metadata.
    async fn with_fields(
        &self,
        object: &Target,
        fields: Map<String, Value>,
    ) -> Result<Option<Map<String, Value>>, RequestError> {
        let whole: Option<Map<String, Value>> = self.read(object, JSON, JSON).await?;
        let Some(mut whole) = whole else {
            return Ok(None);
        };
        // The items of lists have no types.
        let resource = &object.served.resource;
        whole.insert("apiVersion".to_owned(), resource.api_version().into());
        whole.insert("kind".to_owned(), resource.kind.as_str().into());
        if let Some(Value::Object(metadata)) = whole.get_mut("metadata") {
            metadata.extend(fields);
            metadata.retain(|_, value| !value.is_null());
        }
        Ok(Some(whole))
    }

    /// A page of a list, metadata only, after the one with this token; `None` if the resource is not served.
    pub async fn list<T: DeserializeOwned>(
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
    pub async fn put<K: Kind>(&self, path: &str, object: &K) -> Result<Option<K>, RequestError> {
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
    pub async fn delete(&self, path: &str, options: Value) -> Result<(), RequestError> {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let (Some(body), Value::Object(options)) = (body.as_object_mut(), options) {
            body.extend(options);
        }
        let request = self.client.request(Method::DELETE, path).accept(LITTLE);
        found_or_none(request.json_body(&body).stream().await).map(drop)
    }
}

/// Sends a change of an object; returns the metadata of the changed one, or `None` if it does not exist.
async fn metadata_of(change: RawRequest) -> Result<Option<ObjectMeta>, RequestError> {
    let changed = change.accept(METADATA).json::<PartialObjectMetadata>();
    found_or_none(changed.await.map(|object| object.metadata))
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
