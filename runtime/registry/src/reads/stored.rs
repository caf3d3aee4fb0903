//! Get, list and watch over the watch cache or the store.

use std::sync::Arc;

use super::field_values::FieldValues;
use super::page_counts::PageCounts;
use crate::objects::versioned_resource::VersionedResource;

/// Get, list and watch of one resource in one version, over its watch cache or its store.
#[derive(Debug)]
pub struct StoredReads {
    pub(super) resource: Arc<VersionedResource>,
    /// Remaining-item counts of recent pages.
    pub(super) page_counts: PageCounts,
    /// Values of the selectable fields of cached objects, if this version is not the stored one.
    pub(crate) field_values: FieldValues,
}

impl StoredReads {
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self {
            resource,
            page_counts: PageCounts::default(),
            field_values: FieldValues::default(),
        }
    }
}
