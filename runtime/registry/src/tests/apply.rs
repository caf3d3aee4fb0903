//! Server-side apply.

use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_storage::Revision;

use super::managed_fields::{by, owners};
use super::*;

impl Fixture {
    async fn apply(
        &self,
        endpoint: &Endpoint,
        manager: &str,
        document: Value,
        force: bool,
    ) -> Result<(Object, bool), ApiError> {
        let (document, options) = (object(document), by(manager));
        let writes = endpoint.writes();
        let document = document.into();
        let request = WriteRequest::new(&self.ctx, NS, "a").with(&options);
        let applied = writes.apply(WriteRequest { force, ..request }, &document);
        let (written, created) = applied.await?;
        Ok((written.object, created))
    }

    async fn apply_widget(&self, manager: &str, spec: Value) -> Result<Object, ApiError> {
        let applied = self.apply(&self.widgets, manager, typed(spec), false).await;
        Ok(applied?.0)
    }
}

/// A document with the type, which apply requires.
fn typed(spec: Value) -> Value {
    json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

fn names_of(owners: &[(String, Value)]) -> Vec<&str> {
    owners.iter().map(|(who, _)| who.as_str()).collect()
}

#[tokio::test]
async fn the_first_apply_creates_and_owns_what_is_applied() {
    let f = fixture().await;
    let (applied, created) = f
        .apply(&f.widgets, "one", typed(json!({"color": "red"})), false)
        .await
        .unwrap();
    assert!(created);
    // Defaults are not applied, so they have no owner.
    assert_eq!(at(&applied, "/spec/size"), 1);
    let fields = json!({"f:spec": {"f:color": {}}});
    assert_eq!(owners(&applied), [("one Apply v1".to_owned(), fields)]);
}

#[tokio::test]
async fn applying_twice_writes_nothing() {
    let f = fixture().await;
    let first = f
        .apply_widget("one", json!({"color": "red", "weight": 2}))
        .await
        .unwrap();
    let revision = f.revision().await;
    let second = f
        .apply_widget("one", json!({"color": "red", "weight": 2}))
        .await
        .unwrap();
    assert_eq!(second, first);
    assert_eq!(f.revision().await, revision);
}

#[tokio::test]
async fn fields_that_are_not_applied_any_more_go() {
    let f = fixture().await;
    f.apply_widget("one", json!({"color": "red", "weight": 2}))
        .await
        .unwrap();
    let after = f
        .apply_widget("one", json!({"color": "red"}))
        .await
        .unwrap();
    assert_eq!(at(&after, "/spec/weight"), Value::Null);
    assert_eq!(at(&after, "/spec/color"), "red");
    assert_eq!(owners(&after)[0].1, json!({"f:spec": {"f:color": {}}}));
    // Dropping all of them drops the manager.
    let mut none = typed(json!({}));
    none.as_object_mut().unwrap().remove("spec");
    let (after, _) = f.apply(&f.widgets, "one", none, false).await.unwrap();
    assert_eq!(at(&after, "/spec/color"), Value::Null);
    assert_eq!(owners(&after), []);
}

#[tokio::test]
async fn a_field_of_two_managers_stays_until_both_drop_it() {
    let f = fixture().await;
    f.apply_widget("one", json!({"color": "red", "weight": 1}))
        .await
        .unwrap();
    let shared = f
        .apply_widget("two", json!({"color": "red", "weight": 1, "size": 5}))
        .await
        .unwrap();
    assert_eq!(names_of(&owners(&shared)), ["one Apply v1", "two Apply v1"]);
    let after = f
        .apply_widget("one", json!({"color": "red"}))
        .await
        .unwrap();
    assert_eq!(at(&after, "/spec/weight"), 1);
    let after = f.apply_widget("two", json!({"size": 5})).await.unwrap();
    assert_eq!(at(&after, "/spec/weight"), Value::Null);
    assert_eq!(at(&after, "/spec/color"), "red");
}

#[tokio::test]
async fn another_value_of_an_owned_field_is_a_conflict() {
    let f = fixture().await;
    f.apply_widget("one", json!({"color": "red"}))
        .await
        .unwrap();
    let error = f
        .apply_widget("two", json!({"color": "blue"}))
        .await
        .unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("Conflict"),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.color"
        )
    );
    let details = error.details.unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("", ""));
    assert_eq!(details.causes.len(), 1);
    assert_eq!(details.causes[0].reason, "FieldManagerConflict");
    assert_eq!(details.causes[0].message, "conflict with \"one\"");
    assert_eq!(details.causes[0].field, ".spec.color");
    // Force takes the field.
    let (forced, _) = f
        .apply(&f.widgets, "two", typed(json!({"color": "blue"})), true)
        .await
        .unwrap();
    assert_eq!(at(&forced, "/spec/color"), "blue");
    assert_eq!(names_of(&owners(&forced)), ["two Apply v1"]);
}

#[tokio::test]
async fn several_conflicts_are_told_by_manager() {
    let f = fixture().await;
    f.apply_widget("one", json!({"color": "red", "weight": 1}))
        .await
        .unwrap();
    f.merge("a", json!({"spec": {"size": 9}})).await.unwrap();
    let error = f
        .apply_widget("two", json!({"color": "blue", "weight": 2, "size": 3}))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.weight\n\
         conflicts with \"unknown\" using test.example.com/v1:\n- .spec.size"
    );
}

#[tokio::test]
async fn a_manager_may_apply_in_another_version() {
    let f = fixture().await;
    f.apply_widget("one", json!({"color": "red", "weight": 1}))
        .await
        .unwrap();
    let alpha = json!({"apiVersion": "test.example.com/v1alpha1", "kind": "Widget",
        "metadata": {"name": "a"}, "spec": {"colour": "red"}});
    // The weight was applied in v1 and is not applied in v1alpha1.
    let (after, _) = f
        .apply(&f.alpha, "one", alpha.clone(), false)
        .await
        .unwrap();
    assert_eq!(at(&after, "/spec/weight"), Value::Null);
    let fields = json!({"f:spec": {"f:colour": {}}});
    assert_eq!(owners(&after), [("one Apply v1alpha1".to_owned(), fields)]);
    let error = f
        .apply_widget("two", json!({"color": "blue"}))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.colour"
    );
    let mut other = alpha;
    other["spec"]["colour"] = json!("blue");
    let error = f.apply(&f.alpha, "two", other, false).await.unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.colour"
    );
}

#[tokio::test]
async fn objects_of_before_the_first_apply_keep_what_they_had() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red", "weight": 1})))
        .await
        .unwrap();
    let mut cleared = f.get("a").await.unwrap();
    cleared
        .meta_mut()
        .insert("managedFields".to_owned(), json!([{}]));
    f.put("a", cleared.into_value()).await.unwrap();
    let error = f
        .apply_widget("one", json!({"color": "blue"}))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using test.example.com/v1: .spec.color"
    );
    let after = f
        .apply_widget("one", json!({"color": "red"}))
        .await
        .unwrap();
    assert_eq!(
        names_of(&owners(&after)),
        ["one Apply v1", "before-first-apply Update v1"]
    );
    assert_eq!(at(&after, "/metadata/managedFields/0/time"), Value::Null);
}

#[tokio::test]
async fn kubectl_takes_over_what_it_applied_on_the_client() {
    const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let f = fixture().await;
    let last = typed(json!({"color": "red", "weight": 1})).to_string() + "\n";
    let mut document = widget("a", json!({"color": "red", "weight": 1}));
    document["metadata"]["annotations"] = json!({LAST_APPLIED: last});
    f.create(document).await.unwrap();
    let error = f
        .apply_widget("other", json!({"color": "blue"}))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
    let after = f
        .apply_widget("kubectl", json!({"color": "blue"}))
        .await
        .unwrap();
    assert_eq!(at(&after, "/spec/color"), "blue");
    let applied = after.annotation(LAST_APPLIED).unwrap();
    let applied: Value = serde_json::from_str(applied).unwrap();
    assert_eq!(applied, typed(json!({"color": "blue"})));
    // A value that another client has changed since is a conflict.
    f.merge("a", json!({"spec": {"weight": 7}})).await.unwrap();
    let error = f
        .apply_widget("kubectl", json!({"weight": 3}))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
}

/// Counts the writes that it admits.
struct Counter(Arc<AtomicUsize>);

#[async_trait]
impl Admission for Counter {
    fn name(&self) -> &'static str {
        "Counter"
    }
    async fn validate(&self, _request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// An attempt with the cached object is not repeated if the store has the same object.
#[tokio::test]
async fn an_apply_that_changes_nothing_is_admitted_once() {
    let admitted = Arc::new(AtomicUsize::new(0));
    let store = Memory::new();
    let mut builder = builder(&store);
    let counter = Arc::clone(&admitted);
    builder.admission(move |_| Box::new(Counter(counter)));
    let f = started(builder, store).await;
    let written = f.apply_widget("one", json!({"color": "red"})).await;
    f.cached().await;
    admitted.store(0, Ordering::SeqCst);
    let again = f.apply_widget("one", json!({"color": "red"})).await;
    assert_eq!(again.unwrap(), written.unwrap());
    assert_eq!(admitted.swap(0, Ordering::SeqCst), 1);
    // Another server has written other bytes of the same object, which are to be replaced.
    let key = "/registry/test.example.com/widgets/default/a";
    let (mut stored, revision) = f.stored(key).await.unwrap();
    stored["metadata"]["bogus"] = json!(1);
    let bytes = stored.to_string().into_bytes().into();
    let written = f
        .store
        .update_if(key, Revision(revision), bytes, None)
        .await;
    written.unwrap();
    f.cached().await;
    let again = f.apply_widget("one", json!({"color": "red"})).await;
    again.unwrap();
    assert_eq!(
        f.stored(key).await.unwrap().0["metadata"]["bogus"],
        Value::Null
    );
}

#[tokio::test]
async fn documents_that_do_not_fit_are_refused() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let mut wrong_kind = typed(json!({}));
    wrong_kind["kind"] = json!("Gadget");
    let mut managed = typed(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    let mut renamed = typed(json!({}));
    renamed["metadata"]["name"] = json!("b");
    let mut uid = typed(json!({}));
    uid["metadata"]["uid"] = json!("zzz");
    let mut stale = typed(json!({"weight": 2}));
    stale["metadata"]["resourceVersion"] = json!("1");
    for (document, reason, message) in [
        (
            wrong_kind,
            Some("BadRequest"),
            "invalid object type: test.example.com/v1, Kind=Gadget",
        ),
        (
            managed,
            Some("BadRequest"),
            "metadata.managedFields must be nil",
        ),
        (
            typed(json!({"bogus": 1})),
            None,
            "failed to create typed patch object (/a; test.example.com/v1, Kind=Widget): .spec.bogus: field not declared in schema",
        ),
        (
            renamed,
            Some("BadRequest"),
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            uid,
            Some("Invalid"),
            "Widget.test.example.com \"a\" is invalid: metadata.uid: Invalid value: \"zzz\": field is immutable",
        ),
        (
            stale,
            Some("Conflict"),
            "Operation cannot be fulfilled on widgets.test.example.com \"a\": the object has been modified; please apply your changes to the latest version and try again",
        ),
    ] {
        let error = f
            .apply(&f.widgets, "one", document, false)
            .await
            .unwrap_err();
        assert_eq!(shown(&error), (reason, message));
    }
}

#[tokio::test]
async fn the_uid_of_an_object_that_does_not_exist_is_a_conflict() {
    let f = fixture().await;
    let mut document = typed(json!({}));
    document["metadata"]["uid"] = json!("zzz");
    let error = f
        .apply(&f.widgets, "one", document, false)
        .await
        .unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("Conflict"),
            "Operation cannot be fulfilled on widgets.test.example.com \"a\": uid mismatch: the provided object specified uid zzz, and no existing object was found"
        )
    );
}

#[tokio::test]
async fn status_is_applied_by_its_path_alone() {
    let f = fixture().await;
    let mut both = typed(json!({"color": "red"}));
    both["status"] = json!({"ready": true});
    let (applied, _) = f
        .apply(&f.widgets, "one", both.clone(), false)
        .await
        .unwrap();
    assert_eq!(at(&applied, "/status"), Value::Null);
    assert_eq!(owners(&applied)[0].1, json!({"f:spec": {"f:color": {}}}));
    let (document, options) = (object(both).into(), by("one"));
    let writes = f.widgets.writes();
    let applied = writes.apply(
        WriteRequest::new(&f.ctx, NS, "a")
            .at("status")
            .with(&options),
        &document,
    );
    let (applied, created) = applied.await.unwrap();
    assert!(!created);
    assert_eq!(at(&applied, "/status/ready"), true);
    assert_eq!(
        owners(&applied),
        [
            (
                "one Apply v1".to_owned(),
                json!({"f:spec": {"f:color": {}}})
            ),
            (
                "one Apply v1 status".to_owned(),
                json!({"f:status": {"f:ready": {}}})
            ),
        ]
    );
}

#[tokio::test]
async fn a_dry_run_tells_the_result_and_writes_nothing() {
    let f = fixture().await;
    let options = CreateOptions {
        dry_run: true,
        ..by("one")
    };
    let document = object(typed(json!({"color": "red"}))).into();
    let writes = f.widgets.writes();
    let dry = writes.apply(WriteRequest::new(&f.ctx, NS, "a").with(&options), &document);
    let (dry, created) = dry.await.unwrap();
    assert!(created);
    assert_eq!(names_of(&owners(&dry)), ["one Apply v1"]);
    assert!(f.get("a").await.is_err());
}
