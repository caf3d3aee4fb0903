//! What writes answer.

use std::ops::Deref;

use apiloom_meta::{Object, StatusDetails};

use crate::registry::objects::json::Json;

/// An object as a write left it.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object.
    pub object: Object,
    /// The same as JSON, when it was made for the store already.
    pub json: Option<Json<'static>>,
}

impl Deref for Written {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl From<Object> for Written {
    fn from(object: Object) -> Self {
        Self { object, json: None }
    }
}

/// What a delete did.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// The object is gone (or would be, in a dry run); answered with a Status that carries these details.
    Gone(StatusDetails),
    /// The object is gone and its kind answers with its last state (namespaces).
    Returned(Object),
    /// The object stays for its finalizers or its grace period; this is its state.
    Pending(Object),
}
