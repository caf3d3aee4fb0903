//! Several servers over one store that serve different kinds, or run different controllers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom::apis::core::v1::{ConfigMap, Secret, ServiceAccount};
use apiloom::server::{self, Backend, Builder, Config};
use apiloom_storage::Storage;
use serde_json::{Value, json};

use super::super::super::in_process::serve_with;
use super::super::BuiltIns;
use super::stores::shared;
use super::{create, create_kind, delete, metrics, until_gone};

/// A server over a store that runs the controllers of this list.
async fn serve(
    store: &Arc<dyn Storage>,
    controllers: &str,
    kinds: impl FnOnce(Builder) -> Builder,
) -> BuiltIns {
    let mut config = Config::new("garbage", "/proc/none");
    config.backend = Backend::Memory;
    config.controllers = controllers.parse().unwrap();
    let builder = server::builder(config).storage(Arc::clone(store));
    let server = serve_with(kinds(builder)).await;
    let loopback = server.loopback.privileged();
    BuiltIns { server, loopback }
}

/// Waits until a ConfigMap is collected whose owner was deleted after all earlier requests.
async fn settle(server: &BuiltIns) {
    let owner = create(server, "settled", &[]).await;
    create(server, "settles", &[owner]).await;
    delete(server, "configmaps/settled", "Background").await;
    until_gone(server, "configmaps/settles").await;
}

/// Deletes a ConfigMap, and checks that its dependents are not orphaned meanwhile.
async fn check_is_held(server: &BuiltIns, owner: &str) {
    delete(server, owner, "Orphan").await;
    // Later work is done.
    for _ in 0..3 {
        settle(server).await;
    }
    let (code, owner) = server.send("GET", owner, &Value::Null).await;
    assert_eq!(code, 200, "{owner}");
    assert_eq!(owner["metadata"]["finalizers"], json!(["orphan"]));
}

async fn check_has_no_owner(server: &BuiltIns, dependent: &str) {
    let (code, object) = server.send("GET", dependent, &Value::Null).await;
    assert_eq!(code, 200, "{dependent}: {object}");
    assert_eq!(object["metadata"]["ownerReferences"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_controller_is_run_by_a_server_that_may_run_it() {
    let store = shared();
    // It serves more kinds than the other.
    let of_namespaces = serve(&store, "namespace-controller", Builder::all_built_in).await;
    let few = |builder: Builder| builder.built_in::<ConfigMap>();
    let of_garbage = serve(&store, "garbage-collector-controller", few).await;
    settle(&of_garbage).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ends"}});
    let namespaces = "/api/v1/namespaces";
    let (code, _) = of_garbage.send("POST", namespaces, &namespace).await;
    assert_eq!(code, 201);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "content"}});
    let secrets = "/api/v1/namespaces/ends/secrets";
    let (code, _) = of_namespaces.send("POST", secrets, &secret).await;
    assert_eq!(code, 201);
    delete(&of_garbage, "/api/v1/namespaces/ends", "Background").await;
    until_gone(&of_namespaces, &format!("{secrets}/content")).await;
    of_garbage.stop().await;
    of_namespaces.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_wait_while_two_servers_each_serve_kinds_that_the_other_lacks() {
    let store = shared();
    let one = serve(&store, "*", |builder| {
        builder.built_in::<ConfigMap>().built_in::<Secret>()
    });
    let one = one.await;
    let other = serve(&store, "*", |builder| {
        builder.built_in::<ConfigMap>().built_in::<ServiceAccount>()
    });
    let other = other.await;
    let owner = create(&one, "owner", &[]).await;
    let owners = &[owner];
    create_kind(&one, "Secret", "secrets", "of-one", owners).await;
    create_kind(
        &other,
        "ServiceAccount",
        "serviceaccounts",
        "of-other",
        owners,
    )
    .await;
    check_is_held(&one, "configmaps/owner").await;
    let all = serve(&store, "*", Builder::all_built_in).await;
    one.stop().await;
    other.stop().await;
    until_gone(&all, "configmaps/owner").await;
    check_has_no_owner(&all, "secrets/of-one").await;
    check_has_no_owner(&all, "serviceaccounts/of-other").await;
    all.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_orphans_nothing_while_a_newer_one_restarts() {
    let store = shared();
    let newer = serve(&store, "*", Builder::all_built_in).await;
    let owner = create(&newer, "owner", &[]).await;
    create_kind(&newer, "ServiceAccount", "serviceaccounts", "new", &[owner]).await;
    newer.stop().await;
    let older = serve(&store, "*", |builder| builder.built_in::<ConfigMap>()).await;
    check_is_held(&older, "configmaps/owner").await;
    let newer = serve(&store, "*", Builder::all_built_in).await;
    older.stop().await;
    until_gone(&newer, "configmaps/owner").await;
    check_has_no_owner(&newer, "serviceaccounts/new").await;
    newer.stop().await;
}

/// Waits until the metrics of a server have these lines, and returns them.
async fn until_counted(server: &BuiltIns, lines: &[String]) -> String {
    let started = Instant::now();
    loop {
        let text = metrics(server).await;
        let has = |line: &String| text.lines().any(|known| known == line);
        if lines.iter().all(has) {
            return text;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{lines:?}: {text}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_say_who_leads_and_what_the_queues_do() {
    let store = shared();
    let leader = serve(&store, "*", Builder::all_built_in).await;
    let leads = |controller: &str, value: u8| {
        format!("leader_election_master_status{{name=\"{controller}-controller\"}} {value}")
    };
    let both = ["garbage-collector", "namespace"].map(|name| leads(name, 1));
    until_counted(&leader, &both).await;
    let collector = "*,-namespace-controller";
    let waits = serve(&store, collector, Builder::all_built_in).await;
    let of_waiting = until_counted(&waits, &[leads("garbage-collector", 0)]).await;
    for absent in ["namespace-controller", "workqueue", "rest_client"] {
        assert!(!of_waiting.contains(absent), "{absent}: {of_waiting}");
    }
    settle(&leader).await;
    let deletion = "rest_client_requests_total{code=\"200\",host=\"loopback\",method=\"DELETE\"} 1";
    let text = until_counted(&leader, &[deletion.to_owned()]).await;
    let adds = "workqueue_adds_total{name=\"garbage_collector\"} ";
    let adds = text.lines().find_map(|line| line.strip_prefix(adds));
    assert!(adds.is_some_and(|adds| adds != "0"), "{text}");
    assert!(
        text.contains("workqueue_depth{name=\"namespace\"} 0\n"),
        "{text}"
    );
    // The deletion of the last ConfigMap may be on its way.
    let of_feed =
        |name: &str, count: u8| format!("apiloom_informer_objects{{name=\"{name}\"}} {count}");
    let counts = [
        of_feed("garbage-collector/configmaps", 0),
        of_feed("garbage-collector/namespaces", 4),
        of_feed("namespace-controller/namespaces", 4),
        "apiloom_informer_lists_total{name=\"garbage-collector/configmaps\"} 1".to_owned(),
    ];
    until_counted(&leader, &counts).await;
    create(&leader, "new", &[]).await;
    until_counted(&leader, &[of_feed("garbage-collector/configmaps", 1)]).await;
    let families = text.lines().filter(|line| line.starts_with("# TYPE "));
    let mut families: Vec<&str> = families.collect();
    families.sort_unstable();
    assert!(
        families.is_sorted_by(|one, other| one < other),
        "{families:?}"
    );
    waits.stop().await;
    leader.stop().await;
}
