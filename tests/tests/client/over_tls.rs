//! The transport over the network: TLS, HTTP/2 and HTTP/1.1, compression, restarts.

use std::path::Path;
use std::time::Duration;

use apiloom_client::config::{Config, Kubeconfig};
use apiloom_client::transport::{HttpTransport, HttpTransportBuilder, TlsOptions};
use apiloom_client::{Client, HasMetadata as _, WatchEvent};
use apiloom_tests::network::Proxy;
use apiloom_tests::{Backend, Cluster};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use serde_json::Value;
use wardle::v1alpha1::Flunder;

use super::flunder;
use super::verbs::every_verb;

/// The transport to the server of a kubeconfig, and its token.
fn transport(kubeconfig: &Path) -> (HttpTransportBuilder, String) {
    transport_to(None, kubeconfig)
}

/// The same, at another URL.
fn transport_to(url: Option<&str>, kubeconfig: &Path) -> (HttpTransportBuilder, String) {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let cluster = &config["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority-data"].as_str().unwrap();
    let tls = TlsOptions {
        authorities: Some(STANDARD.decode(authority).unwrap()),
        ..TlsOptions::default()
    };
    let url = url.unwrap_or_else(|| cluster["server"].as_str().unwrap());
    let builder = HttpTransport::builder(url).tls(tls);
    let token = config["users"][0]["user"]["token"].as_str().unwrap();
    (builder, format!("Bearer {token}"))
}

/// A client of the server, at the URL of a proxy before it.
pub(super) fn client_at(cluster: &Cluster, url: &str) -> Client {
    let (builder, token) = transport_to(Some(url), cluster.server().kubeconfig());
    let client = Client::builder(builder.build().unwrap());
    client.header("authorization", &token).build().unwrap()
}

/// The same with other settings, through a proxy that counts connections.
pub(super) fn client_through(
    cluster: &Cluster,
    proxy: &Proxy,
    change: impl FnOnce(HttpTransportBuilder) -> HttpTransportBuilder,
) -> Client {
    let url = format!("https://{}", proxy.address());
    let (builder, token) = transport_to(Some(&url), cluster.server().kubeconfig());
    let client = Client::builder(change(builder).build().unwrap());
    client.header("authorization", &token).build().unwrap()
}

pub(super) fn client_of(
    cluster: &Cluster,
    change: impl FnOnce(HttpTransportBuilder) -> HttpTransportBuilder,
) -> Client {
    let (builder, token) = transport(cluster.server().kubeconfig());
    let client = Client::builder(change(builder).build().unwrap());
    client.header("authorization", &token).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_works_over_http2_and_http1() {
    let cluster = Cluster::start(Backend::Embedded);
    every_verb(&client_of(&cluster, |builder| builder)).await;
    every_verb(&client_of(&cluster, HttpTransportBuilder::http1_only)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_is_enough() {
    let cluster = Cluster::start(Backend::Embedded);
    let file = cluster.server().kubeconfig().to_owned();
    let config = Kubeconfig::read(&[file]).unwrap();
    let config = Config::from_kubeconfig(&config, None).unwrap();
    every_verb(&config.client().unwrap().build().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_watches_than_streams_get_more_connections() {
    let cluster = Cluster::start(Backend::Embedded);
    let client = client_of(&cluster, |builder| builder.max_streams_per_connection(10));
    let flunders = client.namespaced::<Flunder>("default");
    let watches = (0..25).map(|_| flunders.watch().into_future());
    let watches = futures_util::future::join_all(watches).await;
    flunders.create(&flunder("a")).await.unwrap();
    for watch in watches {
        let event = watch.unwrap().next().await.unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Added(flunder) if flunder.name() == "a"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_lists_are_compressed_and_decoded() {
    let cluster = Cluster::start(Backend::Embedded);
    let client = client_of(&cluster, |builder| builder);
    let flunders = client.namespaced::<Flunder>("default");
    for number in 0..200 {
        let mut flunder = flunder(&format!("f{number}"));
        let note = "n".repeat(1_000);
        flunder.metadata.annotations.insert("note".to_owned(), note);
        flunders.create(&flunder).await.unwrap();
    }
    assert_eq!(flunders.list().await.unwrap().items.len(), 200);
    let path = "/apis/wardle.example.com/v1alpha1/flunders";
    let raw = client.request(http::Method::GET, path);
    let raw = raw
        .header("accept-encoding", "gzip")
        .stream()
        .await
        .unwrap();
    assert_eq!(raw.headers()["content-encoding"], "gzip");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_outlives_a_restart_of_its_server() {
    let mut cluster = Cluster::start(Backend::Embedded);
    let (builder, token) = transport(cluster.server().kubeconfig());
    let url = cluster.server().url().to_owned();
    let client = Client::builder(builder.build().unwrap());
    let client = client.header("authorization", &token).build().unwrap();
    let flunders = client.namespaced::<Flunder>("default");
    flunders.create(&flunder("a")).await.unwrap();
    let mut events = flunders.watch().await.unwrap();
    assert!(events.next().await.unwrap().is_ok());
    cluster.stop();
    assert!(!matches!(events.next().await, Some(Ok(_))));
    let error = flunders.get("a").await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    cluster.start_again();
    if cluster.server().url() == url {
        assert_eq!(flunders.get("a").await.unwrap().name(), "a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_authority_is_refused() {
    let cluster = Cluster::start(Backend::Embedded);
    let other = Cluster::start(Backend::Embedded);
    let (_, token) = transport(cluster.server().kubeconfig());
    let text = std::fs::read_to_string(other.server().kubeconfig()).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let authority = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let authority = STANDARD.decode(authority.as_str().unwrap()).unwrap();
    let connect = |tls: TlsOptions| {
        let transport = HttpTransport::builder(cluster.server().url()).tls(tls);
        let client = Client::builder(transport.build().unwrap());
        let client = client.header("authorization", &token).build().unwrap();
        client.all_namespaces::<Flunder>()
    };
    let strict = connect(TlsOptions {
        authorities: Some(authority),
        ..TlsOptions::default()
    });
    let error = strict.list().await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let any = connect(TlsOptions {
        accepts_any_certificate: true,
        ..TlsOptions::default()
    });
    any.list().await.unwrap();
}

/// A request that times out must not keep its connection from others.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_dropped_leaves_the_connection_usable() {
    let cluster = Cluster::start(Backend::Embedded);
    let client = client_of(&cluster, |builder| builder.max_streams_per_connection(1));
    let flunders = client.namespaced::<Flunder>("default");
    for _ in 0..20 {
        let watch = flunders.watch().timeout(Duration::from_secs(100)).await;
        drop(watch.unwrap());
        flunders.list().await.unwrap();
    }
}
