//! Factories over scripted transports: the requests of informers, their sharing, and their decoding.

mod fuller;
mod shared;

use apiloom_meta::ObjectMeta;
use apiloom_meta::kind::verbs;
use serde::{Deserialize, Serialize};

use super::*;
use crate::client::{ApiObject, ApiResource};
use crate::object::{HasMetadata, metadata_methods};
use crate::scripted::{End, Script};

#[derive(Debug, Serialize, Deserialize)]
struct Config {
    metadata: ObjectMeta,
    size: u32,
}

impl HasMetadata for Config {
    metadata_methods!(self => self.metadata);
}

impl verbs::List for Config {}
impl verbs::Watch for Config {}
impl NamespacedKind for Config {}
impl ClusterKind for Config {}

impl ApiObject for Config {}

impl Kind for Config {
    fn api_resource() -> ApiResource {
        ApiResource::new("ex.io", "v1", "Config", "configs")
    }
}

const LIMIT: Duration = Duration::from_secs(5);

fn object(name: &str, version: u32) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","resourceVersion":"{version}","managedFields":[{{"manager":"m"}}]}},"size":1}}"#
    )
}

fn event(event_type: &str, object: &str) -> String {
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n")
}

fn end_of_initial_events(version: u32) -> String {
    let metadata = format!(
        r#"{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}"#
    );
    event("BOOKMARK", &format!("{{\"metadata\":{metadata}}}"))
}

/// The requests, without the random time that watches last.
fn requests(script: &Script) -> Vec<String> {
    let lines = script.lines().into_iter();
    lines
        .map(|line| {
            let Some((before, rest)) = line.split_once("timeoutSeconds=") else {
                return line;
            };
            let digits = rest.find('&').expect("other parameters follow");
            let seconds: u64 = rest[..digits].parse().expect("a number");
            assert!((300..600).contains(&seconds), "{seconds}");
            format!("{before}timeoutSeconds=N{}", &rest[digits..])
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_informer_reads_and_follows_what_a_client_selects() {
    let script = Script::new()
        .pieces(
            &[
                &event("ADDED", &object("a", 3)),
                &event("ADDED", r#"{"metadata":{"name":"bad","namespace":"ns","resourceVersion":"4"},"size":"big"}"#),
                &end_of_initial_events(9),
                &event("MODIFIED", &object("a", 10)),
                &event("ERROR", r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}"#),
            ],
            End::Clean,
        )
        .answer(422, r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}"#)
        .answer(200, &format!(r#"{{"metadata":{{"resourceVersion":"20"}},"items":[{}]}}"#, object("b", 12)))
        .pieces(&[], End::Open);
    let factory = InformerFactory::new(&Client::new(script.clone()));
    let factory = factory
        .namespace("ns")
        .labels("app in (a,b)")
        .fields("metadata.name!=z");
    let errors = Arc::new(Mutex::new(Vec::new()));
    let configs = factory.informer_with::<Config>(|builder| {
        let errors = Arc::clone(&errors);
        builder.on_error(move |error| errors.lock().push(error.to_string()))
    });
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    configs
        .lister()
        .wait_until(|| configs.lister().get("ns", "b").is_some())
        .await;
    tokio::time::sleep(LIMIT).await;

    let query = "labelSelector=app%20in%20(a,b)&fieldSelector=metadata.name!%3Dz";
    let path = format!("GET /apis/ex.io/v1/namespaces/ns/configs?{query}");
    let stream = "&resourceVersionMatch=NotOlderThan&timeoutSeconds=N&watch=1&allowWatchBookmarks=true&sendInitialEvents=true";
    assert_eq!(
        requests(&script),
        [
            format!("{path}{stream}"),
            format!("{path}&resourceVersion=10{stream}"),
            format!("{path}&resourceVersion=10"),
            format!("{path}&resourceVersion=20&timeoutSeconds=N&watch=1&allowWatchBookmarks=true"),
        ]
    );
    assert_eq!(configs.lister().len(), 1);
    let object = configs.lister().get("ns", "b").expect("it is there");
    assert_eq!(object.metadata.managed_fields, [], "left out");
    let errors = errors.lock().clone();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("the object ns/bad cannot be cached: "),
        "{}",
        errors[0]
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_decoded_where_they_are_wanted() {
    let script = Script::new().pieces(
        &[&event("ADDED", &object("a", 3)), &end_of_initial_events(9)],
        End::Open,
    );
    let factory = InformerFactory::new(&Client::new(script)).strip(Strip::NOTHING);
    let configs = factory.informer::<Config>();
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    let object = configs.lister().get("ns", "a").expect("it is there");
    assert_eq!(object.metadata.managed_fields.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_36_informers_of_the_same_objects_are_one() {
    let synced = end_of_initial_events(9);
    let script = Script::new()
        .pieces(&[&synced], End::Open)
        .pieces(&[&synced], End::Open);
    let factory = InformerFactory::new(&Client::new(script.clone()));
    let first = factory.namespace("ns").informer::<Config>();
    let same = factory.clone().namespace("ns").informer::<Config>();
    let other = factory.namespace("ns").labels("app=a").informer::<Config>();
    factory.start();
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    assert_eq!(script.lines().len(), 2);
    assert!(first.lister().is_synced() && same.lister().is_synced() && other.lister().is_synced());

    // One that is made later needs a start of its own.
    let late = factory.strip(Strip::NOTHING).informer::<Config>();
    let error = factory.wait_for_sync(LIMIT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache of configs.ex.io was not started"
    );
    factory.shutdown().await;
    late.start();
    assert_eq!(script.lines().len(), 2);
    let error = late.wait_for_sync(LIMIT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache of configs.ex.io was shut down"
    );
}

#[tokio::test(start_paused = true)]
async fn each_cache_without_a_state_is_named_with_its_error() {
    let forbidden = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}"#;
    let mut script = Script::new();
    for _ in 0..20 {
        script = script.answer(403, forbidden);
    }
    let factory = InformerFactory::new(&Client::new(script));
    let _cluster = factory.cluster_informer::<Config>();
    let invalid = factory.namespace("").informer::<Config>();
    factory.start();
    let error = factory.wait_for_sync(LIMIT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache of configs.ex.io has no complete state after 5s: the namespace \"\" is empty; \
         the cache of configs.ex.io has no complete state after 5s: you may not"
    );
    assert!(!invalid.lister().is_synced());
}

/// A server that sends bookmarks as fast as they are read, and never ends a watch: each request ends on this side.
#[tokio::test(start_paused = true)]
async fn bookmarks_alone_hold_up_neither_the_start_nor_the_next_watch() {
    const BOOKMARK: &str =
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n";
    let list = format!(
        r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{}]}}"#,
        object("a", 3)
    );
    let script = Script::new()
        .endless(BOOKMARK)
        .answer(200, &list)
        .endless(BOOKMARK)
        .pieces(&[&event("ADDED", &object("b", 8))], End::Open);
    let factory = InformerFactory::new(&Client::new(script.clone()));
    let configs = factory.informer::<Config>();
    factory.start();
    let most = Duration::from_secs(300);
    factory.wait_for_sync(most).await.expect("synced");
    let lister = configs.lister();
    lister.wait_until(|| lister.get("ns", "b").is_some()).await;
    let requests = requests(&script);
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(requests[0].contains("sendInitialEvents=true"));
    assert!(
        requests[1].ends_with("configs?limit=500&resourceVersion=0"),
        "{}",
        requests[1]
    );
    assert!(requests[2].contains("resourceVersion=5&"));
    assert!(requests[3].contains("resourceVersion=7&"));
    assert_eq!(lister.len(), 2);
    factory.shutdown().await;
}
