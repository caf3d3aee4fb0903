//! Encrypted values: comparisons are of plain ones, stale ones are stored again, and those that cannot be decrypted are errors.

use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::GroupResource;
use apiloom_storage::ListRequest;
use bytes::Bytes;

use super::*;
use crate::{Encryption, MigrationOptions, PlainValue, ValueCipher};

/// A cipher for tests: a head with the number of the key, a number that differs each time and the key in the store, and the value with
/// all bits changed. Key 0 stores values as they are.
#[derive(Clone, Debug, Default)]
struct Toy(Arc<ToyState>);

#[derive(Debug, Default)]
struct ToyState {
    /// The number of the key that encrypts; those up to it decrypt.
    key: AtomicU64,
    /// The number of the first key that decrypts.
    first_key: AtomicU64,
    nonce: AtomicU64,
}

const HEAD: &str = "k8s:enc:toy:";

impl Toy {
    fn new(key: u64) -> Self {
        let toy = Self::default();
        toy.use_key(key);
        toy
    }

    fn use_key(&self, key: u64) {
        self.0.key.store(key, Ordering::Relaxed);
    }

    /// Forgets the keys before a number.
    fn forget_before(&self, key: u64) {
        self.0.first_key.store(key, Ordering::Relaxed);
    }

    fn key(&self) -> u64 {
        self.0.key.load(Ordering::Relaxed)
    }
}

fn changed(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

impl Encryption for Toy {
    fn cipher(&self, _: &GroupResource) -> Arc<dyn ValueCipher> {
        Arc::new(self.clone())
    }
}

impl ValueCipher for Toy {
    fn encrypt(&self, key: &str, plain: &Bytes) -> Result<Bytes, String> {
        if self.key() == 0 {
            return Ok(plain.clone());
        }
        let nonce = self.0.nonce.fetch_add(1, Ordering::Relaxed);
        let head = format!("{HEAD}{}:{nonce}:{key}:", self.key());
        Ok([head.as_bytes(), &changed(plain)].concat().into())
    }

    fn decrypt<'s>(&self, key: &str, stored: &'s [u8]) -> Result<PlainValue<'s>, String> {
        let Some(rest) = stored.strip_prefix(HEAD.as_bytes()) else {
            return Ok(PlainValue {
                bytes: stored.into(),
                is_stale: self.key() > 0,
            });
        };
        let mut parts = rest.splitn(4, |byte| *byte == b':');
        let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let (number, _, path) = (text().parse::<u64>().unwrap(), text(), text());
        let known = self.0.first_key.load(Ordering::Relaxed)..=self.key();
        if !known.contains(&number) {
            return Err("no matching key".to_owned());
        }
        if path != key {
            return Err("it was moved".to_owned());
        }
        let sealed = parts.next().unwrap_or_default();
        Ok(PlainValue {
            bytes: changed(sealed).into(),
            is_stale: number != self.key(),
        })
    }

    fn is_identity(&self) -> bool {
        self.key() == 0
    }
}

/// A registry that encrypts, over a store; with or without watch caches.
async fn over(store: &Arc<Memory>, toy: &Toy, is_cached: bool) -> Fixture {
    let mut builder = builder(store);
    builder.encryption(Arc::new(toy.clone()));
    if !is_cached {
        builder.watch_cache(None);
    }
    started(builder, Arc::clone(store)).await
}

/// The bytes of a stored widget.
async fn raw(f: &Fixture, name: &str) -> Bytes {
    let (entry, _) = f.store.get(&key(name)).await.unwrap();
    entry.unwrap().value
}

/// The part of the stored bytes that names the key.
async fn head(f: &Fixture, name: &str) -> String {
    let raw = raw(f, name).await;
    String::from_utf8_lossy(&raw[..HEAD.len() + 2]).into_owned()
}

fn version(object: &Object) -> String {
    at(object, "/metadata/resourceVersion").to_string()
}

fn red() -> Value {
    widget("a", json!({"color": "red"}))
}

#[tokio::test]
async fn a_write_without_a_change_stores_nothing() {
    for is_cached in [true, false] {
        let f = over(&Memory::new(), &Toy::new(1), is_cached).await;
        let created = f.create(red()).await.unwrap();
        let before = raw(&f, "a").await;
        assert_eq!(head(&f, "a").await, "k8s:enc:toy:1:");
        for _ in 0..2 {
            let merged = f.merge("a", json!({})).await.unwrap();
            assert_eq!(version(&merged), version(&created));
            let put = f.put("a", created.clone().into_value()).await.unwrap();
            assert_eq!(version(&put), version(&created));
        }
        assert_eq!(raw(&f, "a").await, before);
        let changed = f.merge("a", json!({"metadata": {"labels": {"a": "b"}}}));
        assert_ne!(version(&changed.await.unwrap()), version(&created));
        assert_ne!(raw(&f, "a").await, before);
    }
}

#[tokio::test]
async fn a_write_without_a_change_stores_a_stale_value_again() {
    for is_cached in [true, false] {
        let (store, toy) = (Memory::new(), Toy::new(0));
        let f = over(&store, &toy, is_cached).await;
        let mut last = f.create(red()).await.unwrap();
        // It is plain at first.
        for number in 1..=3 {
            toy.use_key(number);
            let merged = f.merge("a", json!({})).await.unwrap();
            assert_ne!(version(&merged), version(&last), "it is stored again");
            assert_eq!(head(&f, "a").await, format!("k8s:enc:toy:{number}:"));
            let again = f.merge("a", json!({})).await.unwrap();
            assert_eq!(version(&again), version(&merged), "it is not stale now");
            last = again;
        }
        assert_eq!(at(&f.get("a").await.unwrap(), "/spec/color"), "red");
    }
}

#[tokio::test]
async fn a_dry_run_never_stores_a_stale_value() {
    let (store, toy) = (Memory::new(), Toy::new(1));
    let f = over(&store, &toy, true).await;
    f.create(red()).await.unwrap();
    let before = raw(&f, "a").await;
    toy.use_key(2);
    let options = PatchOptions {
        dry_run: true,
        ..PatchOptions::default()
    };
    let request = WriteRequest::new(&f.ctx, NS, "a").with(&options);
    let patch = apiloom_meta::patch::Patch::parse_merge(b"{}").unwrap();
    f.widgets.writes().patch(request, &patch).await.unwrap();
    assert_eq!(raw(&f, "a").await, before);
}

#[tokio::test]
async fn reads_and_events_show_the_plain_object() {
    for is_cached in [true, false] {
        let f = over(&Memory::new(), &Toy::new(1), is_cached).await;
        let created = f.create(red()).await.unwrap();
        let options = ListOptions {
            resource_version: at(&created, "/metadata/resourceVersion")
                .as_str()
                .unwrap()
                .to_owned(),
            ..ListOptions::default()
        };
        let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
        f.merge("a", json!({"spec": {"color": "blue"}}))
            .await
            .unwrap();
        f.delete("a").await.unwrap();
        for kind in [WatchEventKind::Modified, WatchEventKind::Deleted] {
            let event = events.next().await.unwrap().unwrap();
            assert_eq!(event.kind, kind);
            assert_eq!(at(&decoded(&event.object), "/spec/color"), "blue");
        }
        f.create(red()).await.unwrap();
        let listed = items(&f.list(&ListOptions::default()).await.unwrap());
        assert_eq!(at(&listed[0], "/spec/color"), "red");
    }
}

#[tokio::test]
async fn what_was_stored_with_another_key_is_read_by_a_new_cache() {
    let (store, toy) = (Memory::new(), Toy::new(1));
    over(&store, &toy, true).await.create(red()).await.unwrap();
    toy.use_key(2);
    let f = over(&store, &toy, true).await;
    assert_eq!(at(&f.get("a").await.unwrap(), "/spec/color"), "red");
    assert_eq!(head(&f, "a").await, "k8s:enc:toy:1:");
}

#[tokio::test]
async fn a_value_that_was_moved_is_an_error_of_its_object() {
    for is_cached in [true, false] {
        let (store, toy) = (Memory::new(), Toy::new(1));
        let f = over(&store, &toy, is_cached).await;
        f.create(red()).await.unwrap();
        let moved = raw(&f, "a").await;
        store.create(&key("b"), moved, None).await.unwrap();
        let text = format!(
            "Internal error occurred: unable to transform key {:?}: it was moved",
            key("b")
        );
        let refused = [
            f.get("b").await.unwrap_err(),
            f.merge("b", json!({})).await.unwrap_err(),
            f.delete("b").await.map(|_| ()).unwrap_err(),
            match f.list(&ListOptions::default()).await {
                Err(error) => error,
                Ok(listed) => listed.items.clone().find_map(Result::err).unwrap(),
            },
        ];
        for error in refused {
            assert_eq!(shown(&error), (Some("InternalError"), &*text));
        }
        assert_eq!(at(&f.get("a").await.unwrap(), "/spec/color"), "red");
    }
}

#[tokio::test]
async fn the_cache_reads_again_what_a_new_key_decrypts() {
    let (store, toy) = (Memory::new(), Toy::new(1));
    over(&store, &toy, true).await.create(red()).await.unwrap();
    toy.use_key(2);
    toy.forget_before(2);
    let f = over(&store, &toy, true).await;
    let refused = f.get("a").await.unwrap_err();
    assert!(refused.message.ends_with("no matching key"), "{refused:?}");
    toy.forget_before(0);
    f.registry.refill_unreadable();
    let read = async || loop {
        match f.get("a").await {
            Ok(object) => return object,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let limit = std::time::Duration::from_secs(20);
    let object = tokio::time::timeout(limit, read()).await.unwrap();
    assert_eq!(at(&object, "/spec/color"), "red");
}

#[tokio::test]
async fn a_migration_encrypts_with_the_present_key() {
    let (store, toy) = (Memory::new(), Toy::new(1));
    let f = over(&store, &toy, true).await;
    for name in ["a", "b"] {
        f.create(widget(name, json!({}))).await.unwrap();
    }
    toy.use_key(2);
    f.merge("b", json!({})).await.unwrap();
    let registry = Arc::new(f.registry);
    let resource = GroupResource::new(GROUP, "widgets");
    for rewritten in [1, 0] {
        let options = MigrationOptions {
            resources: vec![resource.clone()],
            ..MigrationOptions::default()
        };
        let mut migration = registry.migrate(options).unwrap();
        let report = migration.next().await.unwrap().unwrap();
        assert_eq!(report.errors, [""; 0]);
        assert_eq!((report.objects, report.rewritten), (2, rewritten));
    }
    let page = store.list(ListRequest {
        prefix: key(""),
        ..ListRequest::default()
    });
    for entry in page.await.unwrap().entries {
        assert!(entry.value.starts_with(b"k8s:enc:toy:2:"), "{entry:?}");
    }
}

#[tokio::test]
async fn without_encryption_encrypted_values_are_refused() {
    let store = Memory::new();
    over(&store, &Toy::new(1), true)
        .await
        .create(red())
        .await
        .unwrap();
    let f = started(builder(&store), Arc::clone(&store)).await;
    let refused = f.get("a").await.unwrap_err();
    let text = "identity transformer tried to read encrypted data";
    assert!(refused.message.ends_with(text), "{refused:?}");
}
