//! Kinds that come and go while an informer follows them.

use std::time::{Duration, Instant};

use apiloom::testing::TestServer;
use apiloom_client::ApiResource;
use apiloom_client::cache::{DynamicInformer, InformerFactory};
use apiloom_client::dynamic::DynamicObject;
use serde_json::json;

fn foos() -> ApiResource {
    ApiResource::new("ex.io", "v1", "Foo", "foos")
}

fn definitions() -> ApiResource {
    ApiResource::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
}

/// Creates the definition of foos and an object of it, as soon as its kind is served.
async fn define(server: &TestServer, name: &str) {
    let mut definition = DynamicObject::new(&definitions(), "foos.ex.io");
    let spec = json!({
        "group": "ex.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}],
    });
    definition.data.insert("spec".to_owned(), spec);
    let definitions = server.client().dynamic_in_cluster(definitions());
    until(async || definitions.create(&definition).await.is_ok()).await;
    let objects = server.client().dynamic_in("default", foos());
    let object = DynamicObject::new(&foos(), name);
    until(async || objects.create(&object).await.is_ok()).await;
}

async fn until(mut is_done: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_done().await {
        assert!(started.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_names(informer: &DynamicInformer, expected: &[&str]) {
    let names = || -> Vec<String> {
        let objects = informer.lister().list();
        let names = objects.iter().map(|object| object.metadata.name.clone());
        names.map(Option::unwrap_or_default).collect()
    };
    until(async || names() == expected).await;
}

#[tokio::test]
async fn an_informer_follows_a_kind_that_is_made_again() {
    let server = TestServer::builder().built_in().build().await.unwrap();
    define(&server, "first").await;
    let factory = InformerFactory::new(&server.client());
    let informer = factory.dynamic_informer(&foos());
    factory.start();
    until_names(&informer, &["first"]).await;
    let definitions = server.client().dynamic_in_cluster(definitions());
    definitions.delete("foos.ex.io").await.unwrap();
    until_names(&informer, &[]).await;
    // Until the old definition is gone, a new one cannot be made.
    define(&server, "second").await;
    until_names(&informer, &["second"]).await;
    let objects = server.client().dynamic_in("default", foos());
    assert_eq!(objects.list().await.unwrap().items.len(), 1);
    server.stop().await;
}
