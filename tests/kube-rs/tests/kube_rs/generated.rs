//! The types that apiloom generates for kube-rs: requests, watchers, and a controller that does the same as one of apiloom.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use apiloom::client::config::{Config, Kubeconfig};
use apiloom::client::controller::{CancellationToken, ElectionConfig};
use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use wardle::generated::kube::{wardle_v1alpha1, wardle_v1beta1};
use wardle::v1alpha1::FlunderSpec;
use wardle::v1beta1::ReferenceType;
use wardle_v1alpha1::{Fischer, Flunder};

use crate::{Fixture, refused, typed};

const LIMIT: Duration = Duration::from_secs(60);

fn flunder(name: &str, to: Option<(&str, ReferenceType)>) -> Flunder {
    let object = wardle::v1alpha1::Flunder {
        metadata: Default::default(),
        spec: to.map(|(reference, reference_type)| FlunderSpec {
            reference: Some(reference.to_owned()),
            reference_type: Some(reference_type),
        }),
        status: None,
    };
    Flunder::new(name, object)
}

fn fischer(name: &str, disallowed: &[&str]) -> Fischer {
    let object = wardle::v1alpha1::Fischer {
        metadata: Default::default(),
        disallowed_flunders: disallowed.iter().map(|name| (*name).to_owned()).collect(),
    };
    Fischer::new(name, object)
}

#[test]
fn a_type_has_the_fields_of_its_kind_and_the_metadata_of_kube_rs() {
    let mut object = flunder("a", Some(("b", ReferenceType::Fischer)));
    object.labels_mut().insert("x".to_owned(), "y".to_owned());
    let document = json!({
        "apiVersion": "wardle.example.com/v1alpha1",
        "kind": "Flunder",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {"reference": "b", "referenceType": "Fischer"},
    });
    assert_eq!(serde_json::to_value(&object).unwrap(), document);
    let read: Flunder = typed(document);
    assert_eq!(read.metadata, object.metadata);
    assert_eq!(*read, *object);
    assert_eq!(read.spec.as_ref().unwrap().reference.as_deref(), Some("b"));
    // In any order, with fields of a later release, and without metadata.
    let text = r#"{"spec":null,"later":{"metadata":1},"metadata":{"name":"a","later":[1]},"kind":"Flunder"}"#;
    let read: Flunder = serde_json::from_str(text).unwrap();
    assert_eq!(read.name_any(), "a");
    let read: Fischer = serde_json::from_str(r#"{"disallowedFlunders":["x"]}"#).unwrap();
    assert_eq!(read.disallowed_flunders, ["x"]);
    assert_eq!(read.metadata, Default::default());
    for (text, problem) in [
        (
            r#"{"metadata":{},"metadata":{}}"#,
            "duplicate field `metadata`",
        ),
        (r#"{"metadata":{"name":1}}"#, "invalid type: integer `1`"),
        (r#"{"spec":{},"spec":{}}"#, "duplicate field `spec`"),
        ("[]", "invalid type: sequence"),
    ] {
        let error = serde_json::from_str::<Flunder>(text).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    assert_eq!(
        Fischer::url_path(&(), None),
        "/apis/wardle.example.com/v1alpha1/fischers"
    );
    let path = "/apis/wardle.example.com/v1beta1/namespaces/x/flunders";
    assert_eq!(wardle_v1beta1::Flunder::url_path(&(), Some("x")), path);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_watchers_work_with_generated_types() {
    let fixture = Fixture::start().await;
    let flunders: Api<Flunder> = Api::default_namespaced(fixture.client.clone());
    let watching = watcher(
        Api::<Flunder>::all(fixture.client.clone()),
        watcher::Config::default(),
    );
    let mut watched = watching.default_backoff().applied_objects().boxed();
    let post = PostParams::default();
    let created = flunders.create(&post, &flunder("a", None)).await.unwrap();
    assert!(created.uid().is_some());
    refused(
        flunders.create(&post, &flunder("a", None)).await,
        409,
        "AlreadyExists",
    );
    let mut changed = created.clone();
    changed.spec = Some(FlunderSpec {
        reference: Some("b".to_owned()),
        reference_type: None,
    });
    let changed = flunders.replace("a", &post, &changed).await.unwrap();
    // The default is the server's.
    let spec = changed.spec.as_ref().unwrap();
    assert_eq!(spec.reference_type, Some(ReferenceType::Flunder));
    refused(
        flunders.replace("a", &post, &created).await,
        409,
        "Conflict",
    );
    let other = Api::<wardle_v1beta1::Flunder>::default_namespaced(fixture.client.clone());
    let spec = other.get("a").await.unwrap().spec.clone().unwrap();
    assert_eq!(spec.flunder_reference.as_deref(), Some("b"));
    let fischers: Api<Fischer> = Api::all(fixture.client.clone());
    fischers.create(&post, &fischer("f", &["x"])).await.unwrap();
    let mut apply = fischer("f", &["y"]);
    apply.metadata.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    let params = PatchParams::apply("me").force();
    let applied = fischers
        .patch("f", &params, &Patch::Apply(&apply))
        .await
        .unwrap();
    assert_eq!(
        (
            applied.labels()["a"].as_str(),
            &*applied.disallowed_flunders
        ),
        ("b", &["y".to_owned()][..])
    );
    let list = fischers.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].metadata, applied.metadata);
    let seen = async {
        while let Some(seen) = watched.try_next().await.unwrap() {
            if seen.resource_version() == changed.resource_version() {
                assert_eq!(*seen, *changed);
                break;
            }
        }
    };
    timeout(LIMIT, seen)
        .await
        .expect("the watcher sees the change");
}

/// The Flunders as far as controllers write them: labels, finalizers, and whether they are deleted.
async fn written(flunders: &Api<Flunder>) -> Value {
    let list = flunders.list(&ListParams::default()).await.unwrap();
    let written = |flunder: &Flunder| {
        let meta = flunder.meta();
        json!([
            meta.name,
            meta.labels,
            meta.finalizers,
            meta.deletion_timestamp.is_some()
        ])
    };
    list.items.iter().map(written).collect()
}

/// Waits until the controllers have written this.
async fn until(flunders: &Api<Flunder>, expected: &[(&str, &str, bool)]) {
    let label = |state: &str| json!({wardle_kube_controller::LABEL: state});
    let finalizers = json!([wardle_controller::FINALIZER]);
    let expected: Value = expected
        .iter()
        .map(|(name, state, is_deleted)| json!([name, label(state), finalizers, is_deleted]))
        .collect();
    let reached = async {
        while written(flunders).await != expected {
            sleep(Duration::from_millis(20)).await;
        }
    };
    if timeout(LIMIT, reached).await.is_err() {
        assert_eq!(written(flunders).await, expected);
    }
}

/// Changes objects in all ways that concern the controller, which begins in the middle of it.
async fn check(fixture: &Fixture, controller: impl Future<Output = ()> + Send + 'static) {
    use ReferenceType::{Fischer as ToFischer, Flunder as ToFlunder};
    let flunders: Api<Flunder> = Api::default_namespaced(fixture.client.clone());
    let fischers: Api<Fischer> = Api::all(fixture.client.clone());
    let (post, delete) = (PostParams::default(), Default::default());
    let create = async |name: &str, to| {
        flunders.create(&post, &flunder(name, to)).await.unwrap();
    };
    create("a", Some(("target", ToFlunder))).await;
    create("b", Some(("target", ToFischer))).await;
    let controller = tokio::spawn(controller);
    until(
        &flunders,
        &[("a", "Missing", false), ("b", "Missing", false)],
    )
    .await;
    create("target", None).await;
    create("c", Some(("other", ToFlunder))).await;
    fischers
        .create(&post, &fischer("target", &["other"]))
        .await
        .unwrap();
    let all = [
        ("a", "Found", false),
        ("b", "Found", false),
        ("c", "Disallowed", false),
        ("target", "None", false),
    ];
    until(&flunders, &all).await;
    flunders.delete("target", &delete).await.unwrap();
    flunders.delete("c", &delete).await.unwrap();
    fischers.delete("target", &delete).await.unwrap();
    let kept = [
        ("a", "Found", false),
        ("b", "Missing", false),
        ("target", "None", true),
    ];
    until(&flunders, &kept).await;
    flunders.delete("a", &delete).await.unwrap();
    until(&flunders, &[("b", "Missing", false)]).await;
    controller.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_kube_rs_reaches_the_same_state() {
    let fixture = Fixture::start().await;
    let client = fixture.client.clone();
    let controller = wardle_kube_controller::run(client, std::future::pending());
    check(&fixture, async move { controller.await.unwrap() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_apiloom_reaches_the_same_state() {
    let fixture = Fixture::start().await;
    let kubeconfig = Kubeconfig::read(&[fixture.server.kubeconfig().to_owned()]).unwrap();
    let config = Config::from_kubeconfig(&kubeconfig, None).unwrap();
    let client = config.client().unwrap().build().unwrap();
    let replica = wardle_controller::Replica {
        identity: "a".to_owned(),
        lease_namespace: "default".to_owned(),
        election: ElectionConfig::default(),
    };
    check(&fixture, async move {
        replica
            .run(&client, &CancellationToken::new())
            .await
            .unwrap();
    })
    .await;
}
