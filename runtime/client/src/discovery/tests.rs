//! Discovery in both forms, and the mapper.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_meta::gvk::GroupVersion;
use futures_util::future::BoxFuture;

use super::*;
use crate::client::Client;
use crate::scripted::Script;
use crate::transport::{Body, Transport, TransportError};

const CORE: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
 {"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get","list"],"shortNames":["po"],"categories":["all"],"subresources":[{"subresource":"log"}]},
 {"resource":"ghosts","responseKind":{"kind":""},"scope":"Namespaced","singularResource":"","verbs":[]}]}]}]}"#;

const GROUPS: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"ex.io"},"versions":[
 {"version":"v2","freshness":"Stale","resources":[{"resource":"pots","responseKind":{"group":"ex.io","version":"v2","kind":"Pot"},"scope":"Cluster","singularResource":"pot","verbs":["get"],"shortNames":["po","p"],"categories":["all"]}]},
 {"version":"v1","freshness":"Current","resources":[{"resource":"pots","responseKind":{"group":"ex.io","version":"v1","kind":"Pot"},"scope":"Cluster","singularResource":"pot","verbs":["get"],"categories":["all"]}]}]}]}"#;

fn aggregated(script: Script) -> Script {
    script.answer(200, CORE).answer(200, GROUPS)
}

#[tokio::test]
async fn names_find_their_resources() {
    let script = aggregated(Script::new());
    let discovery = Discovery::read(&Client::new(script.clone())).await.unwrap();
    assert_eq!(script.lines(), ["GET /api", "GET /apis"]);
    let named = |name: &str| {
        let found = discovery.resource(name).map(|found| &found.resource);
        found.map(|found| format!("{}/{}", found.api_version(), found.plural))
    };
    let (pods, pots) = (Some("v1/pods"), Some("ex.io/v2/pots"));
    for (name, expected) in [
        ("pods", pods),
        ("Pod", pods),
        ("po", pods),
        ("pods.v1", None),
        ("pods.v1.", pods),
        ("p", pots),
        ("pots.ex.io", pots),
        ("po.ex.io", pots),
        ("pots.v1.ex.io", Some("ex.io/v1/pots")),
        ("pots.v3.ex.io", None),
        ("ghosts", None),
        ("", None),
    ] {
        assert_eq!(named(name).as_deref(), expected, "{name:?}");
    }
    let pod = discovery.kind("", None, "Pod").unwrap();
    assert!(pod.is_namespaced && pod.has_verb("list") && !pod.has_verb("watch"));
    assert_eq!(pod.subresources, ["log"]);
    let versions = discovery.category("all").into_iter();
    let versions: Vec<_> = versions.map(|found| found.resource.api_version()).collect();
    assert_eq!(versions, ["v1", "ex.io/v2"]);
    assert_eq!(discovery.incomplete, [GroupVersion::new("ex.io", "v2")]);
}

#[tokio::test]
async fn servers_without_aggregated_discovery_are_read_group_by_group() {
    let groups = r#"{"kind":"APIGroupList","groups":[{"name":"ex.io","versions":[{"version":"v1"},{"version":"v2"}],"preferredVersion":{"version":"v2"}}]}"#;
    let pots = r#"{"resources":[{"name":"pots/status","kind":"Pot"},{"name":"pots","singularName":"pot","namespaced":true,"kind":"Pot","verbs":["get"],"shortNames":["p"]}]}"#;
    let script = Script::new()
        .answer(406, "")
        .answer(200, r#"{"kind":"APIVersions","versions":["v1"]}"#)
        .answer(200, r#"{"resources":null}"#)
        .answer(200, groups)
        .answer(200, pots)
        .answer(503, "the other server is down");
    let discovery = Discovery::read(&Client::new(script.clone())).await.unwrap();
    let paths = [
        "/api",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/ex.io/v2",
        "/apis/ex.io/v1",
    ];
    assert_eq!(script.lines(), paths.map(|path| format!("GET {path}")));
    let pot = discovery.resource("p").unwrap();
    assert_eq!((&*pot.resource.version, pot.is_namespaced), ("v2", true));
    assert_eq!(pot.subresources, ["status"]);
    assert_eq!(discovery.incomplete, [GroupVersion::new("ex.io", "v1")]);
}

#[tokio::test]
async fn empty_lists_may_be_null() {
    let groups = r#"{"kind":"APIGroupDiscoveryList","items":[
     {"metadata":null,"versions":null},
     {"metadata":{"name":"ex.io"},"versions":[{"version":"v1","resources":null},
      {"version":"v2","freshness":null,"resources":[{"resource":"pots","responseKind":{"kind":"Pot"},"scope":"Cluster","singularResource":null,"verbs":null,"shortNames":null,"categories":null,"subresources":null}]}]}]}"#;
    let script = Script::new().answer(404, "").answer(200, groups);
    let discovery = Discovery::read(&Client::new(script)).await.unwrap();
    assert!(discovery.resource("pots").unwrap().verbs.is_empty());
    let groups = r#"{"kind":"APIGroupList","groups":[{"name":"a","versions":null,"preferredVersion":null},{"name":"ex.io","versions":[{"version":"v1"}]}]}"#;
    let pots = r#"{"resources":[{"name":"pots","singularName":null,"namespaced":null,"kind":"Pot","verbs":null,"shortNames":null,"categories":null}]}"#;
    let script = Script::new()
        .answer(404, "")
        .answer(200, groups)
        .answer(200, pots);
    let discovery = Discovery::read(&Client::new(script)).await.unwrap();
    assert!(discovery.resource("pots").unwrap().verbs.is_empty());
    assert_eq!(discovery.incomplete, []);
}

/// Answers as a script, but waits before it answers.
struct Waiting {
    script: Script,
    may_answer: std::sync::Arc<tokio::sync::Semaphore>,
}

impl Transport for Waiting {
    fn call(
        &self,
        request: http::Request<Body>,
    ) -> BoxFuture<'static, Result<http::Response<Body>, TransportError>> {
        let (answer, may_answer) = (self.script.call(request), self.may_answer.clone());
        Box::pin(async move {
            may_answer.acquire().await.unwrap().forget();
            answer.await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_name_does_not_wait_for_an_unknown_one() {
    let may_answer = std::sync::Arc::new(tokio::sync::Semaphore::new(2));
    let mapper = Mapper::new(Client::new(Waiting {
        script: aggregated(aggregated(Script::new())),
        may_answer: may_answer.clone(),
    }));
    mapper.resource("pods").await.unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    let unknown = mapper.resource("unknown");
    tokio::pin!(unknown);
    // The server does not answer this one.
    let waits = tokio::time::timeout(Duration::from_secs(1), &mut unknown).await;
    assert!(waits.is_err());
    let known = tokio::time::timeout(Duration::from_secs(1), mapper.resource("pods")).await;
    assert_eq!(known.unwrap().unwrap().resource.plural, "pods");
    may_answer.add_permits(2);
    unknown.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_asked_for_again_at_most_every_ten_seconds() {
    let script = Script::new()
        .answer(404, "")
        .answer(200, r#"{"kind":"APIGroupList"}"#);
    let script = aggregated(script);
    let mapper = Mapper::new(Client::new(script.clone()));
    for _ in 0..5 {
        let error = mapper.resource("pots").await.unwrap_err();
        assert_eq!(error.to_string(), "the server has no resource \"pots\"");
    }
    assert_eq!(script.lines().len(), 2);
    tokio::time::advance(Duration::from_secs(10)).await;
    let (first, second) = tokio::join!(
        mapper.resource("pots"),
        mapper.kind("ex.io", Some("v1"), "Pot")
    );
    assert_eq!(first.unwrap().resource.version, "v2");
    assert_eq!(second.unwrap().resource.version, "v1");
    assert_eq!(script.lines().len(), 4);
    let error = mapper.kind("ex.io", Some("v9"), "Pot").await.unwrap_err();
    assert!(error.to_string().contains("Pot.v9.ex.io"), "{error}");
}

/// A server with any number of versions, each of which it answers when all that were asked for so far are being asked for.
#[derive(Clone, Default)]
struct ManyVersions {
    asked: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

impl Transport for ManyVersions {
    fn call(
        &self,
        request: http::Request<Body>,
    ) -> BoxFuture<'static, Result<http::Response<Body>, TransportError>> {
        let server = self.clone();
        Box::pin(async move {
            let text = match request.uri().path() {
                "/api" => r#"{"kind":"APIVersions","versions":[]}"#.to_owned(),
                "/apis" => {
                    let versions: Vec<_> = (0..5_000)
                        .map(|number| format!(r#"{{"version":"v{number}"}}"#))
                        .collect();
                    let versions = versions.join(",");
                    format!(
                        r#"{{"kind":"APIGroupList","groups":[{{"name":"g","versions":[{versions}]}}]}}"#
                    )
                }
                _ => {
                    server.asked.fetch_add(1, Ordering::SeqCst);
                    let open = server.open.fetch_add(1, Ordering::SeqCst) + 1;
                    server.most_open.fetch_max(open, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    server.open.fetch_sub(1, Ordering::SeqCst);
                    r#"{"resources":[]}"#.to_owned()
                }
            };
            Ok(http::Response::new(Body::from(bytes::Bytes::from(text))))
        })
    }
}

#[tokio::test]
async fn a_server_with_many_versions_is_not_asked_for_all_at_once() {
    let server = ManyVersions::default();
    let discovery = Discovery::read(&Client::new(server.clone())).await.unwrap();
    let seen = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    assert_eq!((seen(&server.asked), seen(&server.most_open)), (2_000, 16));
    assert_eq!(discovery.incomplete.len(), 3_000);
}
