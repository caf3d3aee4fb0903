//! Changes of an object by code of the program, which handles a subresource.

use apiloom_meta::{ApiError, Object};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use super::Writes;
use super::change::{Change, Input};
use super::preconditions::check_present;
use super::request::WriteRequest;
use super::results::WrittenObject;
use crate::options::Preconditions;

/// A change of an object by code; fails if the object cannot be decoded.
pub(crate) type EditFn<'a> =
    &'a (dyn Fn(&mut Object) -> Result<(), serde_json::Error> + Send + Sync);

/// A change by code, if the object meets the preconditions.
struct Edit<'a> {
    change: EditFn<'a>,
    preconditions: &'a Preconditions,
}

impl Writes {
    /// Changes the present object by code, as an update would.
    ///
    /// # Errors
    /// Those of an update; Conflict if the object does not meet the preconditions.
    pub(crate) async fn edit(
        &self,
        request: WriteRequest<'_>,
        preconditions: &Preconditions,
        change: EditFn<'_>,
    ) -> Result<WrittenObject, ApiError> {
        let edit = Edit {
            change,
            preconditions,
        };
        let (written, _) = self.write(request, &edit).await?;
        Ok(written)
    }
}

impl Change for Edit<'_> {
    fn on_present<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        let edited = || {
            check_present(&writes.resource, request, self.preconditions, present)?;
            let mut object = present.clone();
            let edited = (self.change)(&mut object);
            edited.map_err(|error| ApiError::internal_text(error.to_string()))?;
            Ok(Input::new(object))
        };
        ready(edited()).boxed()
    }

    fn on_scale<'a>(
        &'a self,
        _scales: &'a Writes,
        _request: WriteRequest<'a>,
        _present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        let text = "a handler changes the number of replicas in the object itself";
        ready(Err(ApiError::internal_text(text))).boxed()
    }
}
