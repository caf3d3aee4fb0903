//! core/v1beta1: the same data, by an older name.

use std::collections::BTreeMap;

use apiloom::prelude::*;

/// ConfigMap holds configuration data for programs to read.
#[apiloom::resource(group = "", version = "v1beta1", namespaced, shortname = "cm", spoke_of = crate::v1::ConfigMap)]
pub struct ConfigMap {
    pub metadata: ObjectMeta,
    /// The configuration, each value by its key.
    #[api(props(max = 100), convert(rename = data))]
    pub values: Option<BTreeMap<String, String>>,
    /// Whether the data is not to be changed any more.
    #[api(default = false)]
    pub immutable: bool,
}
