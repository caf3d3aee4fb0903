//! Test servers: what a test sees of them, and what it does to them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use apiloom_client::cache::InformerFactory;
use apiloom_client::{Client, HasMetadata as _, Patch, ResourceClient, WatchEvent};
use apiloom_kinds::core::v1::{ConfigMap, Event, Namespace, ObjectReference};
use apiloom_meta::kind::Verb;
use apiloom_meta::{MicroTime, ObjectMeta, OwnerReference};
use apiloom_testing::{Control, Fault, Revisions, TestError, TestServer};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::{Instant, timeout};

/// Longer than any test takes.
const LIMIT: Duration = Duration::from_secs(20);

/// Pause before a condition is looked at again.
const AGAIN: Duration = Duration::from_millis(20);

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: [("key".to_owned(), value.to_owned())].into(),
        ..ConfigMap::default()
    }
}

async fn start() -> (TestServer, Control) {
    let server = TestServer::builder().built_in().build().await.unwrap();
    let control = server.control();
    (server, control)
}

fn config_maps(server: &TestServer) -> ResourceClient<ConfigMap, apiloom_client::Namespaced> {
    server.client().namespaced("default")
}

fn texts(control: &Control) -> Vec<String> {
    let actions = control.take_actions();
    actions.iter().map(ToString::to_string).collect()
}

/// Waits for a condition, which something else than a request makes true.
async fn until(what: &str, is_true: impl AsyncFn() -> bool) {
    let waited = timeout(LIMIT, async {
        while !is_true().await {
            tokio::time::sleep(AGAIN).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

#[tokio::test]
async fn requests_are_recorded_as_data() {
    let (server, control) = start().await;
    let client = server
        .client_builder()
        .user_agent("test/1")
        .build()
        .unwrap();
    let maps = client.namespaced::<ConfigMap>("default");
    let created = maps.create(&config_map("a", "1")).await.unwrap();
    maps.update(&created).await.unwrap();
    maps.list().labels("x=y").await.unwrap();
    client.cluster::<Namespace>().get("default").await.unwrap();
    let apply =
        serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    maps.apply(&apply, "m").await.unwrap();
    maps.delete("a").await.unwrap();
    let _: serde_json::Value = client
        .request(http::Method::GET, "/version")
        .json()
        .await
        .unwrap();

    let actions = control.actions();
    assert_eq!(actions[0].user_agent, "test/1");
    assert_eq!(actions[0].json()["data"]["key"], "1");
    assert_eq!(actions[0].version, "v1");
    assert_eq!(actions[2].uri.query(), Some("labelSelector=x%3Dy"));
    assert_eq!(
        texts(&control),
        [
            "create configmaps default/a",
            "update configmaps default/a",
            "list configmaps default",
            "get namespaces default",
            "apply configmaps default/a",
            "delete configmaps default/a",
            "get /version",
        ]
    );
    assert_eq!(control.actions().len(), 0);
}

#[tokio::test]
async fn objects_exist_at_the_start_with_their_namespaces() {
    let mut other = config_map("b", "2");
    other.metadata.namespace = Some("prod".to_owned());
    other.metadata.resource_version = Some("77".to_owned());
    let mut leaving = config_map("c", "3");
    leaving.metadata.deletion_timestamp = Some(apiloom_meta::Time::now());
    leaving.metadata.finalizers = vec!["example.com/hold".to_owned()];
    let server = TestServer::builder()
        .built_in()
        .objects([config_map("a", "1"), other, leaving])
        .build()
        .await
        .unwrap();
    let all = server.client().all_namespaces::<ConfigMap>();
    let all = all.list().await.unwrap().items;
    let names: Vec<_> = all
        .iter()
        .map(|map| (map.namespace().to_owned(), map.name().to_owned()))
        .collect();
    let expected = [("default", "a"), ("default", "c"), ("prod", "b")];
    assert_eq!(names, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(all[1].metadata.deletion_timestamp.is_some());
    assert_eq!(texts(&server.control()), ["list configmaps"]);
}

#[tokio::test]
async fn an_object_that_is_refused_fails_the_start_by_name() {
    let builder = TestServer::builder().built_in();
    let error = builder.objects([config_map("A_", "1")]).build().await;
    let error = error.unwrap_err();
    assert!(matches!(error, TestError::Object { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("cannot create configmaps A_: "), "{text}");
}

#[tokio::test]
async fn the_second_update_conflicts_and_is_not_written() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let second = control.inject(
        Fault::on(Verb::Update)
            .kind::<ConfigMap>()
            .nth(2)
            .conflict(),
    );
    let mut map = maps.create(&config_map("a", "1")).await.unwrap();
    map.data.insert("key".to_owned(), "2".to_owned());
    let mut map = maps.update(&map).await.unwrap();
    map.data.insert("key".to_owned(), "3".to_owned());
    let error = maps.update(&map).await.unwrap_err();
    assert!(error.is_conflict());
    assert!(
        error.to_string().contains(
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified"
        ),
        "{error}"
    );
    assert_eq!(maps.get("a").await.unwrap().data["key"], "2");
    assert_eq!((second.hits(), second.is_over()), (1, true));
    maps.update(&map).await.unwrap();
}

#[tokio::test]
async fn a_conflict_is_met_by_another_try_of_update_with() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    maps.create(&config_map("a", "1")).await.unwrap();
    control.inject(Fault::on(Verb::Update).times(2).conflict());
    let write = |map: &mut ConfigMap| {
        map.data.insert("key".to_owned(), "2".to_owned());
    };
    maps.update_with("a", write).await.unwrap();
    let texts = texts(&control);
    let updates = texts.iter().filter(|text| text.starts_with("update"));
    assert_eq!(updates.count(), 3, "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_codes_of_a_server() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    // The client waits as it is told, and tries again.
    let busy = Fault::on(Verb::Create).too_many_requests(Duration::from_millis(2_500));
    control.inject(busy);
    let begun = tokio::time::Instant::now();
    maps.create(&config_map("a", "1")).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(control.actions().len(), 2);

    let failed = control.inject(Fault::on(Verb::Get).name("a").always().internal_error());
    assert_eq!(maps.get("a").await.unwrap_err().code(), Some(500));
    assert_eq!(maps.get("a").await.unwrap_err().code(), Some(500));
    assert!(maps.get("b").await.unwrap_err().is_not_found());
    failed.end();
    control.inject(Fault::on(Verb::Get).namespace("default").timeout());
    let error = maps.get("a").await.unwrap_err();
    let reason = error.status().map(|status| status.reason.clone());
    assert_eq!(
        (error.code(), reason.as_deref()),
        (Some(504), Some("Timeout"))
    );
    maps.get("a").await.unwrap();
    assert_eq!((failed.hits(), failed.is_over()), (2, true));
}

#[tokio::test]
async fn a_lost_connection_leaves_open_whether_a_write_took_effect() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    control.inject(Fault::on(Verb::Create).name("a").lost_before());
    control.inject(Fault::on(Verb::Create).name("b").lost_after());
    for name in ["a", "b"] {
        let error = maps.create(&config_map(name, "1")).await.unwrap_err();
        let apiloom_client::Error::Transport(error) = error else {
            panic!("{error:?}");
        };
        assert!(!error.is_unsent());
    }
    assert!(maps.get("a").await.unwrap_err().is_not_found());
    maps.get("b").await.unwrap();
    assert_eq!(control.actions().len(), 4);
}

#[tokio::test]
async fn a_fault_of_a_subresource_or_an_apply_hits_nothing_else() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let status = control.inject(Fault::on(Verb::Update).subresource("status").conflict());
    let apply = control.inject(Fault::on_apply().conflict());
    let other = control.inject(Fault::on(Verb::Update).kind::<Event>().conflict());
    let map = maps.create(&config_map("a", "1")).await.unwrap();
    maps.update(&map).await.unwrap();
    let merge = serde_json::json!({ "data": { "key": "2" } });
    maps.patch("a", apiloom_client::Patch::merge(&merge))
        .await
        .unwrap();
    assert_eq!([status.hits(), apply.hits(), other.hits()], [0; 3]);
    let map =
        serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let error = maps.apply(&map, "m").await.unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(apply.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn latency_delays_requests() {
    let (server, control) = start().await;
    control.latency(Duration::from_secs(7));
    let begun = tokio::time::Instant::now();
    config_maps(&server).list().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test]
async fn a_dropped_watch_fails_and_can_be_resumed() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let list = maps.list().await.unwrap();
    let mut events = maps.watch().from(list.resource_version()).await.unwrap();
    let created = maps.create(&config_map("a", "1")).await.unwrap();
    assert!(matches!(
        events.next().await.unwrap().unwrap(),
        WatchEvent::Added(_)
    ));
    assert_eq!(control.watches(), 1);
    assert_eq!(control.drop_watches(), 1);
    assert!(events.next().await.unwrap().is_err());
    drop(events);
    assert_eq!(control.watches(), 0);
    maps.delete("a").await.unwrap();
    let mut events = maps.watch().from(created.resource_version()).await.unwrap();
    assert!(matches!(
        events.next().await.unwrap().unwrap(),
        WatchEvent::Deleted(_)
    ));
}

#[tokio::test]
async fn after_a_compaction_a_resumed_watch_is_expired() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let list = maps.list().await.unwrap();
    let mut open = maps.watch().from(list.resource_version()).await.unwrap();
    for _ in 0..2 {
        // The second time nothing was written since then.
        let before = maps.list().await.unwrap();
        control.compact().await.unwrap();
        let refused = maps.watch().from(before.resource_version()).await;
        let is_expired = match refused {
            Err(error) => error.is_expired(),
            Ok(mut events) => events.next().await.unwrap().unwrap_err().is_expired(),
        };
        assert!(is_expired);
    }
    let Revisions { oldest, current } = control.revisions();
    assert_eq!(oldest, current);
    // An open watch goes on.
    maps.create(&config_map("a", "1")).await.unwrap();
    assert!(matches!(
        open.next().await.unwrap().unwrap(),
        WatchEvent::Added(_)
    ));
}

#[tokio::test]
async fn an_informer_survives_dropped_watches_and_compaction() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let factory = InformerFactory::new(&server.client());
    let informer = factory.informer::<ConfigMap>();
    let lister = informer.lister();
    factory.start();
    assert!(factory.wait_for_sync(LIMIT).await.is_ok());
    maps.create(&config_map("a", "1")).await.unwrap();
    until("a is seen", async || lister.len() == 1).await;
    until("it watches", async || control.watches() == 1).await;
    let held = control.pause_watch_cache();
    maps.create(&config_map("b", "1")).await.unwrap();
    maps.delete("a").await.unwrap();
    assert_eq!(lister.list()[0].name(), "a", "the informer is stale");
    assert_eq!(control.drop_watches(), 1);
    drop(held);
    control.compact().await.unwrap();
    until("b is seen, and a is gone", async || {
        lister.len() == 1 && lister.list()[0].name() == "b"
    })
    .await;
    factory.shutdown().await;
}

#[tokio::test]
async fn a_paused_watch_cache_serves_what_it_had() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let stale = async || {
        let list = maps.list().resource_version("0").await.unwrap();
        list.items.len()
    };
    maps.create(&config_map("a", "1")).await.unwrap();
    until("the cache has a", async || stale().await == 1).await;
    let paused = [control.pause_watch_cache(), control.pause_watch_cache()];
    maps.create(&config_map("b", "1")).await.unwrap();
    let [first, second] = paused;
    drop(first);
    assert_eq!(stale().await, 1);
    drop(second);
    until("the cache has b", async || stale().await == 2).await;
}

#[tokio::test]
async fn the_server_dates_its_writes_by_the_clock_of_the_test() {
    let time = "2030-01-02T03:04:05.000000Z".parse().unwrap();
    let builder = TestServer::builder().built_in().start_time(time);
    let server = builder.build().await.unwrap();
    let control = server.control();
    let maps = config_maps(&server);
    let mut held = config_map("a", "1");
    held.metadata.finalizers = vec!["example.com/hold".to_owned()];
    let created = maps.create(&held).await.unwrap();
    let text = |time: Option<apiloom_meta::Time>| time.unwrap().to_string();
    assert_eq!(
        text(created.metadata.creation_timestamp),
        "2030-01-02T03:04:05Z"
    );
    control.clock().advance(Duration::from_secs(3_600));
    maps.delete("a").await.unwrap();
    let map = maps.get("a").await.unwrap();
    assert_eq!(
        text(map.metadata.deletion_timestamp),
        "2030-01-02T04:04:05Z"
    );
    assert_eq!(
        control.clock().now(),
        map.metadata.deletion_timestamp.unwrap()
    );
    let raw: serde_json::Value = server
        .client()
        .request(http::Method::GET, "/api/v1/namespaces/default/configmaps/a")
        .json()
        .await
        .unwrap();
    assert_eq!(
        raw["metadata"]["managedFields"][0]["time"],
        "2030-01-02T03:04:05Z"
    );
    let table: serde_json::Value = server
        .client()
        .request(http::Method::GET, "/api/v1/namespaces/default/configmaps")
        .accept("application/json;as=Table;v=v1;g=meta.k8s.io")
        .json()
        .await
        .unwrap();
    assert_eq!(
        table["rows"][0]["cells"],
        serde_json::json!(["a", 1, "60m"])
    );
}

#[tokio::test]
async fn events_expire_when_the_clock_is_moved() {
    let (server, control) = start().await;
    let events = server.client().namespaced::<Event>("default");
    let event = Event {
        metadata: ObjectMeta {
            name: Some("a".to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            namespace: Some("default".to_owned()),
            ..ObjectReference::default()
        },
        ..Event::default()
    };
    events.create(&event).await.unwrap();
    let mut watch = events.watch().await.unwrap();
    assert!(matches!(
        watch.next().await.unwrap().unwrap(),
        WatchEvent::Added(_)
    ));
    control.clock().advance(Duration::from_secs(3_599));
    events.get("a").await.unwrap();
    control.clock().advance(Duration::from_secs(1));
    assert!(events.get("a").await.unwrap_err().is_not_found());
    assert!(matches!(
        watch.next().await.unwrap().unwrap(),
        WatchEvent::Deleted(_)
    ));
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_hides_no_other() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    maps.create(&config_map("a", "1")).await.unwrap();
    let broken = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"#;
    control
        .seed_raw::<ConfigMap>(Some("default"), "b", &broken[..])
        .await
        .unwrap();
    assert_eq!(maps.get("b").await.unwrap_err().code(), Some(500));
    maps.get("a").await.unwrap();
    let unknown = control
        .seed_raw::<ConfigMap>(Some("default"), "a/b", "")
        .await;
    assert!(matches!(unknown, Err(TestError::Api(_))));
}

#[tokio::test]
async fn a_write_that_changes_nothing_makes_no_revision() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let map = maps.create(&config_map("a", "1")).await.unwrap();
    let before = control.revisions();
    maps.update(&map).await.unwrap();
    assert_eq!(control.revisions(), before);
    maps.delete("a").await.unwrap();
    assert_eq!(control.revisions().current, before.current + 1);
}

#[tokio::test]
async fn garbage_is_collected_only_if_the_test_wants_it() {
    for is_on in [false, true] {
        let builder = TestServer::builder().built_in();
        let builder = if is_on {
            builder.garbage_collector()
        } else {
            builder
        };
        let server = builder.build().await.unwrap();
        let maps = config_maps(&server);
        let parent = maps.create(&config_map("parent", "1")).await.unwrap();
        let mut child = config_map("child", "1");
        child.metadata.owner_references = vec![OwnerReference::to(&parent)];
        maps.create(&child).await.unwrap();
        maps.delete("parent").await.unwrap();
        if is_on {
            until("the child is gone", async || {
                maps.get("child")
                    .await
                    .is_err_and(|error| error.is_not_found())
            })
            .await;
        } else {
            maps.get("child").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_namespace_is_emptied_if_the_test_wants_it() {
    let mut map = config_map("a", "1");
    map.metadata.namespace = Some("prod".to_owned());
    let builder = TestServer::builder().built_in().namespace_controller();
    let server = builder.objects([map]).build().await.unwrap();
    let namespaces = server.client().cluster::<Namespace>();
    namespaces.delete("prod").await.unwrap();
    until("the namespace is gone", async || {
        namespaces
            .get("prod")
            .await
            .is_err_and(|error| error.is_not_found())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_for_late_creates_at_all_times_of_the_servers_clock() {
    for year in [2001, 2101] {
        let start: MicroTime = format!("{year}-02-03T04:05:06.000000Z").parse().unwrap();
        let mut map = config_map("a", "1");
        map.metadata.namespace = Some("prod".to_owned());
        map.metadata.finalizers = vec!["example.com/hold".to_owned()];
        let builder = TestServer::builder().built_in().namespace_controller();
        let server = builder.objects([map]).start_time(start).build();
        let server = server.await.unwrap();
        let namespaces = server.client().cluster::<Namespace>();
        namespaces.delete("prod").await.unwrap();
        let deleted = Instant::now();
        until("the conditions are set", async || {
            !namespaces
                .get("prod")
                .await
                .unwrap()
                .status
                .conditions
                .is_empty()
        })
        .await;
        for condition in namespaces.get("prod").await.unwrap().status.conditions {
            assert_eq!(
                condition.last_transition_time,
                Some(server.control().clock().now())
            );
        }
        let maps = server.client().namespaced::<ConfigMap>("prod");
        let patch = json!({"metadata": {"finalizers": null}});
        maps.patch("a", Patch::merge(&patch)).await.unwrap();
        until("the namespace is gone", async || {
            namespaces
                .get("prod")
                .await
                .is_err_and(|error| error.is_not_found())
        })
        .await;
        let waited = deleted.elapsed();
        assert!((5..10).contains(&waited.as_secs()), "{year}: {waited:?}");
    }
}

#[tokio::test]
async fn servers_of_different_tests_share_nothing() {
    let (first, _) = start().await;
    let (second, control) = start().await;
    config_maps(&first)
        .create(&config_map("a", "1"))
        .await
        .unwrap();
    assert!(
        config_maps(&second)
            .get("a")
            .await
            .unwrap_err()
            .is_not_found()
    );
    assert_eq!(control.actions().len(), 1);
}

#[tokio::test]
async fn a_stopped_server_ends_watches_and_refuses_requests() {
    let (server, control) = start().await;
    let maps = config_maps(&server);
    let mut events = maps.watch().await.unwrap();
    server.stop().await;
    while let Some(event) = events.next().await {
        drop(event);
    }
    let error = maps.get("a").await.unwrap_err();
    assert!(
        matches!(error, apiloom_client::Error::Closed(_)),
        "{error:?}"
    );
    assert!(matches!(
        control.compact().await,
        Err(TestError::Storage(_))
    ));
}

#[tokio::test]
async fn generated_clients_keep_their_server() {
    let builder = apiloom_testing::TestServerBuilder::for_clients(|client: Client| client);
    let (client, control) = builder.built_in().build().await.unwrap();
    drop(control);
    let maps = client.namespaced::<ConfigMap>("default");
    maps.create(&config_map("a", "1")).await.unwrap();
    drop(client);
    maps.get("a").await.unwrap();
}

#[tokio::test]
async fn a_port_needs_its_token() {
    let (server, control) = start().await;
    let port = server.listen().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    port.write_kubeconfig(&path).unwrap();
    assert!(port.write_kubeconfig(&path).is_err(), "it exists");
    let config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], port.url());

    let transport = apiloom_client::transport::HttpTransport::builder(&port.url())
        .build()
        .unwrap();
    let known = Client::builder(transport.clone())
        .header("authorization", &format!("Bearer {}", port.token()))
        .build()
        .unwrap();
    let maps = known.namespaced::<ConfigMap>("default");
    maps.create(&config_map("a", "1")).await.unwrap();
    let mut events = maps.watch().await.unwrap();
    assert!(matches!(
        events.next().await.unwrap().unwrap(),
        WatchEvent::Added(_)
    ));
    assert_eq!(
        control.actions()[0].to_string(),
        "create configmaps default/a"
    );
    assert_eq!(control.actions()[0].json()["data"]["key"], "1");
    let unknown = Client::new(transport.clone()).namespaced::<ConfigMap>("default");
    assert!(unknown.get("a").await.unwrap_err().is_forbidden());
    let wrong = Client::builder(transport)
        .header("authorization", &format!("Bearer {}x", port.token()))
        .build()
        .unwrap();
    let wrong = wrong.namespaced::<ConfigMap>("default");
    assert!(wrong.get("a").await.unwrap_err().is_unauthorized());

    control.inject(Fault::on(Verb::Create).lost_after());
    assert!(maps.create(&config_map("b", "1")).await.is_err());
    maps.get("b").await.unwrap();
    drop(server);
    assert!(maps.get("b").await.is_err());
}
