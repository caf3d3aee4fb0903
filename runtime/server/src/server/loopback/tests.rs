//! Slow operations in process: authenticators and authorizers, and requests for which a shutdown waits.

use std::time::Duration;

use apiloom_registry::auth::{
    Answer, Attributes, Authentication, Authenticator, Authorization, Authorizer, Credentials,
    Decision,
};
use http_body_util::{Empty, StreamBody};
use tokio::time::Instant;

use super::*;
use crate::server::{Backend, Builder, Config, InProcess};

const NAMESPACES: &str = "/api/v1/namespaces";

async fn start(configure: impl FnOnce(Builder) -> Builder) -> InProcess {
    let mut config = Config::new("test", "");
    config.backend = Backend::Memory;
    let server = configure(Builder::new(config)).build().await.unwrap();
    server.start().await.unwrap()
}

async fn get(loopback: &Loopback, url: &str) -> Response<Body> {
    let request = Request::get(url).body(Empty::<Bytes>::new()).unwrap();
    loopback.send(request).await
}

/// An authenticator that never returns.
struct Silent;

impl Authenticator for Silent {
    fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        Answer::later(std::future::pending())
    }
}

/// An authorizer without an opinion on health, which never returns for other requests.
struct SilentOnResources;

impl Authorizer for SilentOnResources {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        if attributes.is_resource_request {
            Answer::later(std::future::pending())
        } else {
            Answer::Now(Ok(Decision::no_opinion()))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_authorizer_keeps_the_deadline() {
    let server = start(|builder| builder.authorizer(SilentOnResources)).await;
    let loopback = server.loopback();
    let check = async |query: &str, seconds: u64| {
        let begun = Instant::now();
        let response = get(&loopback, &format!("{NAMESPACES}{query}")).await;
        assert_eq!(response.status(), 504, "{query}");
        assert_eq!(begun.elapsed().as_secs(), seconds, "{query}");
    };
    check("?timeout=5s", 5).await;
    check("", 60).await;
    // A watch has no deadline, but it is authorized within that of other requests.
    check("?watch=1", 60).await;
    assert_eq!(get(&loopback, "/livez").await.status(), 200);
    // The rule for system:masters comes first.
    let privileged = loopback.privileged();
    assert_eq!(get(&privileged, NAMESPACES).await.status(), 200);
    let metrics = get(&privileged, "/metrics").await.into_body();
    let metrics = metrics.collect().await.unwrap().to_bytes();
    let metrics = String::from_utf8_lossy(&metrics);
    let counted = |verb: &str| {
        let series = "apiserver_request_terminations_total{";
        let is_of =
            |line: &&str| line.starts_with(series) && line.contains(&format!("verb=\"{verb}\""));
        let line = metrics.lines().find(is_of);
        line.and_then(|line| line.rsplit(' ').next())
    };
    assert_eq!(
        (counted("LIST"), counted("WATCH")),
        (Some("2"), Some("1")),
        "{metrics}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_authenticator_ends_after_the_time_of_a_request() {
    let server = start(|builder| builder.authenticator(Silent)).await;
    let begun = Instant::now();
    assert_eq!(get(&server.loopback(), NAMESPACES).await.status(), 401);
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_requests_in_process() {
    let server = start(|builder| builder).await;
    let loopback = server.loopback().privileged();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    // A create whose body has two pieces; the second one is sent after the shutdown has begun.
    let (send, pieces) = tokio::sync::mpsc::channel::<Bytes>(1);
    let pieces = futures_util::stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok::<_, BoxError>(http_body::Frame::data(piece)), pieces))
    });
    let request = Request::post(NAMESPACES)
        .body(StreamBody::new(pieces))
        .unwrap();
    let sender = loopback.clone();
    let create = tokio::spawn(async move { sender.send(request).await.status() });
    send.send(r#"{"metadata":{"name":"#.into()).await.unwrap();
    while send.capacity() == 0 {
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    while get(&loopback, "/readyz").await.status() == 200 {
        tokio::task::yield_now().await;
    }
    assert!(!serving.is_finished());
    send.send(r#""late"}}"#.into()).await.unwrap();
    drop(send);
    assert_eq!(create.await.unwrap(), 201);
    serving.await.unwrap();
    // The store is closed now.
    let status = get(&loopback, &format!("{NAMESPACES}/late")).await.status();
    assert!(status.is_server_error(), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_ever() {
    let server = start(|builder| builder).await;
    let loopback = server.loopback().privileged();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    let never = StreamBody::new(futures_util::stream::pending::<Result<_, BoxError>>());
    let request =
        Request::post(NAMESPACES).body(never.map_frame(|frame: http_body::Frame<Bytes>| frame));
    let sender = loopback.clone();
    let create = tokio::spawn(async move { sender.send(request.unwrap()).await });
    tokio::task::yield_now().await;
    stop.send(()).unwrap();
    let begun = Instant::now();
    serving.await.unwrap();
    // The limit of writes, which is below that of the server.
    assert_eq!(begun.elapsed(), Duration::from_secs(34));
    create.abort();
}

/// The token of a loopback client is not accepted from the network.
#[tokio::test]
async fn the_token_of_a_loopback_is_for_its_process() {
    let (token, authenticator) = LoopbackToken::make().unwrap();
    let mut authenticators = apiloom_registry::auth::Authenticators::default();
    authenticators.push(authenticator);
    let authenticate = async |peer: Option<&str>| {
        let mut headers = http::HeaderMap::new();
        headers.insert(AUTHORIZATION, token.0.clone());
        let connection = Connection {
            peer: peer.map(|peer| peer.parse().unwrap()),
            ..Connection::in_process()
        };
        let soon = Instant::now() + Duration::from_secs(60);
        let user = authenticators
            .authenticate(&connection, "/", &mut headers, soon)
            .await;
        user.map(|user| user.user().clone())
            .map_err(|error| error.message)
    };
    let user = authenticate(None).await.unwrap();
    assert_eq!(user.name, "system:apiserver");
    assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    assert_eq!(user.uid.len(), 36);
    assert_eq!(
        authenticate(Some("127.0.0.1:1")).await,
        Err("Unauthorized".to_owned())
    );
}
