//! Clients and informers against answers as kube-apiserver and the proxies before it give them, word for word and in small
//! pieces: from a transport in the process, and over a socket.

#![allow(clippy::unwrap_used, reason = "tests")]

mod refusals;
mod server;

use std::time::Duration;

use apiloom_client::cache::{Informer, InformerFactory, ResourceVersion};
use apiloom_client::{Client, Error, HasMetadata as _, Namespaced, ResourceClient, WatchEvent};
use apiloom_kinds::core::v1::ConfigMap;
use futures_util::{FutureExt as _, StreamExt as _};

use server::both;

const LIMIT: Duration = Duration::from_secs(60);

macro_rules! answer {
    ($name:literal) => {
        $crate::server::Answer::read(include_str!(concat!("answers/", $name, ".http")))
    };
}
use answer;

fn maps(client: &Client) -> ResourceClient<ConfigMap, Namespaced> {
    client.namespaced("ns")
}

/// The events of a watch as short texts, and the error at its end.
async fn events(client: &Client) -> (Vec<String>, Option<Error>) {
    let mut stream = maps(client).watch().from("100").bookmarks().await.unwrap();
    let mut found = Vec::new();
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return (found, Some(error)),
        };
        let version = event.resource_version().to_owned();
        found.push(match event {
            WatchEvent::Added(map) => format!("+{}@{version}", map.name()),
            WatchEvent::Modified(map) => format!("~{}@{version}", map.name()),
            WatchEvent::Deleted(map) => format!("-{}@{version}", map.name()),
            WatchEvent::Bookmark(_) => format!("at {version}"),
            WatchEvent::Undecodable(other) => format!("{other:?}"),
        });
    }
    (found, None)
}

#[tokio::test]
async fn events_are_read_in_both_orders_of_their_keys() {
    for answer in [answer!("watch-type-first"), answer!("watch-object-first")] {
        both(&[answer], |client, _| {
            async move {
                let (found, error) = events(&client).await;
                assert_eq!(found, ["+a@101", "~a@102", "at 110", "-a@111"]);
                assert!(error.is_none());
            }
            .boxed_local()
        })
        .await;
    }
}

#[tokio::test]
async fn lists_are_read_in_all_spellings() {
    for answer in [
        answer!("list"),
        answer!("list-sorted-keys"),
        answer!("list").gzip(),
        answer!("list-sorted-keys").gzip(),
    ] {
        both(&[answer], |client, _| {
            async move {
                let list = maps(&client).list().all().await.unwrap();
                assert_eq!(list.resource_version(), "130");
                let names: Vec<_> = list.items.iter().map(|map| map.name()).collect();
                assert_eq!(names, ["a", "b"]);
                assert_eq!(list.items[0].data["k"], "v");
            }
            .boxed_local()
        })
        .await;
    }
    both(&[answer!("list-null-items")], |client, _| {
        async move { assert_eq!(maps(&client).list().await.unwrap().items, []) }.boxed_local()
    })
    .await;
}

#[tokio::test]
async fn answers_without_a_status_are_errors_with_their_code() {
    both(
        &[
            answer!("not-found-text"),
            answer!("not-found-text"),
            answer!("bad-gateway-html"),
            answer!("login-html"),
        ],
        |client, _| {
            async move {
                let error = maps(&client).list().await.unwrap_err();
                assert!(error.is_not_found() && error.code() == Some(404), "{error}");
                assert!(error.to_string().contains("404 page not found"), "{error}");
                assert!(maps(&client).get("a").optional().await.unwrap().is_none());
                let error = maps(&client).watch().await.unwrap_err();
                assert!(error.code() == Some(502) && error.is_temporary(), "{error}");
                assert!(error.to_string().contains("502 Bad Gateway"), "{error}");
                let (found, error) = events(&client).await;
                let error = error.unwrap().to_string();
                assert!(found.is_empty() && error.contains("Log in"), "{error}");
            }
            .boxed_local()
        },
    )
    .await;
}

#[tokio::test]
async fn a_status_may_be_indented_and_need_not_have_a_reason() {
    both(
        &[
            answer!("forbidden-indented"),
            answer!("forbidden-indented"),
            answer!("internal-without-reason"),
        ],
        |client, _| {
            async move {
                let error = maps(&client).list().await.unwrap_err();
                assert!(error.is_forbidden(), "{error}");
                let details = error.status().unwrap().details.clone().unwrap();
                assert_eq!(details.kind, "configmaps");
                assert!(maps(&client).watch().await.unwrap_err().is_forbidden());
                let error = maps(&client).get("a").await.unwrap_err();
                assert_eq!(
                    (error.code(), &*error.to_string()),
                    (Some(500), "etcdserver: request is too large")
                );
            }
            .boxed_local()
        },
    )
    .await;
}

#[tokio::test]
async fn all_ways_of_410_are_told() {
    let answers = [
        answer!("watch-expired"),
        answer!("status-expired"),
        answer!("status-expired"),
        answer!("list-first-page"),
        answer!("status-continue-expired"),
        answer!("list"),
        answer!("status-continue-expired"),
        answer!("list-rest"),
    ];
    both(&answers, |client, server| {
        async move {
            let (found, error) = events(&client).await;
            assert!(found.is_empty() && error.unwrap().is_expired());
            assert!(
                maps(&client)
                    .watch()
                    .from("5")
                    .await
                    .unwrap_err()
                    .is_expired()
            );
            let list = maps(&client).list().resource_version("5");
            assert!(list.await.unwrap_err().is_expired());
            // In the middle of pages the whole list is read at once.
            let list = maps(&client).list().limit(1).all().await.unwrap();
            assert_eq!((list.items.len(), list.resource_version()), (2, "130"));
            // A caller may go on with the token of the error instead.
            let error = maps(&client).list().continue_from("old").await.unwrap_err();
            let token = error
                .status()
                .unwrap()
                .metadata
                .continue_token
                .clone()
                .unwrap();
            let rest = maps(&client).list().continue_from(token).await.unwrap();
            assert_eq!((rest.items.len(), rest.resource_version()), (1, "131"));
            let requests = server.requests();
            assert!(
                requests[7].contains("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEs"),
                "{requests:?}"
            );
            assert!(requests[4].contains("continue=eyJ2"), "{requests:?}");
            assert!(
                !requests[5].contains("continue") && !requests[5].contains("limit"),
                "{requests:?}"
            );
        }
        .boxed_local()
    })
    .await;
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_asked_again() {
    let answers = [
        answer!("too-many-text"),
        answer!("initializing"),
        answer!("object"),
        answer!("too-many-text"),
    ];
    both(&answers, |client, server| {
        async move {
            let began = std::time::Instant::now();
            assert_eq!(maps(&client).get("a").await.unwrap().data["k"], "v");
            assert!(began.elapsed() >= Duration::from_secs(2));
            assert_eq!(server.requests().len(), 3);
            let error = maps(&client).watch().await.unwrap_err();
            assert!(error.is_too_many_requests(), "{error}");
            assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        }
        .boxed_local()
    })
    .await;
}

#[tokio::test]
async fn a_version_that_the_server_has_not_seen_is_told_from_other_timeouts() {
    both(&[answer!("too-large")], |client, _| {
        async move {
            let list = maps(&client).list().resource_version("900");
            let error = list.without_retry().await.unwrap_err();
            assert!(error.is_too_large_resource_version(), "{error}");
            assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        }
        .boxed_local()
    })
    .await;
}

/// Waits until an informer shows a state.
async fn synced(client: &Client, version: &str) -> (InformerFactory, Informer<ConfigMap>) {
    let factory = InformerFactory::new(client).namespace("ns");
    let informer = factory.informer::<ConfigMap>();
    factory.start();
    let version = ResourceVersion::new(version).unwrap();
    informer.lister().wait_for(&version, LIMIT).await.unwrap();
    (factory, informer)
}

fn names(informer: &Informer<ConfigMap>) -> Vec<String> {
    let mut names: Vec<_> = informer
        .lister()
        .list()
        .iter()
        .map(|map| map.name().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_informer_lists_again_after_each_way_of_410() {
    let in_watch = answer!("watch-expired");
    for expired in [in_watch, answer!("status-expired")] {
        // The state, its end, and the list that replaces it.
        let answers = [
            answer!("watch-initial-events"),
            expired,
            answer!("streaming-list-refused"),
            answer!("list"),
            answer!("watch-empty").open(),
        ];
        both(&answers, |client, server| {
            async move {
                let (factory, informer) = synced(&client, "130").await;
                assert_eq!(names(&informer), ["a", "b"]);
                let requests = server.requests();
                assert!(requests[1].contains("resourceVersion=120"), "{requests:?}");
                assert!(
                    requests[1].contains("watch=1") && !requests[3].contains("watch=1"),
                    "{requests:?}"
                );
                factory.shutdown().await;
            }
            .boxed_local()
        })
        .await;
    }
}

#[tokio::test]
async fn an_informer_lists_when_the_bookmark_is_missing() {
    // A server that does not know `sendInitialEvents` may send objects that are long gone.
    let answers = [
        answer!("watch-without-bookmark"),
        answer!("watch-without-bookmark"),
        answer!("bad-gateway-html"),
        answer!("list"),
        answer!("watch-empty").open(),
    ];
    both(&answers, |client, server| {
        async move {
            let (factory, informer) = synced(&client, "130").await;
            assert_eq!(names(&informer), ["a", "b"]);
            let requests = server.requests();
            assert!(requests[2].contains("sendInitialEvents"), "{requests:?}");
            assert!(!requests[3].contains("watch=1"), "{requests:?}");
            factory.shutdown().await;
        }
        .boxed_local()
    })
    .await;
}

#[tokio::test]
async fn an_informer_does_without_streaming_lists_and_bookmarks() {
    let answers = [
        answer!("streaming-list-refused"),
        answer!("list-first-page"),
        answer!("status-continue-expired"),
        answer!("list"),
        answer!("watch-empty").open(),
    ];
    both(&answers, |client, server| {
        async move {
            let (factory, informer) = synced(&client, "130").await;
            assert_eq!(names(&informer), ["a", "b"]);
            while server.requests().len() < 5 {
                tokio::task::yield_now().await;
            }
            assert!(server.requests()[4].contains("resourceVersion=130"));
            factory.shutdown().await;
        }
        .boxed_local()
    })
    .await;
}
