//! Kinds with several versions, and objects that were stored before.

use apiloom_storage::Storage as _;

use super::*;

impl Fixture {
    /// Writes an object directly to the store.
    pub(super) async fn plant(&self, plural: &str, document: &Value) -> u64 {
        let name = document["metadata"]["name"].as_str().unwrap();
        let key = format!("/registry/{GROUP}/{plural}/default/{name}");
        let created = self.store.create(&key, document.to_string().into(), None);
        created.await.unwrap().0
    }
}

/// An object in the storage version of these tests.
pub(super) fn stored_long_ago(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.example.com/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": "u"}, "spec": spec})
}

#[tokio::test]
async fn an_object_is_the_same_in_every_version() {
    let f = fixture().await;
    let created = f
        .create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let alpha = f
        .alpha
        .reads()
        .get(&f.ctx, NS, "a", &GetOptions::default())
        .await
        .unwrap();
    let alpha = decoded(&alpha);
    assert_eq!(alpha.api_version(), "test.example.com/v1alpha1");
    assert_eq!(at(&alpha, "/spec/colour"), "red");
    assert_eq!(alpha.meta(), created.meta());
}

#[tokio::test]
async fn a_version_without_rules_is_judged_by_the_hubs() {
    let f = fixture().await;
    let create = async |spec: Value| {
        f.alpha
            .writes()
            .create(
                &f.ctx,
                NS,
                object(widget("a", spec)),
                &CreateOptions::default(),
            )
            .await
    };
    let error = create(json!({"colour": "bad"})).await.unwrap_err();
    assert!(
        error
            .message
            .contains("spec.color: Invalid value: \"bad\": must be good"),
        "{}",
        error.message
    );
    let created = create(json!({"weight": 3})).await.unwrap();
    assert_eq!(
        at(&created, "/spec"),
        json!({"weight": 3, "colour": "gray", "size": 1, "serial": 1})
    );
}

#[tokio::test]
async fn an_update_through_another_version_that_changes_nothing_writes_nothing() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let before = f.revision().await;
    let alpha = f
        .alpha
        .reads()
        .get(&f.ctx, NS, "a", &GetOptions::default())
        .await
        .unwrap();
    let alpha = decoded(&alpha);
    f.alpha
        .writes()
        .update(
            WriteRequest::new(&f.ctx, NS, "a").with(&UpdateOptions::default()),
            alpha,
        )
        .await
        .unwrap();
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn an_object_stored_before_its_type_gained_a_default_is_served_with_it() {
    let f = fixture().await;
    let revision = f
        .plant(
            "widgets",
            &stored_long_ago("Widget", "old", &json!({"colour": "red", "gone": 1})),
        )
        .await
        .to_string();
    let expected = json!({"color": "red", "size": 1});
    let got = f.get("old").await.unwrap();
    let listed = f.list(&ListOptions::default()).await.unwrap();
    let mut events = f
        .widgets
        .reads()
        .watch(&f.ctx, NS, &ListOptions::default())
        .await
        .unwrap();
    let watched = events.next().await.unwrap().unwrap();
    for object in [got, items(&listed)[0].clone(), decoded(&watched.object)] {
        assert_eq!(at(&object, "/spec"), expected);
        assert_eq!(object.resource_version(), revision);
    }
    assert_eq!(f.revision().await.to_string(), revision);
}

#[tokio::test]
async fn damaged_bytes_are_an_error_that_names_the_key() {
    for (name, bytes) in [
        ("d", "{"),
        ("d", "[]"),
        ("d", "{}"),
        (
            "d",
            r#"{"apiVersion":"test.example.com/v9","kind":"Widget"}"#,
        ),
    ] {
        let f = fixture().await;
        f.store
            .create(&key(name), bytes.into(), None)
            .await
            .unwrap();
        let error = f.get(name).await.unwrap_err();
        assert_eq!(error.reason, Some(StatusReason::InternalError));
        assert!(
            error
                .message
                .contains("\"/registry/test.example.com/widgets/default/d\""),
            "{}",
            error.message
        );
        assert!(f.list(&ListOptions::default()).await.is_err());
        assert!(f.delete(name).await.is_err());
        assert!(f.merge(name, json!({})).await.is_err());
        let mut events = f
            .widgets
            .reads()
            .watch(&f.ctx, NS, &ListOptions::default())
            .await
            .unwrap();
        assert!(events.next().await.unwrap().is_err());
        assert!(events.next().await.is_none());
        // A damaged object must not stop controllers that list its kind.
        let counting = json!({"metadata": {"name": "ok", "labels": {"count": "me"}}});
        assert_eq!(f.create(counting).await.unwrap().label("count"), Some("0"));
    }
}

#[tokio::test]
async fn an_unavailable_store_is_said_so() {
    let f = fixture().await;
    f.store.close().await;
    let error = f.get("a").await.unwrap_err();
    let text = "The get operation against widgets.test.example.com could not be completed at this time, please try again.";
    assert_eq!(shown(&error), (Some("ServerTimeout"), text));
    assert_eq!(error.details.unwrap().retry_after_seconds, 2);
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Sketch {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
}

/// An older version of Sketch that knows nothing but the size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PlainSketch {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: PlainSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PlainSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<i64>,
}

impl ApiType for Sketch {}
impl ApiType for PlainSketch {}
resource!(Sketch, "v1", "Sketch", "sketches", |def| ResourceDef {
    storage: true,
    ..def
});
resource!(PlainSketch, "v1alpha1", "Sketch", "sketches", |def| {
    ResourceDef {
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Sketch".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub: Ok,
                from_hub: |mut value| {
                    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
                        spec.retain(|name, _| name == "size");
                    }
                    Ok(value)
                },
            }),
        }),
        ..def
    }
});

#[tokio::test]
async fn status_and_deletion_through_a_version_that_knows_less_lose_nothing() {
    let (f, [full, plain]) = two_versions::<Sketch, PlainSketch>().await;
    let color = async || {
        let got = full
            .reads()
            .get(&f.ctx, NS, "s", &GetOptions::default())
            .await;
        at(&decoded(&got.unwrap()), "/spec/color")
    };
    let input = json!({"metadata": {"name": "s", "finalizers": ["example.com/x"]}, "spec": {"color": "red"}});
    full.writes()
        .create(&f.ctx, NS, object(input), &CreateOptions::default())
        .await
        .unwrap();

    let ready = object(json!({"metadata": {"name": "s"}, "status": {"ready": true}}));
    let (after, _) = plain
        .writes()
        .update(
            WriteRequest::new(&f.ctx, NS, "s")
                .at("status")
                .with(&UpdateOptions::default()),
            ready,
        )
        .await
        .unwrap();
    assert_eq!(at(&after, "/status/ready"), true);
    assert_eq!(color().await, "red");

    plain
        .writes()
        .delete(&f.ctx, NS, "s", &DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(color().await, "red");
}

/// Knows no default of its own; the version it is stored in has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Crate {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: PlainSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct StoredCrate {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
}

impl ApiType for Crate {}
impl ApiType for StoredCrate {}
resource!(Crate, "v1", "Crate", "crates", |def| def);
resource!(StoredCrate, "v1alpha1", "Crate", "crates", |def| {
    ResourceDef {
        storage: true,
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Crate".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub: Ok,
                from_hub: Ok,
            }),
        }),
        ..def
    }
});

#[tokio::test]
async fn a_default_of_the_stored_version_is_written_and_answered_at_once() {
    let (f, [crates, _]) = two_versions::<Crate, StoredCrate>().await;
    let input = || object(json!({"metadata": {"name": "c"}, "spec": {}}));
    let created = crates
        .writes()
        .create(&f.ctx, NS, input(), &CreateOptions::default())
        .await
        .unwrap();
    assert_eq!(at(&created, "/spec/size"), 1);
    let before = f.revision().await;
    for again in [created.object, input()] {
        crates
            .writes()
            .update(
                WriteRequest::new(&f.ctx, NS, "c").with(&UpdateOptions::default()),
                again,
            )
            .await
            .unwrap();
    }
    assert_eq!(f.revision().await, before);
}
