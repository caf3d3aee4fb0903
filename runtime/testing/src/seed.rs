//! The objects with which a test server begins.

use apiloom_client::{ApiResource, Client};
use apiloom_meta::kind::Scope;
use apiloom_meta::{Resource, ResourceDef};
use http::Method;
use serde_json::{Value, json};

use super::error::TestError;

/// The namespace that every server has, and that objects without one are in.
const DEFAULT_NAMESPACE: &str = "default";

/// An object that is made before the test begins.
pub(crate) struct Seed {
    resource: ApiResource,
    namespace: Option<String>,
    name: String,
    has_status: bool,
    object: Result<Value, serde_json::Error>,
}

impl Seed {
    pub(crate) fn of<K: Resource>(def: &ResourceDef, object: &K) -> Self {
        let metadata = object.metadata();
        let namespace = || {
            let namespace = metadata.namespace.as_deref();
            namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned()
        };
        Self {
            resource: ApiResource::new(K::GROUP, K::VERSION, K::KIND, K::PLURAL),
            namespace: (def.scope == Scope::Namespaced).then(namespace),
            name: metadata.name.clone().unwrap_or_default(),
            has_status: def.subresources.iter().any(|sub| sub.name == "status"),
            object: serde_json::to_value(object),
        }
    }

    /// Makes the object by requests of a client, and its namespace if that is missing.
    pub(crate) async fn create(self, client: &Client) -> Result<(), TestError> {
        let what = format!("{} {}", self.resource.plural, self.name);
        let failed = |source| TestError::Object {
            what: what.clone(),
            source: Box::new(source),
        };
        if let Some(namespace) = &self.namespace {
            create_namespace(client, namespace).await.map_err(failed)?;
        }
        let Self {
            resource,
            namespace,
            name,
            has_status,
            object,
        } = self;
        let mut object = object.map_err(|error| TestError::Encode(what.clone(), error))?;
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.as_str().into();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // That of another server, if it was read from one.
            metadata.remove("resourceVersion");
        }
        let is_deleted = object["metadata"]["deletionTimestamp"].is_string();
        let status = object["status"].take();
        let namespace = namespace.as_deref();
        let create = async {
            let path = resource.collection_path(namespace)?;
            let created = client.request(Method::POST, path).json_body(&object);
            let mut created: Value = created.json().await?;
            // A name that the server generated.
            let name = created["metadata"]["name"].as_str().unwrap_or(&name);
            let path = resource.object_path(namespace, name)?;
            if has_status && !status.is_null() {
                created["status"] = status;
                let status_path = format!("{path}/status");
                let update = client.request(Method::PUT, status_path).json_body(&created);
                update.bytes().await?;
            }
            if is_deleted {
                client.request(Method::DELETE, path).bytes().await?;
            }
            Ok::<(), apiloom_client::Error>(())
        };
        create.await.map_err(failed)
    }
}

async fn create_namespace(client: &Client, name: &str) -> Result<(), apiloom_client::Error> {
    if name == DEFAULT_NAMESPACE {
        return Ok(());
    }
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let create = client.request(Method::POST, "/api/v1/namespaces");
    match create.json_body(&namespace).bytes().await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}
