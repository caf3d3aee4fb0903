//! An object for tests, with the fields that a cache reads and one more.

use std::collections::BTreeMap;

use super::{CacheObject, Delta, Index};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(super) namespace: String,
    pub(crate) name: String,
    pub(super) uid: String,
    pub(crate) version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) owners: Vec<String>,
    pub(super) nodes: Vec<u8>,
}

/// A pod in the namespace `default`, whose uid is its name.
pub(crate) fn pod(name: &str, version: u64) -> Pod {
    Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        version: version.to_string(),
        ..Pod::default()
    }
}

impl Pod {
    pub(super) fn uid(mut self, uid: &str) -> Self {
        self.uid = uid.to_owned();
        self
    }
    pub(crate) fn put(self) -> Delta<Self> {
        Delta::Put(self)
    }
}

impl CacheObject for Pod {
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
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
    fn owner_uids(&self) -> Vec<&str> {
        self.owners.iter().map(String::as_str).collect()
    }
}

/// Index with no, one, several and repeated keys.
pub(super) struct ByNode;

impl Index<Pod> for ByNode {
    type Key = u8;
    const NAME: &'static str = "node";
    fn keys(pod: &Pod, emit: &mut dyn FnMut(u8)) {
        pod.nodes.iter().copied().for_each(emit);
    }
}

/// Index that cannot handle the pod `bad`.
pub(super) struct Picky;

impl Index<Pod> for Picky {
    type Key = usize;
    const NAME: &'static str = "picky";
    fn keys(pod: &Pod, emit: &mut dyn FnMut(usize)) {
        emit(pod.name.len());
        assert_ne!(pod.name, "bad");
    }
}
