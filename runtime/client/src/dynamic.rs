//! Objects without a Rust type: whole ones as JSON, and the metadata of any kind.

use apiloom_meta::ObjectMeta;
use apiloom_meta::kind::verbs;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::{
    AllNamespaces, ApiObject, ApiResource, Client, Cluster, Namespaced, ResourceClient, Scope,
};
use crate::object::{HasMetadata, metadata_methods};

/// An object of any kind. Its metadata are typed, the rest is JSON as the server sent it.
///
/// ```no_run
/// # use apiloom_client::{ApiResource, Client, Error, HasMetadata as _};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let deployments = ApiResource::new("apps", "v1", "Deployment", "deployments");
/// for object in client.dynamic_in("default", deployments).list().await?.items {
///     println!("{}: {:?}", object.name(), object.data["spec"]["replicas"]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicObject {
    /// Group and version; servers omit it in items of lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The kind; servers omit it in items of lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The metadata.
    pub metadata: ObjectMeta,
    /// All other fields.
    #[serde(flatten)]
    pub data: Map<String, Value>,
}

/// The metadata of an object of any kind: `PartialObjectMetadata` of `meta.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartialObjectMetadata {
    /// The metadata.
    pub metadata: ObjectMeta,
}

impl DynamicObject {
    /// An object of this kind with this name.
    pub fn new(resource: &ApiResource, name: &str) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.to_string(),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Map::new(),
        }
    }

    /// The same with other fields.
    #[must_use]
    pub fn with_data(mut self, data: Map<String, Value>) -> Self {
        self.data = data;
        self
    }
}

impl HasMetadata for DynamicObject {
    metadata_methods!(self => self.metadata);
}

impl ApiObject for DynamicObject {
    const HAS_TYPE_FIELDS: bool = true;
}

impl HasMetadata for PartialObjectMetadata {
    metadata_methods!(self => self.metadata);
}

impl ApiObject for PartialObjectMetadata {}

// Which verbs there are is known at run time only.
all_verbs!(DynamicObject);
impl verbs::HasStatus for DynamicObject {}
impl verbs::HasScale for DynamicObject {}

// Metadata is neither created nor replaced: servers would take it for a whole object, whose other fields are empty.
impl verbs::Delete for PartialObjectMetadata {}
impl verbs::DeleteCollection for PartialObjectMetadata {}
impl verbs::Get for PartialObjectMetadata {}
impl verbs::List for PartialObjectMetadata {}
impl verbs::Patch for PartialObjectMetadata {}
impl verbs::Watch for PartialObjectMetadata {}
impl verbs::HasStatus for PartialObjectMetadata {}

impl Client {
    /// The objects of a namespaced resource in one namespace.
    pub fn dynamic_in(
        &self,
        namespace: &str,
        resource: ApiResource,
    ) -> ResourceClient<DynamicObject, Namespaced> {
        self.resource(resource, Namespaced::new(namespace))
    }

    /// The objects of a namespaced resource in all namespaces, which can be listed and watched only.
    pub fn dynamic_everywhere(
        &self,
        resource: ApiResource,
    ) -> ResourceClient<DynamicObject, AllNamespaces> {
        self.resource(resource, AllNamespaces)
    }

    /// The objects of a resource without namespaces.
    pub fn dynamic_in_cluster(
        &self,
        resource: ApiResource,
    ) -> ResourceClient<DynamicObject, Cluster> {
        self.resource(resource, Cluster)
    }
}

impl<K: ApiObject, S: Scope> ResourceClient<K, S> {
    /// The metadata of the same objects, in place of whole ones: for kinds whose objects are large.
    ///
    /// It has no verbs that send a whole object, which would lose all but its metadata:
    ///
    /// ```compile_fail,E0277
    /// # use apiloom_client::{Cluster, Kind, ResourceClient};
    /// # use apiloom_client::dynamic::PartialObjectMetadata;
    /// # fn example<K: Kind>(things: ResourceClient<K, Cluster>, metadata: PartialObjectMetadata) {
    /// things.metadata_only().update(&metadata);
    /// # }
    /// ```
    pub fn metadata_only(&self) -> ResourceClient<PartialObjectMetadata, S> {
        self.of_metadata()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scripted::Script;

    fn pots() -> ApiResource {
        ApiResource::new("kitchen.example.com", "v1", "Pot", "pots")
    }

    #[tokio::test]
    async fn items_without_a_type_are_read_and_written_with_one() {
        let list = r#"{"items":[{"metadata":{"name":"a"},"spec":{"litres":2}}]}"#;
        let script = Script::new().answer(200, list).answer(200, "{}");
        let client = Client::new(script.clone()).dynamic_in("ns", pots());
        let item = client.list().await.unwrap().items.remove(0);
        assert_eq!(
            (item.name(), &item.data["spec"]["litres"]),
            ("a", &json!(2))
        );
        client.update(&item).await.unwrap();
        let body: Value = serde_json::from_str(&script.sent()[1].body).unwrap();
        assert_eq!(
            body,
            json!({
                "apiVersion": "kitchen.example.com/v1", "kind": "Pot", "metadata": {"name": "a"}, "spec": {"litres": 2},
            })
        );
    }

    #[tokio::test]
    async fn an_object_with_a_type_has_it_once() {
        let script = Script::new().answer(200, "{}");
        let client = Client::new(script.clone()).dynamic_in_cluster(pots());
        client
            .create(&DynamicObject::new(&pots(), "a"))
            .await
            .unwrap();
        let body = &script.sent()[0].body;
        assert_eq!(body.matches("apiVersion").count(), 1, "{body}");
        assert_eq!(body.matches("\"kind\"").count(), 1, "{body}");
    }

    #[tokio::test]
    async fn metadata_is_asked_for_by_accept() {
        let answer = r#"{"kind":"PartialObjectMetadata","metadata":{"name":"a"},"items":[]}"#;
        let script = Script::new()
            .answer(200, answer)
            .answer(200, answer)
            .answer(200, "");
        let client = Client::new(script.clone())
            .dynamic_in("ns", pots())
            .metadata_only();
        assert_eq!(client.get("a").await.unwrap().name(), "a");
        client.list().await.unwrap();
        client.watch().await.unwrap();
        let accepted = script
            .sent()
            .into_iter()
            .map(|sent| sent.headers["accept"].clone());
        let accepted: Vec<_> = accepted.collect();
        assert_eq!(
            accepted[0],
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        );
        assert_eq!(
            accepted[1],
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        );
        assert_eq!(accepted[2], accepted[0]);
    }
}
