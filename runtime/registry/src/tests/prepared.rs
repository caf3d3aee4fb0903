//! The only encoding of a written object: stored, served, and taken over by the watch cache.

use apiloom_storage::Revision;
use apiloom_storage::cache::Normalize;
use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::objects::kind::Kind;
use crate::objects::normalizer::CacheNormalizer;
use crate::objects::prepared_object::{PendingWrite, PreparedObject};

/// A prepared object, and the same as a read would encode it.
fn check(kind: &Kind, document: Value) {
    let version = kind.versions.stored_version();
    let mut object = object(document);
    let prepared = kind.encode(&mut object).unwrap();

    object.set_meta_str("resourceVersion", "");
    let stored: Value = serde_json::from_slice(&prepared.stored).unwrap();
    assert_eq!(stored, object.clone().into_value());

    object.set_meta_str("resourceVersion", "1234");
    let (served, read) = (
        prepared.served(Revision(1234)),
        Json::of(&object, version.schema()),
    );
    assert_eq!(served.whole(), read.whole());
    assert_eq!(served.metadata(), read.metadata());
    assert!(prepared.shows(read.whole(), Revision(1234)));
    assert!(!prepared.shows(read.whole(), Revision(1235)));
}

#[tokio::test]
async fn what_is_stored_is_what_is_served_without_its_resource_version() {
    let f = fixture().await;
    let kind = &f.alpha.resource().kind;
    for meta in [
        json!({}),
        json!({"name": "a"}),
        json!({"name": "a", "resourceVersion": "77"}),
        json!({"resourceVersion": "not a number", "labels": {"a": "b"}}),
        json!({"uid": "\"resourceVersion\":\"5\"", "generation": 1}),
        json!({"name": "a", "annotations": {"x": "\"resourceVersion\":\"5\","}}),
    ] {
        check(kind, json!({"metadata": meta, "spec": {"colour": "<red>"}}));
    }
}

proptest! {
    #[test]
    fn any_text_around_it_is_kept(texts in prop::collection::vec(any::<String>(), 4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let f = runtime.block_on(fixture());
        let [name, uid, label, colour] = &texts[..] else { unreachable!("there are four") };
        check(&f.alpha.resource().kind, json!({
            "metadata": {"name": name, "uid": uid, "labels": {"a": label}},
            "spec": {"colour": colour},
        }));
    }
}

fn prepared(f: &Fixture, colour: &str) -> Arc<PreparedObject> {
    let mut object = object(widget("a", json!({"colour": colour})));
    Arc::new(f.alpha.resource().kind.encode(&mut object).unwrap())
}

fn pending(prepared: &Arc<PreparedObject>) -> PendingWrite {
    PendingWrite {
        prepared: Arc::clone(prepared),
        stored: prepared.stored.clone(),
    }
}

#[tokio::test]
async fn the_cache_takes_over_the_bytes_that_were_written_and_no_others() {
    let f = fixture().await;
    let pending_writes = &f.alpha.resource().kind.pending_writes;
    let (red, blue) = (prepared(&f, "red"), prepared(&f, "blue"));
    pending_writes.put("/a", pending(&red));
    let other: Bytes = blue.stored.clone();
    assert!(
        pending_writes.take("/a", &other).is_none(),
        "somebody else wrote"
    );
    assert!(pending_writes.take("/b", &red.stored).is_none());
    assert!(pending_writes.take("/a", &red.stored).is_some());
    assert!(pending_writes.take("/a", &red.stored).is_none(), "once");
}

#[tokio::test]
async fn a_write_that_failed_is_forgotten_but_not_the_one_that_won() {
    let f = fixture().await;
    let pending_writes = &f.alpha.resource().kind.pending_writes;
    let (red, blue) = (prepared(&f, "red"), prepared(&f, "blue"));
    pending_writes.put("/a", pending(&red));
    pending_writes.put("/a", pending(&blue));
    pending_writes.remove("/a", &red);
    assert!(pending_writes.take("/a", &blue.stored).is_some());
    pending_writes.put("/a", pending(&red));
    pending_writes.remove("/a", &red);
    assert!(pending_writes.take("/a", &red.stored).is_none());
}

/// Whether stored bytes need no decoding. In both cases the watch cache must have the same object.
fn is_recognized(kind: &Arc<Kind>, stored: &[u8]) -> bool {
    let (stored, revision) = (Bytes::copy_from_slice(stored), Revision(1234));
    let decoded = kind
        .read("/a", &stored, revision, kind.versions.stored)
        .map(|object| Json::of(&object, kind.versions.stored_version().schema()));
    let text = |json: &[u8]| String::from_utf8_lossy(json).into_owned();

    let cached = CacheNormalizer(Arc::clone(kind)).normalize("/a", &stored, revision);
    assert_eq!(
        cached
            .as_ref()
            .ok()
            .map(|cached| text(cached.json().whole())),
        decoded.as_ref().ok().map(|json| text(json.whole())),
        "of {}",
        text(&stored)
    );
    let recognized = kind.recognize(&stored);
    if let (Some(recognized), Ok(decoded)) = (&recognized, &decoded) {
        let served = recognized.served(revision);
        assert_eq!(served.metadata(), decoded.metadata());
    }
    recognized.is_some()
}

#[tokio::test]
async fn stored_bytes_that_are_served_as_they_are_need_no_decoding() {
    let f = fixture().await;
    let kind = &f.gadgets.resource().kind;
    let head = r#"{"kind":"Gadget","apiVersion":"test.example.com/v1","metadata":"#;
    for (rest, recognized) in [
        (r#"{"name":"a"}}"#, true),
        (r#"{"name":"a"},"note":"x"}"#, true),
        (
            r#"{"name":"a","uid":"u","labels":{"a":"b"}},"note":""}"#,
            true,
        ),
        (
            r#"{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"}}"#,
            true,
        ),
        (
            r#"{"name":"a"},"data":{"$serde_json::private::RawValue":"[1]"}}"#,
            true,
        ),
        (
            r#"{"name":"a"},"data":{"$serde_json::private::RawValue":"{","b":""}}"#,
            true,
        ),
        // An unknown field, an empty name, another order, a space, malformed JSON.
        (r#"{"name":"a"},"size":1}"#, false),
        (r#"{"name":""},"note":"x"}"#, false),
        (r#"{"uid":"u"},"note":"x"}"#, false),
        (r#"{"uid":"u","name":"a"}}"#, false),
        (r#"{"name":"a"} }"#, false),
        (r#"{"name":"a"}"#, false),
    ] {
        let stored = [head, rest].concat();
        assert_eq!(is_recognized(kind, stored.as_bytes()), recognized, "{rest}");
    }
    for stored in [
        r#"{"kind":"Gadget","apiVersion":"test.example.com/v2","metadata":{"name":"a"}}"#,
        r#"{"kind":"Widget","apiVersion":"test.example.com/v1","metadata":{"name":"a"}}"#,
        r#"{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":"a"}}"#,
    ] {
        assert!(!is_recognized(kind, stored.as_bytes()), "{stored}");
    }
}

#[tokio::test]
async fn objects_whose_defaults_are_code_of_another_version_are_decoded() {
    let f = fixture().await;
    let head =
        r#"{"kind":"Widget","apiVersion":"test.example.com/v1alpha1","metadata":{"name":"a"},"#;
    for spec in [r#""spec":{"size":1,"weight":2}}"#, r#""spec":{"size":1}}"#] {
        let stored = [head, spec].concat();
        assert!(
            !is_recognized(&f.alpha.resource().kind, stored.as_bytes()),
            "{spec}"
        );
    }
}

#[tokio::test]
async fn objects_that_defaults_in_code_leave_alone_are_served_as_they_are_stored() {
    let f = fixture().await;
    let kind = &f.namespaces.resource().kind;
    let stored = |labels: &str, rest: &str| {
        format!(
            r#"{{"kind":"Namespace","apiVersion":"v1","metadata":{{"name":"a"{labels}}},"spec":{{{rest}}},"status":{{}}}}"#
        )
    };
    let label = r#","labels":{"kubernetes.io/metadata.name":"a"}"#;
    let other = r#","labels":{"kubernetes.io/metadata.name":"b"}"#;
    assert!(is_recognized(kind, stored(label, "").as_bytes()));
    assert!(
        !is_recognized(kind, stored("", "").as_bytes()),
        "it is put in"
    );
    assert!(
        !is_recognized(kind, stored(other, "").as_bytes()),
        "it is changed"
    );
    assert!(
        !is_recognized(kind, stored(label, r#""x":1"#).as_bytes()),
        "it is removed"
    );
    assert!(!is_recognized(
        kind,
        stored(label, r#""finalizers":5"#).as_bytes()
    ));
}

/// A strategy that only validates.
struct GadgetRules;

impl crate::Strategy<Gadget> for GadgetRules {
    const HAS_DEFAULTS: bool = false;

    fn default(&self, _object: &mut Gadget) {
        unreachable!("these rules have no defaults");
    }
    fn validate(&self, _ctx: &RequestContext, object: &Gadget) -> Vec<FieldError> {
        let path = FieldPath::new("note");
        let note = object.note.as_deref().filter(|note| *note == "bad");
        note.map(|note| FieldError::invalid(&path, note, "must be good"))
            .into_iter()
            .collect()
    }
}

#[tokio::test]
async fn objects_of_rules_that_only_judge_are_served_as_they_are_stored() {
    let mut builder = with_namespaces(Memory::new());
    builder.kind::<Gadget>();
    builder.strategy::<Gadget>(GadgetRules);
    let registry = builder.build().unwrap();
    registry.start().await.unwrap();
    let gadgets = registry
        .endpoint("test.example.com", "v1", "gadgets")
        .unwrap();
    let stored = br#"{"kind":"Gadget","apiVersion":"test.example.com/v1","metadata":{"name":"a"},"note":"x"}"#;
    assert!(is_recognized(&gadgets.resource().kind, stored));

    let create = async |note: &str| {
        let body = json!({"metadata": {"name": note}, "note": note});
        let object = Object::from_value(body).unwrap();
        let (ctx, options) = (RequestContext::default(), CreateOptions::default());
        gadgets.writes().create(&ctx, None, object, &options).await
    };
    create("good").await.unwrap();
    let refused = create("bad").await.unwrap_err();
    assert_eq!(refused.reason, Some(StatusReason::Invalid));
}
