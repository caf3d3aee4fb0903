//! Create, update, patch and apply by code of the program. The steps are those of stored objects, but the code has the present
//! object and keeps the new one.

use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Object, StatusReason};

use super::change::Change;
use super::create::{NAME_ATTEMPTS, no_unique_name};
use super::preconditions::check_version_of_code;
use super::request::WriteRequest;
use super::results::WrittenObject;
use super::{Writes, stamp};
use crate::large::check_wanted;
use crate::objects::code::Write;
use crate::options::{CreateOptions, UpdateOptions};

/// How often a change is made while the code answers Conflict, or AlreadyExists to its create, as often as a patch in
/// kube-apiserver.
const ATTEMPTS: usize = 5;

impl Writes {
    /// Creates an object after the mutating phase of admission. A generated name that is taken is replaced by another one, as over
    /// a store.
    ///
    /// # Errors
    /// Those of the steps and of the code.
    pub(super) async fn create_by_code(
        &self,
        code: &dyn Write,
        request: WriteRequest<'_>,
        object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        if !self.resource.has_objects() {
            return self.review(code, request, object, options).await;
        }
        let is_generated = object.name().is_empty() && !object.meta_str("generateName").is_empty();
        if !is_generated {
            return self.create_named(code, request, object, options).await;
        }
        let mut attempts_left = NAME_ATTEMPTS;
        loop {
            attempts_left -= 1;
            let mut new = object.clone();
            let name =
                stamp::generated_name(new.meta_str("generateName"), &(self.settings.names)());
            new.set_meta_str("name", &name);
            match self.create_named(code, request, new, options).await {
                Err(error) if error.reason != Some(StatusReason::AlreadyExists) => {
                    return Err(error);
                }
                Err(_) if attempts_left > 0 => {}
                Err(_) => return Err(no_unique_name(&self.resource, &name)),
                Ok(created) => return Ok(created),
            }
        }
    }

    /// The answer to an object of a kind without objects, such as a review: it gets no name, no uid and no creation time.
    async fn review(
        &self,
        code: &dyn Write,
        request: WriteRequest<'_>,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        request.ctx.pause().await?;
        let draft = self.prepare_create(request, &mut object);
        self.judge.validate_create(request, &object, draft)?;
        request.ctx.pause().await?;
        let rules = &self.rules;
        rules.admit_validation(request, &mut object, None).await?;
        let mut answer = code.create(request.ctx, &object, options).await?;
        self.resource.set_type(&mut answer);
        Ok(answer.into())
    }

    /// Prepares and validates an object with its name, then calls the code.
    async fn create_named(
        &self,
        code: &dyn Write,
        request: WriteRequest<'_>,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        let name = object.name().to_owned();
        let request = WriteRequest {
            name: &name,
            ..request
        };
        self.prepare_and_validate(request, &mut object).await?;
        self.check_for_code(&object, None)?;
        let answer = code.create(request.ctx, &object, options).await?;
        self.kept(request, answer)
    }

    /// Makes a change of an object and gives it to the code. Returns `true` if the object was created.
    ///
    /// # Errors
    /// Those of the steps and of the code.
    pub(super) async fn write_by_code(
        &self,
        code: &dyn Write,
        request: WriteRequest<'_>,
        change: &dyn Change,
    ) -> Result<(WrittenObject, bool), ApiError> {
        let options = UpdateOptions {
            dry_run: request.dry_run,
            field_validation: request.validation,
            field_manager: request.manager.to_owned(),
        };
        let mut attempts_left = ATTEMPTS;
        loop {
            attempts_left -= 1;
            let Some(old) = self.present_by_code(request).await? else {
                if !code.verbs().contains(&Verb::Create) {
                    return Err(self.resource.not_found(request.name));
                }
                let (object, _) = self.absent_input(request, change).await?;
                match self.create_by_code(code, request, object, &options).await {
                    // Another request was first, and this one is of its object.
                    Err(error)
                        if attempts_left > 0
                            && error.reason == Some(StatusReason::AlreadyExists) =>
                    {
                        continue;
                    }
                    created => return Ok((created?, true)),
                }
            };
            let before = self.versions.versions_of_code(old)?;
            let old = &before.object;
            let check = |new: &Object| check_version_of_code(&self.resource, request, new, old);
            let (new, _) = self.judged(request, change, &before, &check).await?;
            if new == *old {
                return Ok((new.into(), false));
            }
            self.check_for_code(&new, Some(old))?;
            match code.update(request.ctx, old, &new, &options).await {
                Err(error) if attempts_left > 0 && error.reason == Some(StatusReason::Conflict) => {
                }
                answer => return Ok((self.kept(request, answer?)?, false)),
            }
        }
    }

    /// The present object; `None` if there is none.
    ///
    /// # Errors
    /// Those of the code.
    pub(super) async fn present_by_code(
        &self,
        request: WriteRequest<'_>,
    ) -> Result<Option<Object>, ApiError> {
        let WriteRequest {
            ctx,
            namespace,
            name,
            ..
        } = request;
        // A kind whose writes look at the present object has a reader, or the registry is not built.
        let Some(code) = self.resource.reader() else {
            return Ok(None);
        };
        let read = self
            .resource
            .read_by_code(code.as_ref(), ctx, namespace, name);
        match read.await {
            Err(error) if error.reason == Some(StatusReason::NotFound) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Checks what the code is given to keep, as a store is asked to keep it: work that was interrupted has made a part of it, and its
    /// JSON has the size limit of objects, above which it may only be made smaller.
    ///
    /// # Errors
    /// Timeout; RequestEntityTooLarge.
    fn check_for_code(&self, new: &Object, old: Option<&Object>) -> Result<(), ApiError> {
        check_wanted()?;
        let limit = self.settings.max_object_bytes;
        let bytes = |object: &Object| {
            let mut object = object.clone();
            object.set_meta_str("resourceVersion", "");
            Encoder::of(self.resource.schema()).object(&object).len()
        };
        let length = bytes(new);
        if length <= limit || old.is_some_and(|old| length < bytes(old)) {
            return Ok(());
        }
        Err(ApiError::too_large(limit))
    }

    /// The object as the code has kept it.
    ///
    /// # Errors
    /// InternalError if it is another object than that of the request.
    fn kept(
        &self,
        request: WriteRequest<'_>,
        mut answer: Object,
    ) -> Result<WrittenObject, ApiError> {
        self.resource.identify(&mut answer)?;
        let (namespace, name) = (request.namespace, request.name);
        self.resource.check_place(&answer, namespace, name)?;
        Ok(answer.into())
    }
}
