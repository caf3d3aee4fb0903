//! The size limit of objects: without it, patches made an object of 143 MiB, step by step.

use apiloom_meta::patch::Patch;
use apiloom_storage::Revision;

use super::*;

const LIMIT: usize = 10_000;

/// A registry over a store, with this size limit for objects; 0 for none.
async fn limited(store: &Arc<Memory>, limit: usize) -> Fixture {
    let mut builder = builder(store);
    builder.max_object_bytes(limit);
    builder.admission(|_| Box::new(Inflate));
    started(builder, Arc::clone(store)).await
}

/// An admission plugin that adds a long annotation to objects that request it.
struct Inflate;

#[async_trait]
impl Admission for Inflate {
    fn name(&self) -> &'static str {
        "Inflate"
    }
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        let object = request.object.as_deref_mut();
        if let Some(object) = object.filter(|object| object.label("inflate").is_some()) {
            let long = json!({"long": text(LIMIT)});
            object.meta_mut().insert("annotations".to_owned(), long);
        }
        Ok(())
    }
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn annotated(name: &str, bytes: usize) -> Value {
    json!({"metadata": {"name": name, "annotations": {"a": text(bytes)}}})
}

#[track_caller]
fn assert_too_large<T: std::fmt::Debug>(result: Result<T, ApiError>) {
    let error = result.expect_err("it is too large");
    let text = "Request entity too large: limit is 10000";
    assert_eq!(shown(&error), (Some("RequestEntityTooLarge"), text));
}

impl Fixture {
    async fn finalize(&self, subresource: &str, namespace: Object) -> Result<Object, ApiError> {
        let options = UpdateOptions::default();
        let name = namespace.name().to_owned();
        let written = self
            .namespaces
            .writes()
            .update(
                WriteRequest::new(&self.ctx, None, &name)
                    .at(subresource)
                    .with(&options),
                namespace,
            )
            .await;
        written.map(|(written, _)| written.object)
    }
}

#[tokio::test]
async fn no_write_makes_an_object_too_large() {
    let f = limited(&Memory::new(), LIMIT).await;
    assert_too_large(f.create(annotated("b", LIMIT)).await);
    f.create(annotated("a", 5_000)).await.unwrap();
    f.cached().await;
    let before = f.revision().await;
    assert_too_large(f.put("a", annotated("a", LIMIT)).await);
    let more = json!({"b": text(5_000)});
    assert_too_large(
        f.merge("a", json!({"metadata": {"annotations": more}}))
            .await,
    );
    let copy = json!([{"op": "copy", "from": "/metadata/annotations/a", "path": "/metadata/annotations/b"}]);
    assert_too_large(f.json_patch("a", copy).await);
    // Content that is not in the request counts too.
    let inflate = json!({"inflate": "me"});
    assert_too_large(f.merge("a", json!({"metadata": {"labels": inflate}})).await);
    let input = json!({"metadata": {"name": "b", "labels": inflate}});
    assert_too_large(f.create(input).await);
    let input = json!({"metadata": {"generateName": "b-", "labels": inflate}});
    assert_too_large(f.create(input).await);
    // In the storage version, and in a dry run.
    let patch = Patch::parse_merge(
        json!({"spec": {"colour": text(5_000)}})
            .to_string()
            .as_bytes(),
    );
    let patch = patch.unwrap();
    for dry_run in [false, true] {
        let options = PatchOptions {
            dry_run,
            ..PatchOptions::default()
        };
        assert_too_large(
            f.alpha
                .writes()
                .patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch)
                .await,
        );
    }
    assert_eq!(f.revision().await, before);
    // A kind that is created by updates.
    let gadget = json!({"metadata": {"name": "g"}, "note": text(LIMIT)});
    let options = UpdateOptions::default();
    assert_too_large(
        f.gadgets
            .writes()
            .update(
                WriteRequest::new(&f.ctx, None, "g").with(&options),
                object(gadget),
            )
            .await,
    );
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn no_subresource_makes_an_object_too_large() {
    let f = limited(&Memory::new(), LIMIT).await;
    let input = object(json!({"metadata": {"name": "n"}}));
    let options = CreateOptions::default();
    let created = f.namespaces.writes().create(&f.ctx, None, input, &options);
    let created = created.await.unwrap().object;
    let mut status = created.clone();
    let condition = json!({"type": "A", "status": "True", "message": text(LIMIT)});
    status.fields_mut()["status"]["conditions"] = json!([condition]);
    assert_too_large(f.finalize("status", status).await);
    let mut finalizers = created.clone();
    let names: Vec<String> = (0..LIMIT / 5).map(|i| format!("x/{i}")).collect();
    finalizers.fields_mut()["spec"]["finalizers"] = json!(names);
    assert_too_large(f.finalize("finalize", finalizers).await);
    f.finalize("status", created).await.unwrap();
}

#[tokio::test]
async fn what_is_too_large_already_is_served_made_smaller_and_deleted() {
    let store = Memory::new();
    let unlimited = limited(&store, 0).await;
    unlimited.create(large()).await.unwrap();
    for f in [limited(&store, LIMIT).await, uncached(&store).await] {
        f.cached().await;
        f.get("a").await.unwrap();
        assert_too_large(f.merge("a", json!({"spec": {"color": "yellow"}})).await);
        let smaller = f.merge(
            "a",
            json!({"metadata": {"annotations": {"a": text(LIMIT - 1)}}}),
        );
        smaller.await.unwrap();
        f.merge(
            "a",
            json!({"metadata": {"annotations": {"a": text(LIMIT)}}}),
        )
        .await
        .unwrap_err();
        // A write without change writes nothing.
        f.merge("a", json!({})).await.unwrap();
        unlimited.put("a", large()).await.unwrap();
        f.cached().await;
    }
    let f = uncached(&store).await;
    let DeleteResult::Pending(_) = f.delete("a").await.unwrap() else {
        panic!("its finalizer holds it back");
    };
    f.merge("a", json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    f.get("a").await.unwrap_err();
}

/// A too large object with a finalizer.
fn large() -> Value {
    let mut large = annotated("a", LIMIT);
    large["metadata"]["finalizers"] = json!(["x/y"]);
    large["spec"] = json!({"color": "red"});
    large
}

/// A registry with a size limit, without watch caches.
async fn uncached(store: &Arc<Memory>) -> Fixture {
    let mut builder = builder(store);
    builder.max_object_bytes(LIMIT);
    builder.watch_cache(None);
    started(builder, Arc::clone(store)).await
}

#[tokio::test]
async fn an_object_has_three_mebibytes_unless_said_otherwise() {
    let f = fixture().await;
    let gadget =
        |name: &str, bytes: usize| object(json!({"metadata": {"name": name}, "note": text(bytes)}));
    let options = CreateOptions::default();
    let create = |object| f.gadgets.writes().create(&f.ctx, None, object, &options);
    create(gadget("a", 3_145_000)).await.unwrap();
    let error = create(gadget("b", 3_145_728)).await.unwrap_err();
    assert_eq!(error.message, "Request entity too large: limit is 3145728");
    // Escapes make an object larger than its body.
    let escaped = object(json!({"metadata": {"name": "c"}, "note": "<".repeat(1_000_000)}));
    create(escaped).await.unwrap_err();
    assert_eq!(f.store.current_revision().await.unwrap(), Revision(2));
}
