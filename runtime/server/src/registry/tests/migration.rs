//! Migration of stored objects to the form in which they are stored now.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apiloom_storage::{Entry, Layer, ListRequest, Page, StorageError};
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
    let mut builder = Registry::builder(Arc::clone(&store) as Arc<dyn Storage>);
    builder.kind::<New>();
    let later = running(builder).await;
    assert_eq!(ages_of(&later).await, ages_of(&registry).await);
    let endpoint = later.endpoint(GROUP, "v1", "ages").unwrap();
    let patch = apiloom_meta::patch::Patch::parse_merge(br#"{"years": 8}"#).unwrap();
    let options = PatchOptions::default();
    let writes = endpoint.writes();
    let patched = writes.patch(&ctx, NS, "a000", "", &patch, &options).await;
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
    let written = endpoint
        .writes()
        .update(&ctx, NS, "a", "", read.clone(), &options);
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

#[tokio::test]
async fn a_kind_that_is_changed_ends_a_migration_of_it() {
    let store = Memory::new();
    create_old(&store, (0..70).map(|i| format!("a{i:03}"))).await;
    let registry = running(ages(&store, &[])).await;
    let mut migration = registry.migrate(only_ages()).unwrap();
    assert!(!migration.next().await.unwrap().unwrap().is_complete);
    let change = CatalogChange::new().kind::<New>();
    registry.change(change).await.unwrap();
    let error = migration.next().await.unwrap().unwrap_err();
    assert!(
        error.message.contains("a kind was changed"),
        "{}",
        error.message
    );
    assert!(migration.next().await.is_none());
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
