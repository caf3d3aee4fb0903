//! Graceful deletion, what happens to dependents by default, and which response a delete has.

use std::sync::Mutex;

use apiloom_meta::Time;
use apiloom_meta::kind::{Dependents, ObjectDeletion};
use apiloom_storage::{Entry, Layer, Revision, StorageError};

use super::*;

/// A program that runs on a machine until it is stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
struct Task {
    metadata: ObjectMeta,
    stop_seconds: Option<i64>,
    machine: Option<String>,
}

/// The same in the version in which it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
struct AlphaTask {
    metadata: ObjectMeta,
    seconds_to_stop: Option<i64>,
    machine: Option<String>,
}

impl ApiType for Task {}
impl ApiType for AlphaTask {}

fn graceful() -> DeletionRule {
    DeletionRule::Object(ObjectDeletion {
        grace_seconds: Some(30),
        returns_object: true,
        ..ObjectDeletion::default()
    })
}

fn moved(mut value: Value, from: &str, to: &str) -> Value {
    let fields = value.as_object_mut().unwrap();
    if let Some(seconds) = fields.remove(from) {
        fields.insert(to.to_owned(), seconds);
    }
    value
}

resource!(Task, "v1", "Task", "tasks", |def| ResourceDef {
    subresources: Vec::new(),
    deletion: graceful(),
    ..def
});
resource!(AlphaTask, "v1alpha1", "Task", "tasks", |def| ResourceDef {
    storage: true,
    subresources: Vec::new(),
    deletion: graceful(),
    conversion: Some(Conversion {
        hub_version: "v1".into(),
        hub_kind: "Task".into(),
        hub_resource: None,
        method: ConversionMethod::InMemory(InMemoryConversion {
            json: None,
            to_hub: |value| Ok(moved(value, "secondsToStop", "stopSeconds")),
            from_hub: |value| Ok(moved(value, "stopSeconds", "secondsToStop")),
        }),
    }),
    ..def
});

/// A task knows how long it needs; one that does not run is removed at once.
struct TaskRules;

impl Strategy<Task> for TaskRules {
    fn grace_seconds(
        &self,
        _ctx: &RequestContext,
        task: &Task,
        requested: Option<i64>,
    ) -> Option<i64> {
        if task.machine.is_none() {
            return Some(0);
        }
        requested.or(task.stop_seconds)
    }
}

/// What another client does before the store deletes a key, once.
enum Interruption {
    /// The store fails.
    Failure,
    /// The object is removed.
    Removal,
    /// The object is replaced by another one of the same name.
    Replacement,
    /// The object changes in this way.
    Change(fn(&mut Value)),
}

/// A store whose first delete is interrupted.
struct Interrupted {
    store: Arc<Memory>,
    interruption: Mutex<Option<Interruption>>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupted").finish_non_exhaustive()
    }
}

#[async_trait]
impl Layer for Interrupted {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        let interruption = self.interruption.lock().unwrap().take();
        let present = async || -> (Entry, Value) {
            let entry = self.store.get(key).await.unwrap().0.unwrap();
            let value = serde_json::from_slice(&entry.value).unwrap();
            (entry, value)
        };
        let put = async |entry: Entry, value: Value| {
            let bytes = value.to_string().into();
            let updated = self.store.update_if(key, entry.revision, bytes, None);
            updated.await.unwrap();
        };
        match interruption {
            None => {}
            Some(Interruption::Failure) => return Err(StorageError::Unavailable("gone".into())),
            Some(Interruption::Removal) => {
                self.store.delete_if(key, expected).await.unwrap();
            }
            Some(Interruption::Replacement) => {
                let (entry, mut value) = present().await;
                value["metadata"]["uid"] = json!("another");
                put(entry, value).await;
            }
            Some(Interruption::Change(change)) => {
                let (entry, mut value) = present().await;
                change(&mut value);
                put(entry, value).await;
            }
        }
        self.store.delete_if(key, expected).await
    }
}

struct Tasks {
    fixture: Fixture,
    tasks: Arc<Endpoint>,
    alpha: Arc<Endpoint>,
}

async fn tasks() -> Tasks {
    interrupted(None).await
}

async fn interrupted(interruption: Option<Interruption>) -> Tasks {
    let store = Memory::new();
    let mut builder = builder_over(Arc::new(Interrupted {
        store: Arc::clone(&store),
        interruption: Mutex::new(interruption),
    }));
    builder.kind::<Task>();
    builder.kind::<AlphaTask>();
    builder.strategy::<Task>(TaskRules);
    let fixture = started(builder, store).await;
    let endpoint = |version: &str| fixture.registry.endpoint(GROUP, version, "tasks").unwrap();
    let (tasks, alpha) = (endpoint("v1"), endpoint("v1alpha1"));
    Tasks {
        fixture,
        tasks,
        alpha,
    }
}

fn seconds(seconds: i64) -> DeleteOptions {
    DeleteOptions {
        grace_period_seconds: Some(seconds),
        ..DeleteOptions::default()
    }
}

impl Tasks {
    async fn create(&self, task: Value) -> Object {
        let options = CreateOptions::default();
        let written = self
            .tasks
            .writes()
            .create(&self.fixture.ctx, NS, object(task), &options);
        written.await.unwrap().object
    }
    /// A task that runs.
    async fn running(&self) -> Object {
        self.create(json!({"metadata": {"name": "a"}, "machine": "m"}))
            .await
    }
    async fn delete(&self, options: &DeleteOptions) -> Result<DeleteResult, ApiError> {
        let writes = self.tasks.writes();
        writes.delete(&self.fixture.ctx, NS, "a", options).await
    }
    /// The object of a delete after which it stays.
    async fn pending(&self, options: &DeleteOptions) -> Object {
        match self.delete(options).await.unwrap() {
            DeleteResult::Pending(object) => object,
            other => panic!("not pending: {other:?}"),
        }
    }
    async fn get(&self) -> Option<Object> {
        let options = GetOptions::default();
        let got = self.tasks.reads().get(&self.fixture.ctx, NS, "a", &options);
        got.await.ok().map(|document| decoded(&document))
    }
}

/// Seconds from now to the deletionTimestamp, and the grace period. A second may pass meanwhile.
#[track_caller]
fn check_grace(object: &Object, left: i64, grace: i64) {
    let end: Time = object.meta_str("deletionTimestamp").parse().unwrap();
    let end = end.unix_seconds() - Time::now().unix_seconds();
    assert!((left - 5..=left).contains(&end), "{end} s are left");
    assert_eq!(at(object, "/metadata/deletionGracePeriodSeconds"), grace);
}

#[tokio::test]
async fn a_first_delete_gives_time_and_later_ones_can_only_shorten_it() {
    let f = tasks().await;
    let created = f.running().await;
    let marked = f.pending(&DeleteOptions::default()).await;
    check_grace(&marked, 30, 30);
    assert_eq!(at(&marked, "/metadata/generation"), 2);
    assert_ne!(marked.resource_version(), created.resource_version());
    assert_eq!(f.get().await.unwrap(), marked);
    let before = f.fixture.revision().await;
    for again in [DeleteOptions::default(), seconds(30), seconds(31)] {
        assert_eq!(f.pending(&again).await, marked);
    }
    assert_eq!(f.fixture.revision().await, before, "nothing is written");
    let shorter = f.pending(&seconds(10)).await;
    check_grace(&shorter, 10, 10);
    assert_eq!(at(&shorter, "/metadata/generation"), 2);
    // A negative period is one second.
    let shortest = f.pending(&seconds(-3)).await;
    check_grace(&shortest, 1, 1);
    let DeleteResult::LastState(last) = f.delete(&seconds(0)).await.unwrap() else {
        panic!("it is removed")
    };
    check_grace(&last, 0, 0);
    assert!(f.get().await.is_none());
}

#[tokio::test]
async fn the_strategy_of_the_hub_decides_in_every_version() {
    let f = tasks().await;
    let delete = async |endpoint: &Endpoint, task: Value, options: &DeleteOptions| {
        f.create(task).await;
        let writes = endpoint.writes();
        let deleted = writes.delete(&f.fixture.ctx, NS, "a", options).await;
        if f.get().await.is_some() {
            f.delete(&seconds(0)).await.unwrap();
        }
        deleted.unwrap()
    };
    let own = json!({"metadata": {"name": "a"}, "machine": "m", "stopSeconds": 50});
    for endpoint in [&f.tasks, &f.alpha] {
        let none = DeleteOptions::default();
        match delete(endpoint, own.clone(), &none).await {
            DeleteResult::Pending(task) => check_grace(&task, 50, 50),
            other => panic!("{other:?}"),
        }
        match delete(endpoint, own.clone(), &seconds(60)).await {
            DeleteResult::Pending(task) => check_grace(&task, 60, 60),
            other => panic!("{other:?}"),
        }
        let idle = json!({"metadata": {"name": "a"}});
        let removed = delete(endpoint, idle, &seconds(60)).await;
        assert!(matches!(removed, DeleteResult::LastState(_)), "{removed:?}");
    }
}

#[tokio::test]
async fn a_period_of_zero_is_shown_before_the_object_is_removed() {
    let f = tasks().await;
    let created = f.running().await;
    let options = ListOptions {
        resource_version: created.resource_version().to_owned(),
        send_initial_events: Some(false),
        ..ListOptions::default()
    };
    let mut events = f
        .tasks
        .reads()
        .watch(&f.fixture.ctx, NS, &options)
        .await
        .unwrap();
    // The precondition holds for the first of the two writes.
    let held = DeleteOptions {
        preconditions: Preconditions {
            uid: Some(created.uid().to_owned()),
            resource_version: Some(created.resource_version().to_owned()),
        },
        ..seconds(0)
    };
    assert!(matches!(
        f.delete(&held).await.unwrap(),
        DeleteResult::LastState(_)
    ));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let event = events.next().await.unwrap().unwrap();
        seen.push((event.kind, decoded(&event.object)));
    }
    assert_eq!(seen[0].0, WatchEventKind::Modified);
    assert_eq!(seen[1].0, WatchEventKind::Deleted);
    for (_, object) in &seen {
        check_grace(object, 0, 0);
        assert_eq!(at(object, "/metadata/generation"), 2);
    }
    assert_ne!(seen[0].1.resource_version(), seen[1].1.resource_version());
}

#[tokio::test]
async fn finalizers_hold_an_object_after_its_grace_period() {
    let f = tasks().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}, "machine": "m"}))
        .await;
    check_grace(&f.pending(&DeleteOptions::default()).await, 30, 30);
    // While a grace period runs, the removal of the finalizers does not remove the object, and a policy sets none.
    let orphan = DeleteOptions {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteOptions::default()
    };
    assert_eq!(f.pending(&orphan).await.finalizers(), ["example.com/x"]);
    let held = f.pending(&seconds(0)).await;
    check_grace(&held, 0, 0);
    assert_eq!(held.finalizers(), ["example.com/x"]);
    assert_eq!(f.pending(&seconds(0)).await, held);
    // Now a policy does, as for kinds without grace periods.
    assert_eq!(
        f.pending(&orphan).await.finalizers(),
        ["example.com/x", "orphan"]
    );
}

#[tokio::test]
async fn an_object_stays_without_finalizers_while_its_grace_period_runs() {
    let f = tasks().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}, "machine": "m"}))
        .await;
    f.pending(&DeleteOptions::default()).await;
    let patch = apiloom_meta::patch::Patch::parse_merge(br#"{"metadata": {"finalizers": null}}"#);
    let options = PatchOptions::default();
    let writes = f.tasks.writes();
    let patch = patch.unwrap();
    let freed = writes.patch(
        WriteRequest::new(&f.fixture.ctx, NS, "a").with(&options),
        &patch,
    );
    check_grace(&freed.await.unwrap().object, 30, 30);
    assert!(f.get().await.is_some());
}

#[tokio::test]
async fn a_dry_run_shows_the_grace_period_and_changes_nothing() {
    let f = tasks().await;
    let created = f.running().await;
    let dry = |options: DeleteOptions| DeleteOptions {
        dry_run: true,
        ..options
    };
    check_grace(&f.pending(&dry(seconds(20))).await, 20, 20);
    let DeleteResult::LastState(last) = f.delete(&dry(seconds(0))).await.unwrap() else {
        panic!("it would be removed")
    };
    check_grace(&last, 0, 0);
    assert_eq!(last.resource_version(), created.resource_version());
    assert_eq!(f.get().await.unwrap(), created);
}

#[tokio::test]
async fn a_failed_removal_is_made_up_for_by_the_next_delete() {
    let f = interrupted(Some(Interruption::Failure)).await;
    f.running().await;
    f.delete(&seconds(0)).await.unwrap_err();
    check_grace(&f.get().await.unwrap(), 0, 0);
    // With any period: it is over.
    let removed = f.delete(&seconds(30)).await.unwrap();
    assert!(matches!(removed, DeleteResult::LastState(_)));
    assert!(f.get().await.is_none());
}

#[tokio::test]
async fn other_clients_may_come_between_the_two_writes() {
    let check = async |interruption: Interruption, stays: Option<&str>| {
        let f = interrupted(Some(interruption)).await;
        let created = f.running().await;
        let removed = f.delete(&seconds(0)).await.unwrap();
        match (removed, stays) {
            (DeleteResult::LastState(last), None) => assert_eq!(last.uid(), created.uid()),
            (DeleteResult::LastState(last), Some("another")) => {
                assert_eq!(last.uid(), created.uid());
                assert_eq!(f.get().await.unwrap().uid(), "another");
                return;
            }
            (DeleteResult::Pending(last), Some(finalizer)) => {
                assert_eq!(last.finalizers(), [finalizer]);
            }
            (other, _) => panic!("{other:?}"),
        }
        assert_eq!(f.get().await.is_some(), stays.is_some());
    };
    check(Interruption::Removal, None).await;
    check(Interruption::Replacement, Some("another")).await;
    let label = |value: &mut Value| value["metadata"]["labels"] = json!({"a": "b"});
    check(Interruption::Change(label), None).await;
    let policy =
        |value: &mut Value| value["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    check(Interruption::Change(policy), Some("foregroundDeletion")).await;
}

#[tokio::test]
async fn a_collection_gets_its_grace_period_object_by_object() {
    let f = tasks().await;
    for (name, stop) in [("a", 20), ("b", 40)] {
        f.create(json!({"metadata": {"name": name}, "machine": "m", "stopSeconds": stop}))
            .await;
    }
    f.create(json!({"metadata": {"name": "idle"}})).await;
    let all = ListOptions::default();
    let delete = async |options: DeleteOptions| {
        let deleted = f
            .tasks
            .delete_collection(&f.fixture.ctx, NS, &all, &options);
        names(&deleted.await.unwrap())
    };
    assert_eq!(delete(DeleteOptions::default()).await, ["a", "b", "idle"]);
    check_grace(&f.get().await.unwrap(), 20, 20);
    assert_eq!(delete(seconds(30)).await, ["a", "b"]);
    check_grace(&f.get().await.unwrap(), 20, 20);
    assert_eq!(delete(seconds(0)).await, ["a", "b"]);
    assert_eq!(delete(seconds(0)).await, [""; 0]);
}

/// A kind with this name whose objects are deleted in this way.
macro_rules! kind {
    ($name:ident, $kind:literal, $plural:literal, $deletion:expr) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        struct $name {
            metadata: ObjectMeta,
        }
        impl ApiType for $name {}
        resource!($name, "v1", $kind, $plural, |def| ResourceDef {
            storage: true,
            subresources: Vec::new(),
            deletion: DeletionRule::Object($deletion),
            ..def
        });
    };
}

kind!(
    Owner,
    "Owner",
    "owners",
    ObjectDeletion {
        dependents: Dependents::Orphan,
        ..ObjectDeletion::default()
    }
);
kind!(
    Leaf,
    "Leaf",
    "leaves",
    ObjectDeletion {
        dependents: Dependents::Unsupported,
        returns_object: true,
        ..ObjectDeletion::default()
    }
);

#[tokio::test]
async fn a_kind_decides_about_dependents_if_nothing_else_does() {
    let store = Memory::new();
    let mut builder = builder(&store);
    builder.kind::<Owner>();
    builder.kind::<Leaf>();
    let f = started(builder, store).await;
    let endpoint = |plural: &str| f.registry.endpoint(GROUP, "v1", plural).unwrap();
    let (owners, leaves) = (endpoint("owners"), endpoint("leaves"));
    let delete = async |endpoint: &Endpoint, finalizers: Value, options: DeleteOptions| {
        let object = object(json!({"metadata": {"name": "a", "finalizers": finalizers}}));
        let writes = endpoint.writes();
        let create = CreateOptions::default();
        writes.create(&f.ctx, NS, object, &create).await.unwrap();
        let deleted = writes.delete(&f.ctx, NS, "a", &options).await.unwrap();
        if let DeleteResult::Pending(object) = &deleted {
            let finalizers = object.finalizers().join(" ");
            let patch = br#"{"metadata": {"finalizers": null}}"#;
            let patch = apiloom_meta::patch::Patch::parse_merge(patch).unwrap();
            let options = PatchOptions::default();
            let freed = writes.patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch);
            freed.await.unwrap();
            return finalizers;
        }
        match deleted {
            DeleteResult::Gone(_) => "status".to_owned(),
            _ => "object".to_owned(),
        }
    };
    let policy = |policy| DeleteOptions {
        propagation_policy: Some(policy),
        ..DeleteOptions::default()
    };
    let orphan = |orphan| DeleteOptions {
        orphan_dependents: Some(orphan),
        ..DeleteOptions::default()
    };
    let none = DeleteOptions::default;
    for (finalizers, options, expected) in [
        (json!([]), none(), "orphan"),
        (json!(["example.com/x"]), none(), "example.com/x orphan"),
        (json!(["foregroundDeletion"]), none(), "foregroundDeletion"),
        (json!([]), policy(PropagationPolicy::Background), "status"),
        (
            json!([]),
            policy(PropagationPolicy::Foreground),
            "foregroundDeletion",
        ),
        (json!([]), orphan(false), "status"),
        (json!([]), orphan(true), "orphan"),
    ] {
        let what = format!("{finalizers} {options:?}");
        assert_eq!(
            delete(&owners, finalizers, options).await,
            expected,
            "{what}"
        );
    }
    for options in [
        none(),
        policy(PropagationPolicy::Foreground),
        policy(PropagationPolicy::Orphan),
        orphan(true),
    ] {
        assert_eq!(delete(&leaves, json!([]), options).await, "object");
    }
    let held = json!(["example.com/x", "orphan"]);
    assert_eq!(delete(&leaves, held, none()).await, "example.com/x");
}

resource!(AgedTask, "v1beta1", "Task", "tasks", |def| ResourceDef {
    subresources: Vec::new(),
    ..def
});
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct AgedTask {
    metadata: ObjectMeta,
}
impl ApiType for AgedTask {}

#[test]
fn all_versions_of_a_kind_are_deleted_in_the_same_way() {
    let mut builder = with_namespaces(Memory::new());
    builder.kind::<Task>();
    builder.kind::<AlphaTask>();
    builder.kind::<AgedTask>();
    let problems = builder.build().unwrap_err().join("\n");
    let expected = "Task of test.example.com/v1 and Task of test.example.com/v1beta1 differ in how objects are deleted";
    assert!(problems.contains(expected), "{problems}");
}
