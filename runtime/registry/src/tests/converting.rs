//! Lists in a version that is not stored: complete or an error, and converted while they are sent.

use std::cell::Cell;

use super::versions::stored_long_ago;
use super::*;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Draft {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct StoredDraft {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

impl ApiType for Draft {}
impl ApiType for StoredDraft {}
resource!(Draft, "v1", "Draft", "drafts", |def| ResourceDef {
    selectable: vec![JsonPath::new(["spec", "color"]).into()],
    ..def
});
resource!(StoredDraft, "v1alpha1", "Draft", "drafts", |def| {
    ResourceDef {
        storage: true,
        conversion: Some(Conversion {
            hub_version: "v1".into(),
            hub_kind: "Draft".into(),
            hub_resource: None,
            method: ConversionMethod::InMemory(InMemoryConversion {
                json: None,
                to_hub,
                from_hub: Ok,
            }),
        }),
        ..def
    }
});

thread_local! {
    /// Number of objects converted to the hub; a test and its server run on one thread.
    static CONVERTED: Cell<usize> = const { Cell::new(0) };
    /// Whether objects that are moody cannot be converted at present.
    static MOODY: Cell<bool> = const { Cell::new(false) };
}

fn to_hub(value: Value) -> Result<Value, String> {
    CONVERTED.set(CONVERTED.get() + 1);
    match value.pointer("/spec/color").and_then(Value::as_str) {
        Some("stuck") => Err("it is stuck".to_owned()),
        Some("moody") if MOODY.get() => Err("not today".to_owned()),
        _ => Ok(value),
    }
}

/// Drafts with these colors, named a, b and so on, with their colors as labels; and their endpoint in the version that
/// is not stored. They are written to the store directly, since writes would refuse objects that cannot be converted.
async fn drafts(colors: &[&str]) -> (Fixture, Arc<Endpoint>) {
    let (f, [hub, _]) = two_versions::<Draft, StoredDraft>().await;
    for (name, color) in ('a'..).zip(colors) {
        let mut document = stored_long_ago("Draft", &name.to_string(), &json!({"color": color}));
        document["metadata"]["labels"] = json!({"color": color});
        f.plant("drafts", &document).await;
    }
    (f, hub)
}

#[tokio::test]
async fn an_object_that_cannot_be_converted_fails_the_list_before_it_begins() {
    let (f, hub) = drafts(&["red", "stuck"]).await;
    for options in [
        ListOptions::default(),
        ListOptions {
            limit: 2,
            ..ListOptions::default()
        },
        labels("color"),
        fields("metadata.name!=a"),
        fields("spec.color!=blue"),
    ] {
        let error = hub.reads().list(&f.ctx, NS, &options).await.unwrap_err();
        assert_eq!(error.reason, Some(StatusReason::InternalError));
        assert!(
            error
                .message
                .ends_with("converting Draft \"b\" from test.example.com/v1alpha1 to test.example.com/v1: it is stuck"),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn an_object_that_is_not_shown_need_not_be_converted() {
    let (f, hub) = drafts(&["red", "stuck"]).await;
    let first = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    for options in [first, labels("color=red"), fields("metadata.name=a")] {
        let listed = hub.reads().list(&f.ctx, NS, &options).await.unwrap();
        assert_eq!(names(&listed), ["a"]);
    }
}

#[tokio::test]
async fn a_list_is_converted_while_it_is_sent() {
    let (f, hub) = drafts(&["red", "blue", "green"]).await;
    let list = async || {
        hub.reads()
            .list(&f.ctx, NS, &ListOptions::default())
            .await
            .unwrap()
    };
    let first = list().await;
    assert_eq!(at(&items(&first)[2], "/spec/color"), "green");
    let before = CONVERTED.get();
    let mut again = list().await.items;
    assert_eq!(CONVERTED.get(), before, "all were tried before");
    again.next().unwrap().unwrap();
    assert_eq!(CONVERTED.get(), before + 1, "one at a time");
}

#[tokio::test]
async fn a_list_whose_conversion_fails_after_all_does_not_look_whole() {
    let (f, hub) = drafts(&["red", "moody", "green"]).await;
    let mut items = hub
        .reads()
        .list(&f.ctx, NS, &ListOptions::default())
        .await
        .unwrap()
        .items;
    items.next().unwrap().unwrap();
    MOODY.set(true);
    items.next().unwrap().unwrap_err();
}
