//! The memory of a store: above its objects, and while an unchanged list is read again. One test, because the allocator
//! that it asks counts the memory of the whole process.

use std::alloc::System;

use apiloom_client::cache::{CacheObject, ResourceVersion, Store};
use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Limit of what a store adds to an object.
const BYTES_PER_OBJECT: usize = 250;
const OBJECTS: usize = 100_000;
const PAGE: usize = 500;

/// An object of about 1 KiB.
struct Config {
    namespace: String,
    name: String,
    uid: String,
    version: String,
    data: Vec<u8>,
}

impl CacheObject for Config {
    fn namespace(&self) -> &str {
        &self.namespace
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.version
    }
    fn label(&self, _: &str) -> Option<&str> {
        None
    }
    fn owner_uids(&self) -> Vec<&str> {
        Vec::new()
    }
}

fn config(number: usize) -> Config {
    let config = Config {
        namespace: format!("namespace-{}", number % 100),
        name: format!("config-{number}"),
        uid: format!("0000-{number}"),
        version: (number + 1).to_string(),
        data: vec![7; 1024],
    };
    assert_eq!(config.data.len(), 1024);
    config
}

/// All objects, a page in memory at a time; `at_page` is called when a page is complete.
fn pages(mut at_page: impl FnMut()) -> impl Iterator<Item = Config> {
    (0..OBJECTS / PAGE).flat_map(move |page| {
        let objects: Vec<Config> = (page * PAGE..(page + 1) * PAGE).map(config).collect();
        at_page();
        objects
    })
}

#[test]
fn trap_03_a_store_adds_little_to_its_objects_and_an_unchanged_list_little_more() {
    let start = ALLOCATOR.allocated();
    let mut objects = Vec::with_capacity(OBJECTS);
    objects.extend(pages(|| {}));
    let alone = ALLOCATOR.allocated() - start;
    let page = alone / (OBJECTS / PAGE);
    drop(objects);

    let start = ALLOCATOR.allocated();
    let mut store = Store::new();
    let lister = store.lister();
    store.replace(pages(|| {}), ResourceVersion::new("1"));
    let stored = ALLOCATOR.allocated() - start;
    let added = stored.saturating_sub(alone) / OBJECTS;
    println!("{added} bytes per object above its own; a page has {page} bytes");
    assert!(added <= BYTES_PER_OBJECT, "{added} bytes per object");

    let before = ALLOCATOR.allocated();
    let mut peak = 0;
    let list = pages(|| peak = peak.max(ALLOCATOR.allocated() - before));
    let changes = store.replace(list, ResourceVersion::new("2"));
    println!("{peak} bytes while an unchanged list was read");
    assert!(changes.is_empty());
    assert!(peak <= 2 * page, "{peak} bytes, and a page has {page}");
    assert_eq!(lister.len(), OBJECTS);
}
