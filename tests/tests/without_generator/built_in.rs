//! The built-in kinds, in process: their forms, their rules, and one call of the builder for each.

mod config_maps_and_secrets;
mod definitions;
mod events;
mod garbage;
mod leases;
mod recorded;
mod service_accounts;

use apiloom::apis::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use apiloom::server::{Builder, Loopback};
use serde_json::{Value, json};

use super::in_process::{Served, open, read, serve};

/// A server with all built-in kinds.
pub(super) struct BuiltIns {
    server: Served,
    loopback: Loopback,
}

impl BuiltIns {
    async fn new() -> Self {
        let of_parts = |builder: Builder| {
            builder
                .built_in::<Role>()
                .built_in::<ClusterRole>()
                .built_in::<RoleBinding>()
                .built_in::<ClusterRoleBinding>()
        };
        Self::of(|builder| of_parts(builder.all_built_in())).await
    }

    async fn of(configure: impl FnOnce(Builder) -> Builder) -> Self {
        let server = serve(configure).await;
        let loopback = server.loopback.privileged();
        Self { server, loopback }
    }

    /// Sends a request below `/api/v1/namespaces/default`, or below another path that begins with a slash.
    async fn send(&self, method: &str, url: &str, body: &Value) -> (u16, Value) {
        let base = "/api/v1/namespaces/default/";
        let url = if url.starts_with('/') {
            url.to_owned()
        } else {
            format!("{base}{url}")
        };
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (code, text) = read(open(&self.loopback, method, &url, &body).await).await;
        // The 404 of an unknown path is plain text.
        (code, serde_json::from_str(&text).unwrap_or_default())
    }

    /// The object that a successful request answers, without what the server generates.
    async fn object(&self, method: &str, url: &str, body: Value) -> Value {
        let (code, mut object) = self.send(method, url, &body).await;
        assert!(matches!(code, 200 | 201), "{method} {url}: {object}");
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for name in [
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "managedFields",
            ] {
                metadata.remove(name);
            }
        }
        object
    }

    /// The message of a request that fails with 422, without its beginning, which names the object.
    async fn refusal(&self, method: &str, url: &str, body: Value) -> String {
        let (code, status) = self.send(method, url, &body).await;
        assert_eq!(code, 422, "{method} {url}: {status}");
        let message = status["message"].as_str().unwrap();
        let (_, causes) = message.split_once(" is invalid: ").unwrap();
        causes.to_owned()
    }

    /// The cells of the first row of a Table.
    async fn row(&self, url: &str) -> Value {
        let request = http::Request::get(url)
            .header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
            .body(http_body_util::Empty::<&[u8]>::new());
        let (_, text) = read(self.loopback.send(request.unwrap()).await).await;
        let table: Value = serde_json::from_str(&text).unwrap();
        let columns = table["columnDefinitions"].as_array().unwrap();
        let names = columns.iter().map(|column| column["name"].clone());
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        names
            .zip(cells.iter().cloned())
            .map(|(name, cell)| json!([name, cell]))
            .collect()
    }

    async fn stop(self) {
        self.server.stop().await;
    }
}

/// The names of the resources that a group and version serves.
async fn resources(server: &BuiltIns, path: &str) -> Vec<String> {
    let (code, list) = server.send("GET", path, &Value::Null).await;
    if code == 404 {
        return Vec::new();
    }
    let resources = list["resources"].as_array().unwrap();
    let names = resources
        .iter()
        .map(|resource| resource["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_server_serves_the_built_in_kinds_that_it_asks_for() {
    use apiloom::apis::core::v1::Secret;
    let namespaces = ["namespaces", "namespaces/finalize", "namespaces/status"];
    let check = async |configure: fn(Builder) -> Builder, core: &[&str], leases: &[&str]| {
        let server = BuiltIns::of(configure).await;
        let mut expected = [core, &namespaces].concat();
        expected.sort_unstable();
        let mut served = resources(&server, "/api/v1").await;
        served.sort_unstable();
        assert_eq!(served, expected);
        assert_eq!(
            resources(&server, "/apis/coordination.k8s.io/v1").await,
            leases
        );
        server.stop().await;
    };
    check(|builder| builder, &[], &[]).await;
    // Twice is the same as once.
    let secrets = |builder: Builder| builder.built_in::<Secret>().built_in::<Secret>();
    check(secrets, &["secrets"], &[]).await;
    let all = ["configmaps", "events", "secrets", "serviceaccounts"];
    check(
        |builder| builder.built_in::<Secret>().all_built_in(),
        &all,
        &["leases"],
    )
    .await;
}
