//! Results of writes.

use std::ops::Deref;

use apiloom_meta::{Object, StatusDetails};

use crate::objects::json::Json;

/// The object after a write.
#[derive(Clone, Debug)]
pub struct WrittenObject {
    /// The object.
    pub object: Object,
    /// Its JSON, if it was encoded for the store.
    pub json: Option<Json<'static>>,
}

impl Deref for WrittenObject {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl From<Object> for WrittenObject {
    fn from(object: Object) -> Self {
        Self { object, json: None }
    }
}

/// The result of a delete.
#[derive(Clone, Debug)]
pub enum DeleteResult {
    /// The object is removed (or would be, in a dry run). The response is a Status with these details.
    Gone(StatusDetails),
    /// The object is removed, and the response is its last state (namespaces, kinds with `returns = object`).
    LastState(Object),
    /// The object is marked for deletion and stays until its finalizers are removed, or until a client removes it at the
    /// end of its grace period; contains its state.
    Pending(Object),
}
