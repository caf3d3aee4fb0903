//! The generated clients and informers of wardle.

use std::time::Duration;

use apiloom::client::cache::InformerFactory;
use apiloom::client::{HasMetadata as _, ListOptions};
use apiloom_meta::ObjectMeta;
use wardle::generated::clientset::{Clientset, Informers};

use crate::{flunder, server};

#[tokio::test]
async fn a_clientset_has_each_kind_in_each_version() {
    let server = server().await;
    let clients = Clientset::new(server.client());
    let flunders = clients.wardle_v1alpha1().flunders("default");
    let created = flunders.create(&flunder("a")).await.unwrap();
    let beta = clients
        .wardle_v1beta1()
        .flunders("default")
        .get("a")
        .await
        .unwrap();
    assert_eq!(beta.uid(), created.uid());
    let all = clients.wardle_v1beta1().all_flunders();
    let listed = all.list().options(&ListOptions::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let mut fischer = wardle::v1alpha1::Fischer {
        metadata: ObjectMeta::default(),
        disallowed_flunders: vec!["b".to_owned()],
    };
    fischer.metadata.name = Some("f".to_owned());
    let fischers = clients.wardle_v1alpha1().fischers();
    fischers.create(&fischer).await.unwrap();
    assert_eq!(fischers.get("f").await.unwrap().disallowed_flunders, ["b"]);
    server.stop().await;
}

#[tokio::test]
async fn informers_follow_each_kind() {
    let server = server().await;
    let clients = Clientset::new(server.client());
    let informers = Informers::new(InformerFactory::new(clients.client()));
    let flunders = informers.wardle_v1alpha1().flunders();
    let fischers = informers.wardle_v1alpha1().fischers();
    let created = clients
        .wardle_v1alpha1()
        .flunders("default")
        .create(&flunder("a"))
        .await
        .unwrap();
    informers.factory().start();
    informers
        .factory()
        .wait_for_sync(Duration::from_secs(30))
        .await
        .unwrap();
    let known = flunders.lister().get("default", "a").unwrap();
    assert_eq!(known.uid(), created.uid());
    assert_eq!(fischers.lister().len(), 0);
    informers.factory().shutdown().await;
    server.stop().await;
}
