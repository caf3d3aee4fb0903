//! kube-rs and a server in memory, without a socket.

use std::time::Duration;

use apiloom_testing::{Fault, TestServer};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt as _, watcher};

#[tokio::test]
async fn a_watcher_survives_a_dropped_watch_and_requests_are_recorded() {
    let server = TestServer::builder().build().await.unwrap();
    let control = server.control();
    let namespaces: Api<Namespace> = Api::all(server.kube());
    let seen = watcher(namespaces.clone(), watcher::Config::default())
        .default_backoff()
        .applied_objects();
    let mut seen = Box::pin(seen.filter_map(async |found| found.ok()?.metadata.name));
    let limit = Duration::from_secs(20);
    let mut next = async || tokio::time::timeout(limit, seen.next()).await.unwrap();
    assert_eq!(next().await.as_deref(), Some("default"));

    let mut prod = Namespace::default();
    prod.metadata.name = Some("prod".to_owned());
    control.inject(Fault::on_any().name("prod").conflict());
    let refused = namespaces.create(&PostParams::default(), &prod).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 409));
    control.drop_watches();
    namespaces
        .create(&PostParams::default(), &prod)
        .await
        .unwrap();
    assert_eq!(next().await.as_deref(), Some("prod"));
    let actions = control.actions();
    let creates = actions
        .iter()
        .filter(|action| action.to_string() == "create namespaces prod");
    assert_eq!(creates.count(), 2);
}
