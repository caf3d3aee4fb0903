//! What a request makes of an object: each way to change one is an implementation of [`Change`] in a file of its own.

use apiloom_meta::{ApiError, Object};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use super::Writes;
use super::request::WriteRequest;
use super::results::WrittenObject;

/// A change of the present object, or of none. It may be made several times: after a conflict it starts from the new present object.
pub(crate) trait Change: Send + Sync {
    /// The changed object. Both objects are of the version of the request.
    fn on_present<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>>;

    /// The new object if there is none; `None` if the change needs one. Default `None`.
    fn on_absent<'a>(
        &'a self,
        _writes: &'a Writes,
        _request: WriteRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<Input>, ApiError>> {
        ready(Ok(None)).boxed()
    }

    /// The same of the Scale of an object, for the subresource that shows it. Default: as of any object.
    fn on_scale<'a>(
        &'a self,
        scales: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        self.on_present(scales, request, present)
    }

    /// Runs the validating phase of admission; `shown` is the present object as the change showed it. Default: admission sees the
    /// objects.
    fn admit<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        new: &'a mut Object,
        shown: &'a Object,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        let rules = &writes.rules;
        rules.admit_validation(request, new, Some(shown)).boxed()
    }

    /// What the response shows of the written object. Default all of it.
    ///
    /// # Errors
    /// If it has not what is to be shown.
    fn response(&self, written: WrittenObject) -> Result<WrittenObject, ApiError> {
        Ok(written)
    }

    /// Whether the rules for updates of the object apply. Default: to all but its subresources.
    fn is_update_of_object(&self, request: WriteRequest<'_>) -> bool {
        request.subresource.is_empty()
    }
}

/// An object as a change makes it.
pub(crate) struct Input {
    pub(crate) object: Object,
    /// The steps of an input that the object has passed already.
    pub(crate) passed: PassedStages,
    /// Whether it is the result of a patch, at which kube-apiserver looks as at that of admission, and says so.
    pub(crate) is_patched: bool,
    /// Whether the object is pruned only after its validation: it has what decoding would drop.
    pub(crate) is_unpruned: bool,
    /// The present object as the change shows it, if that is another one.
    pub(crate) shown: Option<Object>,
}

/// The steps of an input, in order: owners of its fields, the mutating phase of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassedStages {
    None,
    /// The fields have their owners. Whether the input differs from the present object.
    Owners {
        is_changed: bool,
    },
    Admission,
}

impl Input {
    /// An object that has passed no step.
    pub(crate) fn new(object: Object) -> Self {
        Self {
            object,
            passed: PassedStages::None,
            is_patched: false,
            is_unpruned: false,
            shown: None,
        }
    }
}
