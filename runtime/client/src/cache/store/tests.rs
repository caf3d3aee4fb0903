//! The store and its indexes against plain maps and scans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apiloom_meta::kind::SmolStr;
use apiloom_meta::selector::LabelQuery;
use proptest::prelude::*;

use super::*;
use crate::cache::test_object::{ByNode, Picky, Pod, pod};
use crate::cache::{ByLabel, ByOwner, LabelKey};

struct App;
impl LabelKey for App {
    const KEY: &'static str = "app";
}

fn version(text: &str) -> Option<ResourceVersion> {
    ResourceVersion::new(text)
}

fn names(objects: &[Arc<Pod>]) -> Vec<&str> {
    let mut names: Vec<&str> = objects.iter().map(|object| &*object.name).collect();
    names.sort_unstable();
    names
}

/// Changes as text: `+a`, `~a 1->2`, `-a seen`.
fn text(changes: &[Change<Pod>]) -> Vec<String> {
    let text = |change: &Change<Pod>| match change {
        Change::Added(new) => format!("+{}", new.name),
        Change::Updated { old, new } => format!("~{} {}->{}", new.name, old.version, new.version),
        Change::Deleted { last, observed } => {
            format!("-{} {} {observed:?}", last.name, last.version)
        }
    };
    changes.iter().map(text).collect()
}

#[test]
fn changes_are_reported_with_the_objects_before_and_after() {
    let mut store = Store::new();
    let lister = store.lister();
    let changes = store.apply(vec![pod("a", 1).put(), pod("b", 2).put()], version("2"));
    assert_eq!(text(&changes), ["+a", "+b"]);
    let changes = store.apply(
        vec![
            pod("a", 3).put(),
            pod("a", 4).put(),
            Delta::Delete(pod("b", 5)),
        ],
        version("5"),
    );
    assert_eq!(text(&changes), ["~a 1->3", "~a 3->4", "-b 5 Seen"]);
    assert_eq!(names(&lister.list()), ["a"]);
    assert_eq!(lister.resource_version(), version("5"));
    // The same state again, and a deletion of an object that is not there.
    let changes = store.apply(vec![pod("a", 4).put(), Delta::Delete(pod("b", 6))], None);
    assert_eq!(text(&changes), [""; 0]);
    let changes = store.apply(vec![Delta::Forget(ObjectKey::new("default", "a"))], None);
    assert_eq!(text(&changes), ["-a 4 Inferred"]);
    assert!(lister.is_empty());
    assert_eq!(lister.resource_version(), version("5"));
}

#[test]
fn trap_02_another_uid_is_a_deletion_and_an_addition() {
    let mut store = Store::new();
    store.apply(vec![pod("a", 1).uid("first").put()], None);
    let changes = store.apply(vec![pod("a", 7).uid("second").put()], None);
    assert_eq!(text(&changes), ["-a 1 Inferred", "+a"]);
    let changes = store.replace([pod("a", 9).uid("third")], version("9"));
    assert_eq!(text(&changes), ["-a 7 Inferred", "+a"]);
}

#[test]
fn trap_03_a_list_without_changes_keeps_the_objects() {
    let mut store = Store::new();
    let lister = store.lister();
    let pods = || (0..1000_u64).map(|i| pod(&format!("pod-{i}"), i + 1));
    assert_eq!(store.replace(pods(), version("1000")).len(), 1000);
    let before = lister.list();
    assert_eq!(text(&store.replace(pods(), version("2000"))), [""; 0]);
    let after = lister.list();
    assert!(before.iter().zip(&after).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert_eq!(lister.resource_version(), version("2000"));

    let changed = pods().skip(1).chain([pod("new", 2001)]);
    let changed = changed.map(|mut pod| {
        if pod.name == "pod-5" {
            pod.version = "2002".to_owned();
        }
        pod
    });
    let changes = text(&store.replace(changed, version("2002")));
    assert_eq!(changes, ["-pod-0 1 Inferred", "~pod-5 6->2002", "+new"]);
}

/// Every list that a reader takes is one of the two sets that the writer alternates.
#[test]
fn trap_04_readers_see_the_old_set_or_the_new_one() {
    let even = || (0..200_u64).step_by(2).map(|i| pod(&format!("p{i}"), 1));
    let odd = || (1..200_u64).step_by(2).map(|i| pod(&format!("p{i}"), 2));
    let mut store = Store::new();
    store.replace(even(), version("1"));
    let lister = store.lister();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut reads = 0;
                    while !is_done.load(Ordering::Relaxed) || reads == 0 {
                        let (objects, at) = lister.snapshot();
                        let versions: BTreeSet<_> = objects.iter().map(|o| &*o.version).collect();
                        let keys: BTreeSet<_> = objects.iter().map(|o| &*o.name).collect();
                        assert_eq!(versions.len(), 1, "two sets in one list");
                        assert_eq!(keys.len(), 100);
                        let at = at.expect("a version");
                        assert!(versions.contains(at.as_str()), "{at} {versions:?}");
                        assert_eq!(lister.namespace("default").list().len(), 100);
                        reads += 1;
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            store.replace(odd(), version("2"));
            store.replace(even(), version("1"));
        }
        is_done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("no reader panics");
        }
    });
}

#[test]
fn the_last_of_several_states_in_one_list_counts() {
    let mut store = Store::new();
    store.apply(vec![pod("a", 1).put(), pod("b", 1).put()], None);
    // The stored state, a later one, and the stored one again.
    let mut relist = store.begin_relist();
    relist.put(pod("a", 1));
    relist.put(pod("a", 2));
    relist.put(pod("b", 2));
    relist.put(pod("b", 1));
    relist.put(pod("c", 3));
    relist.put(pod("d", 3));
    relist.put(pod("d", 4));
    relist.remove(&ObjectKey::new("default", "c"));
    let changes = store.finish_relist(relist, version("4"));
    assert_eq!(text(&changes), ["~a 1->2", "+d"]);
    assert_eq!(names(&store.lister().list()), ["a", "b", "d"]);
}

#[test]
fn objects_are_found_by_namespace_owner_label_and_selector() {
    let mut store = Store::new();
    let lister = store.lister();
    lister.add_index::<ByOwner>();
    let mut web = pod("web", 1);
    web.labels.insert("app".to_owned(), "web".to_owned());
    web.owners = vec!["o1".to_owned(), "o2".to_owned()];
    let mut other = web.clone();
    other.namespace = "other".to_owned();
    other.owners.clear();
    store.apply(vec![web.put(), other.put(), pod("db", 1).put()], None);
    // This one is filled from the objects that are there.
    lister.add_index::<ByLabel<App>>();

    assert_eq!(names(&lister.namespace("default").list()), ["db", "web"]);
    assert_eq!(lister.namespace("none").list().len(), 0);
    assert!(lister.namespace("other").get("db").is_none());
    let key = SmolStr::new("o2");
    assert_eq!(names(&lister.by_index::<ByOwner>(&key)), ["web"]);
    let key = SmolStr::new("web");
    assert_eq!(
        names(&lister.by_index::<ByLabel<App>>(&key)),
        ["web", "web"]
    );
    let selector = LabelQuery::parse("app=web").expect("a selector");
    assert_eq!(names(&lister.namespace("other").select(&selector)), ["web"]);
    assert_eq!(lister.select(&selector).len(), 2);
    let deleted = ObjectKey::new("other", "web");
    store.apply(vec![Delta::Forget(deleted)], None);
    assert_eq!(names(&lister.by_index::<ByLabel<App>>(&key)), ["web"]);
    assert_eq!(lister.index_len::<ByNamespace>(), Some(1));
}

#[test]
fn a_key_function_that_panics_costs_only_its_row() {
    let mut store = Store::new();
    let lister = store.lister();
    lister.add_index::<Picky>();
    store.apply(vec![pod("bad", 1).put(), pod("web", 2).put()], None);
    assert_eq!(lister.len(), 2);
    assert_eq!(names(&lister.by_index::<Picky>(&3)), ["web"]);
    store.apply(vec![Delta::Delete(pod("bad", 3))], None);
    assert_eq!(names(&lister.list()), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_for_a_version() {
    let mut store = Store::new();
    let lister = store.lister();
    let wanted = version("10").expect("a version");
    let limit = Duration::from_secs(5);
    let error = lister.wait_for(&wanted, limit).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache did not reach resourceVersion 10 within 5s; it is at none"
    );
    let waiting = tokio::spawn({
        let lister = lister.clone();
        let wanted = wanted.clone();
        async move { lister.wait_for(&wanted, limit).await }
    });
    tokio::task::yield_now().await;
    store.apply(vec![pod("a", 9).put()], version("9"));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    store.apply(vec![], version("12"));
    assert_eq!(waiting.await.expect("no panic"), Ok(()));
    // This one cannot be compared.
    let foreign = version("abc").expect("a version");
    assert_eq!(lister.wait_for(&foreign, limit).await, Ok(()));
}

#[derive(Clone, Debug)]
enum Step {
    Put { name: u8, uid: bool, nodes: Vec<u8> },
    Delete(u8),
    Relist(Vec<(u8, Vec<u8>)>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let nodes = || prop::collection::vec(0..6_u8, 0..4);
    let step = prop_oneof![
        6 => (0..40_u8, any::<bool>(), nodes()).prop_map(|(name, uid, nodes)| Step::Put { name, uid, nodes }),
        3 => (0..40_u8).prop_map(Step::Delete),
        1 => prop::collection::vec((0..40_u8, nodes()), 0..30).prop_map(Step::Relist),
    ];
    prop::collection::vec(step, 100)
}

/// What readers must see, as plain data, and the changes that led to it.
#[derive(Default)]
struct Model {
    objects: BTreeMap<String, Pod>,
    version: u64,
}

impl Model {
    fn pod(&mut self, name: u8, uid: &str, nodes: &[u8]) -> Pod {
        self.version += 1;
        let mut pod = pod(&format!("p{name}"), self.version).uid(uid);
        pod.namespace = format!("ns{}", name % 3);
        pod.nodes = nodes.to_vec();
        pod
    }

    fn check(&self, lister: &Lister<Pod>) {
        let stored: BTreeMap<String, Pod> = lister
            .list()
            .iter()
            .map(|object| (object.name.clone(), (**object).clone()))
            .collect();
        assert_eq!(stored, self.objects);
        assert_eq!(lister.len(), self.objects.len());
        let mut used = BTreeSet::new();
        for node in 0..6 {
            let scanned: Vec<&str> = self
                .objects
                .values()
                .filter(|object| object.nodes.contains(&node))
                .map(|object| &*object.name)
                .collect();
            let mut scanned = scanned;
            scanned.sort_unstable();
            let indexed = lister.by_index::<ByNode>(&node);
            assert_eq!(names(&indexed), scanned, "node {node}");
            if !scanned.is_empty() {
                used.insert(node);
            }
        }
        assert_eq!(lister.index_len::<ByNode>(), Some(used.len()), "empty rows");
        for pod in self.objects.values() {
            assert!(lister.get(&pod.namespace, &pod.name).is_some());
        }
    }
}

/// Applies changes to what a reader of changes knows: they must lead from the old state to the new one.
fn follow(known: &mut BTreeMap<String, Pod>, changes: Vec<Change<Pod>>) {
    for change in changes {
        match change {
            Change::Added(new) => {
                let before = known.insert(new.name.clone(), (*new).clone());
                assert_eq!(before, None);
            }
            Change::Updated { old, new } => {
                assert_eq!(old.uid, new.uid);
                let before = known.insert(new.name.clone(), (*new).clone());
                assert_eq!(before.as_ref(), Some(&*old));
            }
            Change::Deleted { last, .. } => {
                assert!(known.remove(&last.name).is_some());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Each case has 100 steps, so that 12,800 are compared with a full scan.
    #[test]
    fn trap_29_indexes_equal_a_scan(steps in steps()) {
        let mut store = Store::new();
        let lister = store.lister();
        lister.add_index::<ByNode>();
        let mut model = Model::default();
        let mut known = BTreeMap::new();
        for step in steps {
            let changes = match step {
                Step::Put { name, uid, nodes } => {
                    let pod = model.pod(name, if uid { "u1" } else { "u2" }, &nodes);
                    model.objects.insert(pod.name.clone(), pod.clone());
                    store.apply(vec![pod.put()], None)
                }
                Step::Delete(name) => {
                    let pod = model.pod(name, "u1", &[]);
                    model.objects.remove(&pod.name);
                    store.apply(vec![Delta::Delete(pod)], None)
                }
                Step::Relist(pods) => {
                    let mut relist = store.begin_relist();
                    let before = std::mem::take(&mut model.objects);
                    for (name, nodes) in pods {
                        let mut pod = model.pod(name, "u1", &nodes);
                        // Half of the objects that were there are listed as they were.
                        if let Some(old) = before.get(&pod.name).filter(|_| name % 2 == 0) {
                            pod = old.clone();
                        }
                        model.objects.insert(pod.name.clone(), pod.clone());
                        relist.put(pod);
                    }
                    store.finish_relist(relist, None)
                }
            };
            follow(&mut known, changes);
            prop_assert_eq!(&known, &model.objects);
            model.check(&lister);
        }
    }
}
