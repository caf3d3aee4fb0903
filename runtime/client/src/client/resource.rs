//! `ResourceClient`: the verbs of one kind in one scope.

use std::fmt;
use std::marker::PhantomData;

use apiloom_meta::kind::{ClusterKind, NamespacedKind, verbs};
use http::Method;

use super::builder::Client;
use super::delete::{DeleteCollectionRequest, DeleteOptions, DeleteRequest};
use super::encoding;
use super::list::{GetRequest, ListRequest, ListSource};
use super::object::{ApiObject, ApiResource, Kind};
use super::options::ListOptions;
use super::patch::{Patch, PatchRequest};
use super::path;
use super::request::RawRequest;
use super::scale::Scale;
use super::scope::{AllNamespaces, Cluster, NamespaceScope, Namespaced, ObjectScope, Scope};
use super::subresource::Subresource;
use super::watch::WatchRequest;
use super::write::WriteRequest;
use crate::apply::Configuration;
use crate::error::Error;

/// Media types of metadata alone; servers that do not know them answer 406.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Reads and writes the objects of one kind, in a namespace, in all of them (lists and watches only), or in the cluster.
///
/// Made by [`Client::namespaced`], [`Client::all_namespaces`] and [`Client::cluster`]. Cheap to clone. Each verb returns a
/// request with its options, which is sent when it is awaited:
///
/// ```no_run
/// # use apiloom_client::{AllNamespaces, Client, Error, Kind, Namespaced, NamespacedKind, ResourceClient};
/// # async fn example<Flunder: Kind + NamespacedKind + apiloom_client::verbs::All>(client: Client) -> Result<(), Error> {
/// let flunders: ResourceClient<Flunder, Namespaced> = client.namespaced("default");
/// let flunder = flunders.get("a").resource_version("0").await?;
/// flunders.update(&flunder).dry_run().await?;
/// # Ok(())
/// # }
/// ```
///
/// What a scope does not have does not compile:
///
/// ```compile_fail
/// # use apiloom_client::{Client, Kind, NamespacedKind};
/// # async fn example<Flunder: Kind + NamespacedKind + apiloom_client::verbs::All>(client: Client) {
/// client.all_namespaces::<Flunder>().get("a").await;
/// # }
/// ```
///
/// Nor does a client of a scope that the kind does not have:
///
/// ```compile_fail,E0277
/// # use apiloom_client::{Client, Kind, NamespacedKind};
/// # fn example<Flunder: Kind + NamespacedKind>(client: Client) {
/// client.cluster::<Flunder>();
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use apiloom_client::{Client, ClusterKind, Kind};
/// # fn example<Fischer: Kind + ClusterKind>(client: Client) {
/// client.namespaced::<Fischer>("default");
/// # }
/// ```
pub struct ResourceClient<K, S> {
    client: Client,
    resource: ApiResource,
    scope: S,
    is_metadata: bool,
    object: PhantomData<fn() -> K>,
}

impl Client {
    /// The objects of a namespaced kind in one namespace.
    pub fn namespaced<K: Kind + NamespacedKind>(
        &self,
        namespace: &str,
    ) -> ResourceClient<K, Namespaced> {
        self.resource(K::api_resource(), Namespaced::new(namespace))
    }

    /// The objects of a namespaced kind in the client's default namespace.
    pub fn default_namespaced<K: Kind + NamespacedKind>(&self) -> ResourceClient<K, Namespaced> {
        self.namespaced(self.default_namespace())
    }

    /// The objects of a namespaced kind in all namespaces, which can be listed and watched only.
    pub fn all_namespaces<K: Kind + NamespacedKind>(&self) -> ResourceClient<K, AllNamespaces> {
        self.resource(K::api_resource(), AllNamespaces)
    }

    /// The objects of a kind without namespaces.
    pub fn cluster<K: Kind + ClusterKind>(&self) -> ResourceClient<K, Cluster> {
        self.resource(K::api_resource(), Cluster)
    }

    /// The objects of a resource that is known at run time, decoded as `K`; the caller knows its scope.
    pub fn resource<K: ApiObject, S>(
        &self,
        resource: ApiResource,
        scope: S,
    ) -> ResourceClient<K, S> {
        ResourceClient::new(self.clone(), resource, scope)
    }
}

impl<K, S: Clone> Clone for ResourceClient<K, S> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            is_metadata: self.is_metadata,
            object: PhantomData,
        }
    }
}

impl<K, S: fmt::Debug> fmt::Debug for ResourceClient<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceClient")
            .field("resource", &self.resource)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl<K, S> ResourceClient<K, S> {
    pub(super) fn new(client: Client, resource: ApiResource, scope: S) -> Self {
        Self {
            client,
            resource,
            scope,
            is_metadata: false,
            object: PhantomData,
        }
    }

    /// The limit of its lists.
    pub(crate) fn max_list_bytes(&self) -> usize {
        self.client.settings().max_list_bytes
    }

    /// The client that it was made from.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Group, version, kind and resource.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// The scope.
    pub fn scope(&self) -> &S {
        &self.scope
    }

    /// Whether it shows metadata alone.
    pub(crate) fn is_metadata(&self) -> bool {
        self.is_metadata
    }

    /// The metadata of the same objects, decoded as `M`.
    pub(crate) fn of_metadata<M>(&self) -> ResourceClient<M, S>
    where
        S: Clone,
    {
        ResourceClient {
            client: self.client.clone(),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            is_metadata: true,
            object: PhantomData,
        }
    }

    /// The same objects, decoded as another type.
    pub(crate) fn decode_as<T>(&self) -> ResourceClient<T, S>
    where
        S: Clone,
    {
        ResourceClient {
            client: self.client.clone(),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            is_metadata: self.is_metadata,
            object: PhantomData,
        }
    }
}

impl<K: ApiObject, S: NamespaceScope> ResourceClient<K, S> {
    /// The same objects in one namespace.
    pub fn in_namespace(&self, namespace: &str) -> ResourceClient<K, Namespaced> {
        ResourceClient {
            client: self.client.clone(),
            resource: self.resource.clone(),
            scope: Namespaced::new(namespace),
            is_metadata: self.is_metadata,
            object: PhantomData,
        }
    }
}

impl<K: ApiObject, S: Scope> ResourceClient<K, S> {
    /// Lists the objects; awaiting it gives one answer.
    pub fn list(&self) -> ListRequest<K>
    where
        K: verbs::List,
    {
        ListRequest {
            make: self.source(),
            options: ListOptions::default(),
            keeps_undecodable: false,
            is_retried: true,
            object: PhantomData,
        }
    }

    /// Watches the objects; awaiting it gives the stream of events.
    pub fn watch(&self) -> WatchRequest<K>
    where
        K: verbs::Watch,
    {
        WatchRequest {
            make: ListSource {
                accept: self.is_metadata.then_some(METADATA),
                ..self.source()
            },
            options: ListOptions::default(),
            object: PhantomData,
        }
    }

    fn source(&self) -> ListSource {
        let path = path::collection(&self.resource, self.scope.namespace());
        ListSource {
            client: self.client.clone(),
            path: path.map_err(|error| error.to_string()),
            kind: self.resource.kind.to_string(),
            accept: self.is_metadata.then_some(METADATA_LIST),
        }
    }
}

impl<K: ApiObject, S: ObjectScope> ResourceClient<K, S> {
    /// Reads an object.
    pub fn get(&self, name: &str) -> GetRequest<K>
    where
        K: verbs::Get,
    {
        GetRequest {
            request: self.on_object(Method::GET, name),
            kind: self.resource.kind.to_string(),
            object: PhantomData,
        }
    }

    /// Creates an object. Without a name it needs a `generateName`.
    pub fn create(&self, object: &K) -> WriteRequest<K>
    where
        K: verbs::Create,
    {
        let path = path::collection(&self.resource, self.scope.namespace());
        let request = RawRequest::new(self.client.clone(), Method::POST, path);
        self.write(request.of(&self.resource), object)
    }

    /// Replaces an object. With a resourceVersion only if it is still the present one; see [`ResourceClient::update_with`].
    pub fn update(&self, object: &K) -> WriteRequest<K>
    where
        K: verbs::Update,
    {
        self.write(self.on_object(Method::PUT, object.name()), object)
    }

    /// Changes an object by a patch.
    pub fn patch(&self, name: &str, patch: Patch) -> PatchRequest<K>
    where
        K: verbs::Patch,
    {
        PatchRequest::new(self.write_to(Method::PATCH, name, None), patch)
    }

    /// Sets the fields of a configuration, and removes those that this manager set before and no longer has: server-side
    /// apply. The object is created if it does not exist. Fields that another manager has are a conflict
    /// ([`Error::conflicts`]), unless the request has [`force`](PatchRequest::force).
    ///
    /// The configuration is a builder that `apiloom generate` made for the kind ([`apply`](crate::apply)), or JSON.
    pub fn apply<C: Configuration<K> + ?Sized>(
        &self,
        configuration: &C,
        field_manager: &str,
    ) -> PatchRequest<K>
    where
        K: verbs::Patch,
    {
        let patch = Patch::apply_encoded(self.configuration(configuration));
        self.patch(configuration.name(), patch)
            .field_manager(field_manager)
    }

    /// Deletes an object.
    pub fn delete(&self, name: &str) -> DeleteRequest<K>
    where
        K: verbs::Delete,
    {
        DeleteRequest {
            request: self.on_object(Method::DELETE, name),
            kind: self.resource.kind.to_string(),
            options: DeleteOptions::default(),
            object: PhantomData,
        }
    }

    /// Deletes the selected objects of the namespace, or of the cluster.
    pub fn delete_collection(&self) -> DeleteCollectionRequest<K>
    where
        K: verbs::DeleteCollection,
    {
        DeleteCollectionRequest {
            request: {
                let path = path::collection(&self.resource, self.scope.namespace());
                self.shown(RawRequest::new(self.client.clone(), Method::DELETE, path))
            },
            kind: self.resource.kind.to_string(),
            list: ListOptions::default(),
            options: DeleteOptions::default(),
            object: PhantomData,
        }
    }

    /// Replaces the status of an object: its other fields are not changed.
    pub fn update_status(&self, object: &K) -> WriteRequest<K>
    where
        K: verbs::HasStatus + verbs::Update,
    {
        let target = self.write_to(Method::PUT, object.name(), Some("status"));
        target.with_body(self.encoded(object))
    }

    /// Changes the status of an object by a patch.
    pub fn patch_status(&self, name: &str, patch: Patch) -> PatchRequest<K>
    where
        K: verbs::HasStatus + verbs::Patch,
    {
        PatchRequest::new(self.write_to(Method::PATCH, name, Some("status")), patch)
    }

    /// Applies a configuration that has a status; see [`ResourceClient::apply`]. The object must exist.
    pub fn apply_status<C: Configuration<K> + ?Sized>(
        &self,
        configuration: &C,
        field_manager: &str,
    ) -> PatchRequest<K>
    where
        K: verbs::HasStatus + verbs::Patch,
    {
        let patch = Patch::apply_encoded(self.configuration(configuration));
        self.patch_status(configuration.name(), patch)
            .field_manager(field_manager)
    }

    /// A subresource of the kind, with objects of the type `T`: for kinds with custom subresources.
    ///
    /// ```no_run
    /// # use apiloom_client::{Cluster, Error, Kind, ResourceClient};
    /// # async fn example<Machine: Kind + apiloom_client::verbs::All>(machines: ResourceClient<Machine, Cluster>) -> Result<(), Error> {
    /// let power = machines.subresource::<serde_json::Value>("power");
    /// let is_on = power.get("a").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn subresource<T>(&self, subresource: &str) -> Subresource<T, S> {
        Subresource::new(
            self.client.clone(),
            self.resource.clone(),
            self.scope.clone(),
            subresource,
        )
    }

    /// The number of replicas, of a kind with the subresource `scale`.
    pub fn scale(&self) -> Subresource<Scale, S>
    where
        K: verbs::HasScale,
    {
        self.subresource("scale")
    }

    /// A request to an object.
    fn on_object(&self, method: Method, name: &str) -> RawRequest {
        let path = path::object(&self.resource, self.scope.namespace(), name);
        let request = RawRequest::new(self.client.clone(), method, path);
        self.shown(request.of(&self.resource))
    }

    /// Asks for metadata alone if this client shows no more.
    fn shown(&self, request: RawRequest) -> RawRequest {
        if self.is_metadata {
            request.accept(METADATA)
        } else {
            request
        }
    }

    fn write(&self, request: RawRequest, object: &K) -> WriteRequest<K> {
        let kind = self.resource.kind.to_string();
        WriteRequest::new(request, kind).with_body(self.encoded(object))
    }

    /// A write without a body yet, to an object or one of its subresources.
    fn write_to(&self, method: Method, name: &str, subresource: Option<&str>) -> WriteRequest<K> {
        let path = path::below(&self.resource, self.scope.namespace(), name, subresource);
        let request = RawRequest::new(self.client.clone(), method, path);
        let request = self.shown(request.of(&self.resource));
        WriteRequest::new(request, self.resource.kind.to_string())
    }

    fn encoded(&self, object: &K) -> Result<bytes::Bytes, Error> {
        encoding::object(&self.resource, object)
    }

    fn configuration<C: Configuration<K> + ?Sized>(
        &self,
        configuration: &C,
    ) -> Result<bytes::Bytes, Error> {
        let own = configuration.namespace();
        match (self.scope.namespace(), own) {
            (_, None) => {}
            (Some(namespace), Some(own)) if namespace == own => {}
            (namespace, Some(own)) => {
                let client = namespace.map_or("the cluster".to_owned(), |name| format!("{name:?}"));
                return Err(Error::Request(format!(
                    "the configuration of {} {:?} is for the namespace {own:?}, and the client for {client}",
                    self.resource.kind,
                    configuration.name(),
                )));
            }
        }
        encoding::configuration(&self.resource, configuration.document()?)
    }
}
