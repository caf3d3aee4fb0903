//! Informers whose objects come from a fuller one of their factory.

use super::*;
use crate::cache::{DynamicInformer, Lister};

fn resource() -> ApiResource {
    Config::api_resource()
}

fn bad() -> &'static str {
    r#"{"metadata":{"name":"bad","namespace":"ns","resourceVersion":"4"},"size":"big"}"#
}

/// Two objects, one of which is no `Config`, and then a change of the other one and a third one.
fn events() -> [String; 5] {
    [
        event("ADDED", &object("a", 3)),
        event("ADDED", bad()),
        end_of_initial_events(9),
        event("MODIFIED", &object("a", 10)),
        event("ADDED", &object("b", 11)),
    ]
}

fn script(events: &[String]) -> Script {
    let pieces: Vec<&str> = events.iter().map(String::as_str).collect();
    Script::new().pieces(&pieces, End::Open)
}

/// Waits until a cache shows an object in a version.
async fn shows<T: ApiObject>(lister: &Lister<T>, name: &str, version: u32) {
    let version = version.to_string();
    let is_shown = || {
        let object = lister.get("ns", name);
        object.is_some_and(|object| object.resource_version() == version)
    };
    let shown = tokio::time::timeout(LIMIT, lister.wait_until(is_shown));
    assert!(shown.await.is_ok(), "{name}@{version} is not shown");
}

#[tokio::test(start_paused = true)]
async fn all_types_of_the_same_objects_have_one_watch() {
    for dynamic_is_first in [false, true] {
        let script = script(&events());
        let factory = InformerFactory::new(&Client::new(script.clone())).namespace("ns");
        let dynamic: Option<DynamicInformer> =
            dynamic_is_first.then(|| factory.dynamic_informer(&resource()));
        let metadata = factory.metadata_informer(&resource());
        let typed = factory.informer::<Config>();
        let dynamic = dynamic.unwrap_or_else(|| factory.dynamic_informer(&resource()));
        factory.start();
        factory.wait_for_sync(LIMIT).await.expect("synced");
        for (name, version) in [("a", 10), ("b", 11)] {
            shows(&typed.lister(), name, version).await;
            shows(&metadata.lister(), name, version).await;
        }
        assert_eq!(typed.lister().get("ns", "a").expect("it is there").size, 1);
        // What is no `Config` is an object nevertheless.
        assert_eq!(
            [
                typed.lister().len(),
                metadata.lister().len(),
                dynamic.lister().len()
            ],
            [2, 3, 3]
        );
        assert_eq!(script.lines().len(), 1, "{:?}", script.lines());
        assert_eq!(script.sent()[0].headers["accept"], "application/json");
        factory.shutdown().await;
        assert_eq!(script.lines().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn settings_change_what_an_informer_takes_and_not_what_others_take_of_it() {
    let metadata_alone = script(&events()[..3]);
    let dynamic = script(&events()[..3]);
    for (script, dynamic_is_there) in [(&metadata_alone, false), (&dynamic, true)] {
        let script = if dynamic_is_there {
            script.clone()
        } else {
            // The typed one has a watch too.
            let events = events();
            script.clone().pieces(&[&events[0], &events[2]], End::Open)
        };
        let factory = InformerFactory::new(&Client::new(script.clone()));
        let errors = Arc::new(Mutex::new(Vec::new()));
        let typed = factory.informer_with::<Config>(|builder| {
            let errors = Arc::clone(&errors);
            let builder = builder.on_error(move |error| errors.lock().push(error.to_string()));
            builder.transform(|config| {
                config.size += 1;
                Ok(())
            })
        });
        let metadata = factory.metadata_informer(&resource());
        let _dynamic = dynamic_is_there.then(|| factory.dynamic_informer(&resource()));
        factory.start();
        factory.wait_for_sync(LIMIT).await.expect("synced");
        assert_eq!(typed.lister().get("ns", "a").expect("it is there").size, 2);
        shows(&metadata.lister(), "a", 3).await;
        assert_eq!(script.lines().len(), if dynamic_is_there { 1 } else { 2 });
        if dynamic_is_there {
            let errors = errors.lock().clone();
            assert_eq!(errors.len(), 1);
            let expected = "the object ns/bad cannot be cached: ";
            assert!(errors[0].starts_with(expected), "{}", errors[0]);
        }
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_asks_the_server_when_the_fuller_one_is_shut_down() {
    let changed = event("MODIFIED", &object("a", 10));
    let script = script(&events()[..3]).pieces(&[&changed], End::Open);
    let factory = InformerFactory::new(&Client::new(script.clone()));
    let dynamic = factory.dynamic_informer(&resource());
    let typed = factory.informer::<Config>();
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    tokio::time::sleep(LIMIT).await;
    dynamic.shutdown().await;
    shows(&typed.lister(), "a", 10).await;
    let lines = requests(&script);
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[1],
        "GET /apis/ex.io/v1/configs?resourceVersion=9&timeoutSeconds=N&watch=1&allowWatchBookmarks=true"
    );
    assert_eq!(typed.metrics().failures, 0);
    factory.shutdown().await;
}

/// What the factory remembers of the server is not about requests that are not sent.
#[tokio::test(start_paused = true)]
async fn one_watch_is_enough_without_streaming_lists() {
    let invalid =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}"#;
    let list = format!(
        r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#,
        object("a", 3)
    );
    let changed = event("MODIFIED", &object("a", 10));
    let script = Script::new()
        .answer(422, invalid)
        .answer(200, &list)
        .pieces(&[&changed], End::Open);
    let factory = InformerFactory::new(&Client::new(script.clone()));
    let _dynamic = factory.dynamic_informer(&resource());
    let typed = factory.informer::<Config>();
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    shows(&typed.lister(), "a", 10).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let metrics = typed.metrics();
    assert_eq!((metrics.watches, metrics.failures), (1, 0));
    assert_eq!(script.lines().len(), 3, "{:?}", script.lines());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_the_fuller_informer_is_told() {
    let forbidden = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}"#;
    let mut script = Script::new();
    for _ in 0..40 {
        script = script.answer(403, forbidden);
    }
    let factory = InformerFactory::new(&Client::new(script));
    let _dynamic = factory.dynamic_informer(&resource());
    let typed = factory.informer::<Config>();
    factory.start();
    let error = typed.wait_for_sync(LIMIT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache of configs.ex.io has no complete state after 5s: you may not"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fuller_informer_that_comes_late_has_a_watch_of_its_own() {
    let synced = &events()[..3];
    let pieces: Vec<&str> = synced.iter().map(String::as_str).collect();
    let script = script(synced).pieces(&pieces, End::Open);
    let factory = InformerFactory::new(&Client::new(script.clone()));
    let typed = factory.informer::<Config>();
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    let dynamic = factory.dynamic_informer(&resource());
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
    assert_eq!((typed.lister().len(), dynamic.lister().len()), (1, 2));
    assert_eq!(script.lines().len(), 2);
    factory.shutdown().await;
}
