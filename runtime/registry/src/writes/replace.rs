//! update: replaces the present object, or creates it if its kind allows that.

use apiloom_meta::{ApiError, Object};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use super::Writes;
use super::change::{Change, Input};
use super::preconditions::check_uid;
use super::request::WriteRequest;
use super::results::WrittenObject;

/// The object of an update.
struct Replacement(Object);

impl Writes {
    /// Replaces an object, or the fields of a subresource. Returns `true` if the object was created.
    ///
    /// # Errors
    /// Those of update in the API, such as NotFound, Invalid and Conflict.
    pub async fn update(
        &self,
        request: WriteRequest<'_>,
        mut object: Object,
    ) -> Result<(WrittenObject, bool), ApiError> {
        let bodies = self.bodies(request.subresource);
        bodies.resource.set_type(&mut object);
        let object = bodies.decoder.match_url(request, object)?;
        self.write(request, &Replacement(object)).await
    }
}

impl Change for Replacement {
    fn on_present<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        let checked = check_uid(writes.rules.of_url(), request, self.0.uid(), present.uid());
        ready(checked.map(|()| Input::new(self.0.clone()))).boxed()
    }

    fn on_absent<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<Input>, ApiError>> {
        if !writes.resource.def().create_on_update {
            return ready(Ok(None)).boxed();
        }
        let checked = check_uid(writes.rules.of_url(), request, self.0.uid(), "");
        ready(checked.map(|()| Some(Input::new(self.0.clone())))).boxed()
    }
}
