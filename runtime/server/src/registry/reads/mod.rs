//! Get, list and watch, over the watch cache or the store.

pub(super) mod cached;
pub(super) mod continue_token;
pub(super) mod count;
pub(super) mod field_values;
pub(super) mod get;
pub(super) mod list;
pub(super) mod lister;
pub(super) mod remaining;
pub(super) mod report;
pub(super) mod selection;
pub(super) mod watch;
