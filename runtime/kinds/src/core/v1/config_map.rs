//! ConfigMap.

use apiloom_macros::resource;
use apiloom_meta::{ObjectMeta, SortedMap};

/// ConfigMap holds configuration that programs read.
#[resource(group = "", version = "v1", namespaced, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), shortname = "cm", generation = none, strategic_merge_patch,
    printcolumn(name = "Data", with = ConfigMap::entries, doc = "The number of entries."))]
#[derive(Default)]
pub struct ConfigMap {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// If true, data and binaryData cannot be changed, and neither can this field. Unset means false.
    #[api(proto = 4)]
    pub immutable: Option<bool>,
    /// The entries that are text. A key consists of letters, digits, '-', '_' and '.', and is not a key of binaryData.
    #[api(proto = 2)]
    pub data: SortedMap<String, String>,
    /// The entries that are bytes. A key has the form of those of data.
    #[api(proto = 3)]
    pub binary_data: SortedMap<String, Vec<u8>>,
}

impl ConfigMap {
    /// The number of entries, of both kinds.
    fn entries(&self) -> i64 {
        let entries = self.data.len() + self.binary_data.len();
        i64::try_from(entries).unwrap_or(i64::MAX)
    }
}
