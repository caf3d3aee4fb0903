//! Objects in fields of other objects.

use super::*;

/// A kind that holds any other object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Holder {
    metadata: ObjectMeta,
    #[serde(default)]
    template: Value,
}

impl ApiType for Holder {}

resource!(Holder, "v1", "Holder", "holders", |def| ResourceDef {
    storage: true,
    schema: SchemaSource::Type(|| {
        Schema::of_custom_resource(
            &json!({"type": "object", "properties": {"template": {"type": "object",
            "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}),
        )
    }),
    ..def
});

#[tokio::test]
async fn the_metadata_of_an_object_in_an_object_is_validated() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Holder>();
    let f = started(builder, store).await;
    let holders = f.registry.endpoint(GROUP, "v1", "holders").unwrap();
    let holder = |template: Value| object(json!({"metadata": {"name": "a"}, "template": template}));
    let create = async |template: Value| {
        let options = CreateOptions::default();
        let created = holders
            .writes()
            .create(&f.ctx, NS, holder(template), &options);
        created.await.map(|written| written.object)
    };
    let pod = |labels: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": {}});
    let refused = create(pod(json!({"a": "b c"}))).await.unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("template.metadata.labels: Invalid value: \"b c\""),
        "{message}"
    );
    let kindless = create(json!({"metadata": {}}))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        kindless.contains("template.kind: Required value"),
        "{kindless}"
    );
    create(pod(json!({"a": "b"}))).await.unwrap();
    let update = holder(pod(json!({"a": "b c"})));
    let options = UpdateOptions::default();
    let updated = holders
        .writes()
        .update(WriteRequest::new(&f.ctx, NS, "a").with(&options), update)
        .await;
    assert!(updated.is_err());
}
