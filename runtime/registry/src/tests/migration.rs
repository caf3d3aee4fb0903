//! Migration of stored objects to the form in which they are stored now.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_storage::{
    Entry, EventKind, Layer, ListRequest, Page, Revision, StorageError, WatchItem, WatchStart,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::emulation::{New, ages, ages_over};
use super::*;

const OLD: &str = "test.example.com/v1beta1";
const NEW: &str = "test.example.com/v1";

fn key(name: &str) -> String {
    format!("/registry/{GROUP}/ages/default/{name}")
}

async fn running(builder: RegistryBuilder) -> Arc<Registry> {
    let registry = Arc::new(builder.build().unwrap());
    registry.start().await.unwrap();
    registry
}

/// Creates objects with a server of the former release, which stores them in the former version.
async fn create_old(store: &Arc<Memory>, names: impl IntoIterator<Item = String>) {
    let registry = running(ages(store, &["1.2"])).await;
    let endpoint = registry.endpoint(GROUP, "v1beta1", "ages").unwrap();
    let ctx = RequestContext::default();
    for name in names {
        let document = object(json!({"metadata": {"name": name}, "age": 7}));
        let options = CreateOptions::default();
        let created = endpoint.writes().create(&ctx, NS, document, &options);
        created.await.unwrap();
    }
}

async fn ages_of(registry: &Registry) -> Vec<Object> {
    let endpoint = registry.endpoint(GROUP, "v1", "ages").unwrap();
    let (ctx, options) = (RequestContext::default(), ListOptions::default());
    items(&endpoint.reads().list(&ctx, NS, &options).await.unwrap())
}

/// The `apiVersion` of every stored object.
async fn stored_versions(store: &Arc<Memory>) -> Vec<String> {
    let prefix = format!("/registry/{GROUP}/ages/");
    let request = ListRequest {
        prefix,
        ..ListRequest::default()
    };
    let page = store.list(request).await.unwrap();
    let version = |entry: &Entry| {
        let value: Value = serde_json::from_slice(&entry.value).unwrap();
        value["apiVersion"].as_str().unwrap().to_owned()
    };
    page.entries.iter().map(version).collect()
}

fn only_ages() -> MigrationOptions {
    MigrationOptions {
        resources: vec!["ages".into()]
            .into_iter()
            .map(|plural: String| apiloom_meta::GroupResource::new(GROUP, &plural))
            .collect(),
        ..MigrationOptions::default()
    }
}

/// Runs a migration; returns its last report on each resource.
async fn migrate(
    registry: &Arc<Registry>,
    options: MigrationOptions,
) -> Result<Vec<MigrationReport>, ApiError> {
    let mut migration = registry.migrate(options)?;
    let mut reports = Vec::new();
    while let Some(report) = migration.next().await {
        let report = report?;
        if report.is_complete {
            reports.push(report);
        }
    }
    Ok(reports)
}

fn numbers(reports: &[MigrationReport]) -> Vec<(String, u64, u64, u64)> {
    let of = |report: &MigrationReport| {
        let MigrationReport {
            objects,
            rewritten,
            failed,
            ..
        } = *report;
        (report.resource.to_string(), objects, rewritten, failed)
    };
    reports.iter().map(of).collect()
}

#[tokio::test]
async fn stale_objects_are_rewritten_and_not_changed() {
    let store = Memory::new();
    // More than two pages.
    create_old(&store, (0..150).map(|i| format!("a{i:03}"))).await;
    let registry = running(ages(&store, &[])).await;
    let before = ages_of(&registry).await;
    assert_eq!(stored_versions(&store).await, vec![OLD; 150]);

    let dry_run = MigrationOptions {
        dry_run: true,
        ..only_ages()
    };
    let revision = store.current_revision().await.unwrap();
    let counted = migrate(&registry, dry_run).await.unwrap();
    let ages = "ages.test.example.com".to_owned();
    assert_eq!(numbers(&counted), [(ages.clone(), 150, 150, 0)]);
    assert_eq!(counted[0].storage_version, NEW);
    assert_eq!(counted[0].stored_versions, [(OLD.to_owned(), 150)].into());
    assert_eq!(store.current_revision().await.unwrap(), revision);

    let endpoint = registry.endpoint(GROUP, "v1", "ages").unwrap();
    let ctx = RequestContext::default();
    let options = ListOptions {
        resource_version: revision.to_string(),
        ..ListOptions::default()
    };
    let mut events = endpoint.reads().watch(&ctx, NS, &options).await.unwrap();
    let all = migrate(&registry, MigrationOptions::default())
        .await
        .unwrap();
    let namespaces = ("namespaces".to_owned(), 1, 0, 0);
    assert_eq!(numbers(&all), [namespaces, (ages.clone(), 150, 150, 0)]);
    assert_eq!(stored_versions(&store).await, vec![NEW; 150]);
    for (before, after) in before.iter().zip(ages_of(&registry).await) {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!(event.kind, WatchEventKind::Modified);
        let event = decoded(&event.object);
        assert_eq!(event, after);
        let number = |object: &Object| object.resource_version().parse::<u64>().unwrap();
        assert!(number(&after) > number(before));
        let mut expected = before.clone();
        // The default of the version in which it is stored now.
        expected.set_field("planet", Some(json!("earth")));
        expected.set_meta_str("resourceVersion", after.resource_version());
        assert_eq!(after, expected);
        assert_eq!(at(&after, "/years"), 7);
    }

    // A second migration finds nothing, and a server that does not know the former version reads all.
    let again = migrate(&registry, only_ages()).await.unwrap();
    assert_eq!(numbers(&again), [(ages, 150, 0, 0)]);
    assert_eq!(again[0].stored_versions, [(NEW.to_owned(), 150)].into());
    let mut builder = with_namespaces(Arc::clone(&store) as Arc<dyn Storage>);
    builder.kind::<New>();
    let later = running(builder).await;
    assert_eq!(ages_of(&later).await, ages_of(&registry).await);
    let endpoint = later.endpoint(GROUP, "v1", "ages").unwrap();
    let patch = apiloom_meta::patch::Patch::parse_merge(br#"{"years": 8}"#).unwrap();
    let options = PatchOptions::default();
    let writes = endpoint.writes();
    let patched = writes
        .patch(WriteRequest::new(&ctx, NS, "a000").with(&options), &patch)
        .await;
    let patched = patched.unwrap().object;
    // The entry of the former version is dropped: its fields cannot be understood any more.
    let managers = at(&patched, "/metadata/managedFields");
    let versions: Vec<&Value> = managers
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["apiVersion"])
        .collect();
    assert_eq!(versions, [NEW]);
}

#[tokio::test]
async fn an_update_without_a_change_rewrites_a_stale_object_too() {
    let store = Memory::new();
    create_old(&store, ["a".to_owned()]).await;
    let registry = running(ages(&store, &[])).await;
    let endpoint = registry.endpoint(GROUP, "v1beta1", "ages").unwrap();
    let ctx = RequestContext::default();
    let options = GetOptions::default();
    let read = endpoint.reads().get(&ctx, NS, "a", &options).await;
    let read = decoded(&read.unwrap());
    let options = UpdateOptions::default();
    let written = endpoint.writes().update(
        WriteRequest::new(&ctx, NS, "a").with(&options),
        read.clone(),
    );
    let written = written.await.unwrap().0.object;
    assert_ne!(written.resource_version(), read.resource_version());
    assert_eq!(stored_versions(&store).await, [NEW]);
}

/// What happens to objects between their read and their write by a migration.
#[derive(Debug)]
struct Raced {
    store: Arc<Memory>,
    is_armed: AtomicBool,
}

#[async_trait]
impl Layer for Raced {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }

    /// After a list: `changed` is changed by a server of the former release, `current` by one of this release, `gone` is
    /// deleted, and `back` is deleted and created again.
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        let page = self.store.list(request).await?;
        if self.is_armed.swap(false, Ordering::SeqCst) {
            let store = &self.store;
            let document = |version: &str, name: &str, field: &str| {
                json!({"kind": "Age", "apiVersion": version, "metadata": {"name": name, "namespace": "default",
                    "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}, field: 9})
            };
            for (name, version, field) in [("changed", OLD, "age"), ("current", NEW, "years")] {
                let (entry, _) = store.get(&key(name)).await?;
                let value = document(version, name, field).to_string();
                let revision = entry.unwrap().revision;
                store
                    .update_if(&key(name), revision, value.into(), None)
                    .await?;
            }
            for name in ["gone", "back"] {
                let (entry, _) = store.get(&key(name)).await?;
                store.delete_if(&key(name), entry.unwrap().revision).await?;
            }
            let value = document(OLD, "back", "age").to_string();
            store.create(&key("back"), value.into(), None).await?;
        }
        Ok(page)
    }
}

#[tokio::test]
async fn writes_of_others_during_a_migration_are_kept() {
    let store = Memory::new();
    let names = ["back", "changed", "current", "gone", "still"];
    create_old(&store, names.map(str::to_owned)).await;
    let raced = Arc::new(Raced {
        store: Arc::clone(&store),
        is_armed: AtomicBool::new(false),
    });
    let registry = running(ages_over(Arc::clone(&raced) as Arc<dyn Storage>, &[])).await;
    raced.is_armed.store(true, Ordering::SeqCst);
    let reports = migrate(&registry, only_ages()).await.unwrap();
    assert!(!raced.is_armed.load(Ordering::SeqCst));
    // `current` lacks a default, so it is rewritten too.
    let ages = "ages.test.example.com".to_owned();
    assert_eq!(numbers(&reports), [(ages, 4, 4, 0)]);
    let years = |object: &Object| (object.name().to_owned(), at(object, "/years"));
    let expected = [("back", 9), ("changed", 9), ("current", 9), ("still", 7)];
    assert_eq!(
        ages_of(&registry)
            .await
            .iter()
            .map(years)
            .collect::<Vec<_>>(),
        expected.map(|(name, years)| (name.to_owned(), json!(years)))
    );
    assert_eq!(stored_versions(&store).await, [NEW; 4]);
}

#[tokio::test]
async fn objects_that_cannot_be_read_are_reported_and_left() {
    let store = Memory::new();
    create_old(&store, ["a", "z"].map(str::to_owned)).await;
    let removed =
        json!({"kind": "Age", "apiVersion": "test.example.com/v0", "metadata": {"name": "n"}});
    for (name, bytes) in [("damaged", "{".to_owned()), ("n", removed.to_string())] {
        store.create(&key(name), bytes.into(), None).await.unwrap();
    }
    let registry = running(ages(&store, &[])).await;
    let reports = migrate(&registry, only_ages()).await.unwrap();
    let ages = "ages.test.example.com".to_owned();
    assert_eq!(numbers(&reports), [(ages, 4, 2, 2)]);
    let [damaged, unknown] = &reports[0].errors[..] else {
        panic!("{reports:?}");
    };
    assert!(damaged.starts_with(&key("damaged")), "{damaged}");
    assert!(
        unknown.contains("it is a \"Age\" of \"test.example.com/v0\""),
        "{unknown}"
    );
    let (kept, _) = store.get(&key("damaged")).await.unwrap();
    assert_eq!(kept.unwrap().value, "{");
}

#[tokio::test]
async fn one_migration_runs_at_a_time_on_known_resources() {
    let store = Memory::new();
    let registry = running(ages(&store, &[])).await;
    let options = MigrationOptions {
        resources: vec![apiloom_meta::GroupResource::new("", "aegs")],
        ..MigrationOptions::default()
    };
    let error = registry.migrate(options).unwrap_err();
    let text = "no objects of the resource \"aegs\" are stored; there are: namespaces, ages.test.example.com";
    assert_eq!(shown(&error), (Some("BadRequest"), text));
    let first = registry.migrate(only_ages()).unwrap();
    let error = registry.migrate(only_ages()).unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
    drop(first);
    migrate(&registry, only_ages()).await.unwrap();
}

#[tokio::test]
async fn a_migration_ends_when_its_store_does() {
    let store = Memory::new();
    create_old(&store, ["a".to_owned()]).await;
    let registry = running(ages(&store, &[])).await;
    store.close().await;
    let error = migrate(&registry, only_ages()).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::ServerTimeout));
}

/// The migration of other kinds goes on.
#[tokio::test]
async fn a_kind_that_is_changed_or_removed_is_reported() {
    const CHANGED: &str = "the kind was changed or removed during the migration";
    let store = Memory::new();
    create_old(&store, (0..70).map(|i| format!("a{i:03}"))).await;
    let resource = |plural: &str| apiloom_meta::GroupResource::new(GROUP, plural);
    let check = |report: &MigrationReport, name: &str, objects: u64| {
        let of = (&report.resource, report.objects, report.is_complete);
        assert_eq!(of, (&resource(name), objects, true));
        let error = report.errors[0].as_str();
        assert!(error.contains(CHANGED), "{error}");
    };
    let mut builder = ages(&store, &[]);
    builder.kind::<Gadget>();
    builder.kind::<Widget>();
    let registry = running(builder).await;
    let options = MigrationOptions {
        resources: ["ages", "gadgets", "widgets"].map(resource).into(),
        ..MigrationOptions::default()
    };
    let mut migration = registry.migrate(options).unwrap();
    assert!(!migration.next().await.unwrap().unwrap().is_complete);
    let change = CatalogChange::new()
        .kind::<New>()
        .remove(resource("gadgets"));
    registry.change(change).await.unwrap();
    check(&migration.next().await.unwrap().unwrap(), "ages", 64);
    check(&migration.next().await.unwrap().unwrap(), "gadgets", 0);
    let last = migration.next().await.unwrap().unwrap();
    assert_eq!(
        numbers(std::slice::from_ref(&last)),
        [("widgets.test.example.com".to_owned(), 0, 0, 0)]
    );
    assert!(last.is_complete && last.errors.is_empty(), "{last:?}");
    assert!(migration.next().await.is_none());
}

/// A server that emulates a release stores less than it knows; so does one that is older than the objects.
#[tokio::test]
async fn a_server_that_emulates_a_release_does_not_migrate_its_kinds() {
    let store = Memory::new();
    let mut builder = ages(&store, &["1.2"]);
    builder.kind::<Widget>();
    let registry = running(builder).await;
    for options in [only_ages(), MigrationOptions::default()] {
        let error = registry.migrate(options).unwrap_err();
        assert_eq!(error.reason, Some(StatusReason::Conflict));
        let text = "ages.test.example.com cannot be migrated while group test.example.com emulates release 1.2";
        assert!(error.message.starts_with(text), "{}", error.message);
    }
    let other = MigrationOptions {
        resources: vec![apiloom_meta::GroupResource::new("", "namespaces")],
        ..MigrationOptions::default()
    };
    assert_eq!(migrate(&registry, other).await.unwrap().len(), 1);
}

#[tokio::test]
async fn objects_with_fields_that_the_server_does_not_know_are_reported_and_left() {
    let store = Memory::new();
    create_old(&store, ["a".to_owned()]).await;
    let newer = json!({"kind": "Age", "apiVersion": NEW, "years": 3, "months": {"count": 4},
        "metadata": {"name": "newer", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let newer = newer.to_string();
    store
        .create(&key("newer"), newer.clone().into(), None)
        .await
        .unwrap();
    let registry = running(ages(&store, &[])).await;
    for dry_run in [true, false] {
        let options = MigrationOptions {
            dry_run,
            ..only_ages()
        };
        let reports = migrate(&registry, options).await.unwrap();
        let ages = "ages.test.example.com".to_owned();
        assert_eq!(numbers(&reports), [(ages, 2, 1, 1)]);
        let error = &reports[0].errors[0];
        let text = format!(
            "{}: it is stored with an unknown field \"months\"",
            key("newer")
        );
        assert!(error.starts_with(&text), "{error}");
    }
    let (kept, _) = store.get(&key("newer")).await.unwrap();
    assert_eq!(kept.unwrap().value, newer);
}

/// A store that counts the rewrites that run at the same time.
#[derive(Debug)]
struct Busy {
    store: Arc<Memory>,
    running: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Layer for Busy {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        // With paused time this ends when nothing else can run.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let rewritten = self.store.rewrite_if(key, expected, value).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        rewritten
    }
}

#[tokio::test(start_paused = true)]
async fn several_objects_are_rewritten_at_a_time_but_not_all() {
    for (rate, expected) in [
        (None, 16),
        (NonZeroU32::new(200), 4),
        (NonZeroU32::new(10), 1),
    ] {
        let store = Memory::new();
        create_old(&store, (0..40).map(|i| format!("a{i:03}"))).await;
        let busy = Arc::new(Busy {
            store: Arc::clone(&store),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        });
        let registry = running(ages_over(Arc::clone(&busy) as Arc<dyn Storage>, &[])).await;
        let options = MigrationOptions {
            max_writes_per_second: rate,
            ..only_ages()
        };
        let reports = migrate(&registry, options).await.unwrap();
        let ages = "ages.test.example.com".to_owned();
        assert_eq!(numbers(&reports), [(ages, 40, 40, 0)]);
        assert_eq!(busy.most.load(Ordering::SeqCst), expected, "{rate:?}");
        assert_eq!(stored_versions(&store).await, vec![NEW; 40]);
    }
}

struct Fleeting;

impl Strategy<New> for Fleeting {
    fn ttl(&self) -> Option<Duration> {
        Some(Duration::from_secs(3600))
    }
}

#[tokio::test]
async fn an_object_lives_no_longer_because_it_is_migrated() {
    let store = Memory::new();
    let mut builder = ages(&store, &[]);
    builder.strategy::<New>(Fleeting);
    let registry = running(builder).await;
    let prefix = format!("/registry/{GROUP}/ages/");
    let mut events = store.watch(&prefix, WatchStart::Now).await.unwrap();
    let document = json!({"kind": "Age", "apiVersion": OLD, "age": 3, "metadata": {"name": "a", "namespace": "default",
        "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let value = document.to_string().into();
    // Long enough for a migration on a busy machine, and much less than the time of the strategy.
    let ttl = Some(Duration::from_secs(3));
    store.create(&key("a"), value, ttl).await.unwrap();
    let reports = migrate(&registry, only_ages()).await.unwrap();
    assert_eq!(reports[0].rewritten, 1);
    let mut next = async || loop {
        let item = tokio::time::timeout(Duration::from_secs(60), events.next());
        let item = item.await.expect("its time is over").unwrap().unwrap();
        if let WatchItem::Event(event) = item {
            break event;
        }
    };
    assert_eq!(next().await.kind, EventKind::Created);
    assert_eq!(next().await.kind, EventKind::Updated);
    let deleted = next().await;
    assert_eq!(deleted.kind, EventKind::Deleted);
    let (last, _) = deleted.previous.as_ref().unwrap();
    let last: Value = serde_json::from_slice(last).unwrap();
    assert_eq!(last["apiVersion"], NEW);
}

#[tokio::test(start_paused = true)]
async fn writes_are_paced_and_reported_meanwhile() {
    let store = Memory::new();
    create_old(&store, (0..6).map(|i| format!("a{i}"))).await;
    let registry = running(ages(&store, &[])).await;
    let options = MigrationOptions {
        max_writes_per_second: std::num::NonZeroU32::new(2),
        ..only_ages()
    };
    let begun = Instant::now();
    let mut migration = registry.migrate(options).unwrap();
    let mut rewritten = Vec::new();
    while let Some(report) = migration.next().await {
        rewritten.push(report.unwrap().rewritten);
    }
    assert_eq!(rewritten, [2, 4, 6]);
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_millis(2500), "{elapsed:?}");
    assert!(elapsed < Duration::from_millis(3500), "{elapsed:?}");
}
