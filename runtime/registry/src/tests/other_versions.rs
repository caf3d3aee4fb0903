//! Writes in a version that is not the hub: the hub's rules apply, and fields that the version lacks are kept.

use apiloom_meta::patch::Patch;

use super::versions::{PlainSketch, Sketch, stored_long_ago};
use super::*;

/// The result of a write through the older version of a Sketch, over one that the newer version created.
struct Sketches {
    f: Fixture,
    full: Arc<Endpoint>,
    plain: Arc<Endpoint>,
}

async fn sketches() -> Sketches {
    let (f, [full, plain]) = two_versions::<Sketch, PlainSketch>().await;
    let sketches = Sketches { f, full, plain };
    let spec = json!({"size": 2, "color": "red", "weight": 3});
    sketches.create(&sketches.full, spec).await.unwrap();
    sketches
}

impl Sketches {
    async fn create(&self, endpoint: &Endpoint, spec: Value) -> Result<Object, ApiError> {
        let options = CreateOptions::default();
        let object = object(widget("s", spec));
        let written = endpoint
            .writes()
            .create(&self.f.ctx, NS, object, &options)
            .await;
        written.map(|written| written.object)
    }
    async fn get(&self, endpoint: &Endpoint) -> Object {
        let options = GetOptions::default();
        let got = endpoint.reads().get(&self.f.ctx, NS, "s", &options);
        decoded(&got.await.unwrap())
    }
    async fn spec(&self) -> Value {
        at(&self.get(&self.full).await, "/spec")
    }
    async fn put(&self, object: Object, dry_run: bool) -> Object {
        let options = UpdateOptions {
            dry_run,
            ..UpdateOptions::default()
        };
        let written = self.plain.writes().update(
            WriteRequest::new(&self.f.ctx, NS, "s").with(&options),
            object,
        );
        written.await.unwrap().0.object
    }
    async fn patch(&self, patch: Patch) -> Object {
        let options = PatchOptions::default();
        let written = self.plain.writes().patch(
            WriteRequest::new(&self.f.ctx, NS, "s").with(&options),
            &patch,
        );
        written.await.unwrap().object
    }
    async fn merge(&self, patch: Value) -> Object {
        self.patch(Patch::parse_merge(patch.to_string().as_bytes()).unwrap())
            .await
    }
}

#[tokio::test]
async fn an_update_through_a_version_that_knows_less_keeps_what_only_the_hub_has() {
    let s = sketches().await;
    let kept = json!({"size": 2, "color": "red", "weight": 3});

    let mut read = s.get(&s.plain).await;
    assert_eq!(at(&read, "/spec"), json!({"size": 2}));
    read.meta_mut()
        .insert("labels".to_owned(), json!({"a": "b"}));
    s.put(read, false).await;
    assert_eq!(s.spec().await, kept);

    s.merge(json!({"metadata": {"labels": {"a": "c"}}})).await;
    assert_eq!(s.spec().await, kept);

    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 7}]);
    let patch = Patch::parse_json(patch.to_string().as_bytes()).unwrap();
    s.patch(patch).await;
    let resized = json!({"size": 7, "color": "red", "weight": 3});
    assert_eq!(s.spec().await, resized);

    // A field of the version is removed when it is absent; the hub's default replaces it.
    s.put(object(widget("s", json!({}))), false).await;
    assert_eq!(
        s.spec().await,
        json!({"size": 1, "color": "red", "weight": 3})
    );
    let got = s.get(&s.full).await;
    assert_eq!(at(&got, "/metadata/generation"), 3);
}

#[tokio::test]
async fn a_dry_run_and_an_update_that_changes_nothing_are_answered_with_what_a_read_would_give() {
    let s = sketches().await;
    let before = s.get(&s.plain).await;
    let written = s.put(object(widget("s", json!({"size": 2}))), false);
    assert_eq!(written.await, before);
    let mut shown = s.put(object(widget("s", json!({}))), true).await;
    assert_eq!(at(&shown, "/spec"), json!({"size": 1}));
    shown = s.merge(json!({"spec": {"size": null}})).await;
    assert_eq!(at(&shown, "/spec"), json!({"size": 1}));
}

/// Strategy of a Sketch, about fields that only the hub has.
struct SketchRules;

impl Strategy<Sketch> for SketchRules {
    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Sketch) {
        object.spec.serial = Some(1);
    }
    fn prepare_for_update(&self, _ctx: &RequestContext, new: &mut Sketch, old: &Sketch) {
        if new.spec.size != old.spec.size {
            new.spec.serial = old.spec.serial.map(|serial| serial + 1);
        }
    }
    fn validate_update(
        &self,
        _ctx: &RequestContext,
        new: &Sketch,
        old: &Sketch,
    ) -> Vec<FieldError> {
        let path = FieldPath::new("spec").child("color");
        let changes = new.spec.color != old.spec.color;
        let error = || FieldError::invalid(&path, new.spec.color.clone(), "field is immutable");
        changes.then(error).into_iter().collect()
    }
}

#[tokio::test]
async fn the_hubs_strategy_sees_and_sets_what_only_the_hub_has() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Sketch>();
    builder.kind::<PlainSketch>();
    builder.strategy::<Sketch>(SketchRules);
    let f = started(builder, store).await;
    let endpoint = |version: &str| f.registry.endpoint(GROUP, version, "sketches").unwrap();
    let (full, plain) = (endpoint("v1"), endpoint("v1alpha1"));
    let s = Sketches { f, full, plain };
    s.create(&s.plain, json!({"size": 2})).await.unwrap();
    assert_eq!(s.spec().await, json!({"size": 2, "serial": 1}));
    let color = Patch::parse_merge(br#"{"spec": {"color": "red"}}"#).unwrap();
    let options = PatchOptions::default();
    let refused = s
        .full
        .writes()
        .patch(WriteRequest::new(&s.f.ctx, NS, "s").with(&options), &color);
    refused.await.unwrap_err();
    s.merge(json!({"metadata": {"labels": {"a": "b"}}})).await;
    s.merge(json!({"spec": {"size": 3}})).await;
    assert_eq!(s.spec().await, json!({"size": 3, "serial": 2}));
}

const TOO_HEAVY: &str = "Widget.test.example.com \"a\" is invalid: spec.weight: Invalid value: 11: must be less than or \
                         equal to 10";

#[tokio::test]
async fn the_hubs_schema_judges_writes_in_every_version() {
    let f = fixture().await;
    let create = async |dry_run: bool| {
        let options = CreateOptions {
            dry_run,
            ..CreateOptions::default()
        };
        let heavy = object(widget("a", json!({"colour": "red", "weight": 11})));
        f.alpha.writes().create(&f.ctx, NS, heavy, &options).await
    };
    for dry_run in [true, false] {
        let error = create(dry_run).await.unwrap_err();
        assert_eq!(shown(&error), (Some("Invalid"), TOO_HEAVY));
    }
    f.create(widget("a", json!({"color": "red", "weight": 10})))
        .await
        .unwrap();
    let heavy = object(widget("a", json!({"colour": "red", "weight": 11})));
    let options = UpdateOptions::default();
    let updated = f
        .alpha
        .writes()
        .update(WriteRequest::new(&f.ctx, NS, "a").with(&options), heavy);
    assert_eq!(shown(&updated.await.unwrap_err()).1, TOO_HEAVY);
    let patch = Patch::parse_merge(br#"{"spec": {"weight": 11}}"#).unwrap();
    let options = PatchOptions::default();
    let patched = f
        .alpha
        .writes()
        .patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch);
    assert_eq!(shown(&patched.await.unwrap_err()).1, TOO_HEAVY);
    let wrong = object(widget("b", json!({"weight": "much"})));
    let error = f
        .alpha
        .writes()
        .create(&f.ctx, NS, wrong, &CreateOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.message.matches("spec.weight").count(),
        2,
        "{}",
        error.message
    );
}

#[tokio::test]
async fn what_the_hub_would_refuse_can_still_be_changed_elsewhere() {
    let f = fixture().await;
    let spec = json!({"weight": 11, "colour": "red"});
    f.plant("widgets", &stored_long_ago("Widget", "a", &spec))
        .await;
    let patch = async |endpoint: &Endpoint, patch: Value| {
        let patch = Patch::parse_merge(patch.to_string().as_bytes()).unwrap();
        let options = PatchOptions::default();
        endpoint
            .writes()
            .patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch)
            .await
    };
    for endpoint in [&f.alpha, &f.widgets] {
        let label = json!({"metadata": {"labels": {"by": endpoint.def().version}}});
        patch(endpoint, label).await.unwrap();
        let heavier = json!({"spec": {"weight": 12}});
        let error = patch(endpoint, heavier).await.unwrap_err();
        assert!(
            error.message.contains("Invalid value: 12"),
            "{}",
            error.message
        );
    }
    patch(&f.alpha, json!({"spec": {"weight": 1}}))
        .await
        .unwrap();
}
