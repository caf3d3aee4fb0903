//! kube-rs against wardle-server over TLS: typed and dynamic objects, patches, discovery, and the ways of watching, over
//! restarts of the server; and the types that apiloom generates for it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod definitions;
mod generated;
mod generated_forms;
mod in_memory;
mod objects;
mod watching;

// The fixture `forms` of the generator, with this file as the root of its library.
extern crate self as forms;
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "files of a package"
)]
#[path = "../../../fixtures/generator/forms/src/v1.rs"]
mod v1;

use apiloom_tests::RestartableServer;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams, VersionMatch,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Error, ResourceExt as _, core::Status};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A server of its own for each test, with a client of the administrator.
struct Fixture {
    server: RestartableServer,
    client: Client,
}

impl Fixture {
    async fn start() -> Self {
        let server = RestartableServer::start().await;
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        Self { server, client }
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    fn flunders(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("wardle.example.com", "v1beta1", "Flunder");
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), "default", &resource)
    }

    /// Creates config maps with a label that says whether their number is even.
    async fn fill(&self, count: usize) {
        let (maps, post) = (self.config_maps(), PostParams::default());
        let mut created = None;
        for i in 0..count {
            let object: ConfigMap = typed(json!({
                "metadata": {"name": item(i), "labels": {"even": (i % 2 == 0).to_string()}},
                "data": {"i": i.to_string()},
            }));
            created = maps
                .create(&post, &object)
                .await
                .unwrap()
                .resource_version();
        }
        // A streaming list of kube-rs asks for resourceVersion 0, which a server may answer with what its cache has,
        // and that may be older than the last create; after this list the cache is not.
        let version = created.expect("at least one object is created");
        let fresh = ListParams::default()
            .at(&version)
            .matching(VersionMatch::NotOlderThan);
        maps.list(&fresh).await.unwrap();
    }
}

fn item(i: usize) -> String {
    format!("item-{i:03}")
}

fn typed<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str, data: &Value) -> ConfigMap {
    typed(json!({"metadata": {"name": name}, "data": data}))
}

/// The document of a flunder that names another one.
fn flunder(name: &str, reference: &str) -> Value {
    json!({
        "apiVersion": "wardle.example.com/v1beta1",
        "kind": "Flunder",
        "metadata": {"name": name},
        "spec": {"flunderReference": reference, "referenceType": "Flunder"},
    })
}

/// The Status of a request that has to fail with this code and reason.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, code: u16, reason: &str) -> Status {
    let Err(Error::Api(status)) = result else {
        panic!("{result:?} is no {reason}");
    };
    assert_eq!((status.code, status.reason.as_str()), (code, reason));
    *status
}

/// The fields that the causes of a Status are about.
fn fields(status: &Status) -> Vec<&str> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| cause.field.as_str()).collect()
}
