//! Get, list and watch, over the watch cache or the store.

pub(super) mod cached;
pub(super) mod continue_token;
pub(super) mod event;
pub(super) mod field_values;
pub(super) mod get;
pub(super) mod list;
pub(super) mod lister;
pub(super) mod remaining;
pub(super) mod selection;
pub(super) mod view;
pub(super) mod watch;

use std::sync::Arc;

use self::field_values::FieldValues;
use self::remaining::Remaining;
use crate::registry::objects::versioned_resource::VersionedResource;

/// Get, list and watch of one resource in one version. Objects go out in this version, with apiVersion, kind and
/// resourceVersion.
#[derive(Debug)]
pub struct Reads {
    resource: Arc<VersionedResource>,
    /// How much was left behind the pages given lately.
    remaining: Remaining,
    /// What lists by a selectable field ask for, when this version is not stored.
    pub(super) field_values: FieldValues,
}

impl Reads {
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self {
            resource,
            remaining: Remaining::default(),
            field_values: FieldValues::default(),
        }
    }
}
