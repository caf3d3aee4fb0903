//! A server without the generator: the macros alone are enough to register a kind in code and serve it, and clients see
//! what its attributes declare.

#![allow(missing_docs, unreachable_pub, reason = "test types")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod built_in;
mod by_code;
mod changes;
mod client_certificates;
mod conversions;
mod in_process;
mod lists;
mod reviews;
mod slow_streams;
mod streams;
mod trace;

use apiloom::prelude::*;
use std::sync::Arc;

use apiloom::server::{self, Backend, Builder, Config};
use apiloom::storage::{Memory, Storage};
use apiloom_tests::{Client, Kubectl};
use serde_json::{Value, json};

/// Kettle boils water.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced, shortname = "kt", verbs(skip = [patch, deletecollection]),
    printcolumn(name = "Litres", path = spec.litres), printcolumn(name = "Color", path = spec.color))]
pub struct Kettle {
    pub metadata: ObjectMeta,
    pub spec: KettleSpec,
}

#[apiloom::api]
pub struct KettleSpec {
    /// How much it holds.
    #[api(min = 1, max = 5)]
    pub litres: i32,
    #[api(default = "red")]
    pub color: String,
}

/// Stove heats kettles. Its status is no `Option`.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced, status)]
pub struct Stove {
    pub metadata: ObjectMeta,
    pub status: StoveStatus,
}

#[apiloom::api]
#[derive(Default)]
pub struct StoveStatus {
    pub lit: bool,
    pub heat: i32,
    pub fuel: Option<String>,
}

const STOVES: &str = "/apis/kitchen.example.com/v1/namespaces/default/stoves";

const KETTLES: &str = "/apis/kitchen.example.com/v1/namespaces/default/kettles";

/// Pan has rules of a field that it does not have.
#[apiloom::resource(
    group = "kitchen.example.com",
    version = "v1",
    namespaced,
    selectable(".spec.depth")
)]
pub struct Pan {
    pub metadata: ObjectMeta,
}
/// The line where `Pan` is declared.
const PAN_LINE: u32 = line!() - 4;

/// Runs a server for Kettle and Stove during `run`.
async fn with_server<F: Future<Output = ()>>(run: impl FnOnce(Client, std::path::PathBuf) -> F) {
    with_server_of(|builder| builder, run).await;
}

async fn with_server_of<F: Future<Output = ()>>(
    configure: impl FnOnce(Builder) -> Builder,
    run: impl FnOnce(Client, std::path::PathBuf) -> F,
) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("kitchen", dir.path());
    config.backend = Backend::Memory;
    config.secure_port = 0;
    let builder = server::builder(config).kind::<Kettle>().kind::<Stove>();
    let server = configure(builder).build().await.unwrap();
    let ready = server.bind().await.unwrap();
    let kubeconfig = ready.kubeconfig().to_owned();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(ready.serve(async { stopped.await.unwrap() }));
    run(Client::new(&kubeconfig), kubeconfig).await;
    stop.send(()).unwrap();
    serving.await.unwrap();
}

fn kettle(spec: Value) -> Value {
    json!({
        "apiVersion": "kitchen.example.com/v1", "kind": "Kettle", "metadata": {"name": "small"}, "spec": spec,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_works_with_a_kind_that_was_registered_in_code() {
    with_server(async |client, kubeconfig| {
        let created = client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
        assert_eq!(created.code, 201, "{}", created.text());
        let said = tokio::task::spawn_blocking(move || {
            Kubectl::new("1.36", &kubeconfig).run(&["get", "kt", "--no-headers"], "")
        });
        let said = said.await.unwrap();
        let words: Vec<&str> = said.stdout.split_whitespace().collect();
        assert_eq!(words[..3], ["small", "2", "red"], "{}", said.stderr);
    })
    .await;
}

#[tokio::test]
async fn what_a_server_cannot_be_built_from_is_told_with_file_and_line() {
    let mut config = Config::new("kitchen", "unused");
    config.backend = Backend::Memory;
    let error = server::builder(config).kind::<Pan>().dump().unwrap_err();
    let place = format!("{}:{PAN_LINE}", file!());
    let problem = "Pan of kitchen.example.com/v1: a selectable field is at .spec.depth, which the schema does not know";
    assert_eq!(error.to_string(), format!("{place}: {problem}"));
}

#[tokio::test]
async fn a_declared_default_defaults() {
    with_server(async |client, _| {
        let created = client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
        assert_eq!(created.json()["spec"], json!({"litres": 2, "color": "red"}));
    })
    .await;
}

#[tokio::test]
async fn a_declared_bound_rejects() {
    with_server(async |client, _| {
        let refused = client.post(KETTLES, &kettle(json!({"litres": 6}))).await;
        assert_eq!(refused.code, 422);
        assert_eq!(
            refused.json()["message"],
            "Kettle.kitchen.example.com \"small\" is invalid: spec.litres: Invalid value: 6: must be less than or equal to 5"
        );
    })
    .await;
}

#[tokio::test]
async fn a_declared_column_is_printed() {
    with_server(async |client, _| {
        client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let table = client
            .call("GET", KETTLES, &[("accept", accept)], "")
            .await
            .json();
        let names: Vec<&str> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["Name", "Litres", "Color", "Age"]);
        assert_eq!(
            table["rows"][0]["cells"].as_array().unwrap()[..3],
            [json!("small"), json!(2), json!("red")]
        );
    })
    .await;
}

#[tokio::test]
async fn a_skipped_verb_is_not_allowed_and_not_listed() {
    with_server(async |client, _| {
        client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
        let patched = client.merge(&format!("{KETTLES}/small"), &json!({})).await;
        let emptied = client.delete(KETTLES, &Value::Null).await;
        assert_eq!((patched.code, emptied.code), (405, 405));
        assert_eq!(patched.json()["reason"], "MethodNotAllowed");
        let listed = client.get("/apis/kitchen.example.com/v1").await.json();
        assert_eq!(
            listed["resources"][0]["verbs"],
            json!(["create", "delete", "get", "list", "update", "watch"])
        );
    })
    .await;
}

#[tokio::test]
async fn a_status_that_is_no_option_begins_as_its_types_default() {
    with_server(async |client, _| {
        let stove = |name: &str, status: Value| {
            json!({
                "apiVersion": "kitchen.example.com/v1", "kind": "Stove", "metadata": {"name": name}, "status": status,
            })
        };
        let cold = json!({"lit": false, "heat": 0});
        let hot = json!({"lit": true, "heat": 7, "fuel": "gas"});
        // Without a status, with an empty one, and with one that a create may not set.
        for (name, given) in [("none", Value::Null), ("empty", json!({})), ("given", hot.clone())] {
            let mut body = stove(name, given);
            if body["status"].is_null() {
                body.as_object_mut().unwrap().remove("status");
            }
            let created = client.post(STOVES, &body).await;
            assert_eq!(created.code, 201, "{name}: {}", created.text());
            assert_eq!(created.json()["status"], cold, "{name}");
        }

        let path = format!("{STOVES}/none");
        let status = format!("{path}/status");
        let lit = client.merge(&status, &json!({"status": hot})).await;
        assert_eq!((lit.code, &lit.json()["status"]), (200, &hot));
        let labeled = client.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}, "status": null})).await;
        assert_eq!((labeled.code, &labeled.json()["status"]), (200, &hot));
        let cleared = client.merge(&status, &json!({"status": null})).await;
        assert_eq!((cleared.code, &cleared.json()["status"]), (200, &cold));
    })
    .await;
}

#[tokio::test]
async fn objects_are_kept_in_the_stores_that_the_program_brings() {
    let (main, of_stoves) = (Memory::new(), Memory::new());
    let bring = {
        let main: Arc<dyn Storage> = Arc::clone(&main) as _;
        let of_stoves: Arc<dyn Storage> = Arc::clone(&of_stoves) as _;
        |builder: Builder| builder.storage(main).storage_of::<Stove>(of_stoves)
    };
    with_server_of(bring, async |client: Client, _| {
        let made = client.post(KETTLES, &kettle(json!({"litres": 2}))).await;
        assert_eq!(made.code, 201);
        let made = client
            .post(STOVES, &json!({"metadata": {"name": "big"}}))
            .await;
        assert_eq!(made.code, 201);
        assert_eq!(client.get("/readyz").await.code, 200);

        let kettle = "/registry/kitchen.example.com/kettles/default/small";
        let stove = "/registry/kitchen.example.com/stoves/default/big";
        let has = async |store: &Memory, key: &str| store.get(key).await.unwrap().0.is_some();
        assert!(has(&main, kettle).await && !has(&main, stove).await);
        assert!(has(&of_stoves, stove).await && !has(&of_stoves, kettle).await);
        let revision =
            client.get(&format!("{STOVES}/big")).await.json()["metadata"]["resourceVersion"]
                .clone();
        let (_, newest) = of_stoves.get(stove).await.unwrap();
        assert_eq!(revision, newest.to_string());
    })
    .await;
}
