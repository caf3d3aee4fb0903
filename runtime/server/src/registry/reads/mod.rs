//! Get, list and watch, over the watch cache or the store.

pub(super) mod cached;
pub(super) mod continue_token;
pub(super) mod event;
pub(super) mod field_values;
pub(super) mod get;
mod lifetime;
pub(super) mod list;
pub(super) mod lister;
pub(super) mod page_counts;
pub(super) mod selection;
pub(super) mod unreadable;
pub(super) mod view;
pub(super) mod watch;

use std::sync::Arc;

use self::field_values::FieldValues;
use self::page_counts::PageCounts;
use crate::registry::objects::versioned_resource::VersionedResource;

/// Get, list and watch of one resource in one version. Objects are returned in this version, with apiVersion, kind and
/// resourceVersion.
#[derive(Debug)]
pub struct Reads {
    resource: Arc<VersionedResource>,
    /// PageCounts-item counts of recent pages.
    page_counts: PageCounts,
    /// Values of the selectable fields of cached objects, if this version is not the stored one.
    pub(super) field_values: FieldValues,
}

impl Reads {
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self {
            resource,
            page_counts: PageCounts::default(),
            field_values: FieldValues::default(),
        }
    }
}
