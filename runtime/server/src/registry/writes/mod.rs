//! Create, update, patch and delete: from a body to a revision in the store.

pub(super) mod attempt;
pub(super) mod create;
pub(super) mod decode;
pub(super) mod delete;
pub(super) mod delete_collection;
pub(super) mod draft;
pub(super) mod patch;
pub(super) mod stamp;
pub(super) mod target;
pub(super) mod update;
pub(super) mod validate;
