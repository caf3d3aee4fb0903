//! Create, update, patch and apply by code of the program. The steps are those of stored objects, but the code has the present
//! object and keeps the new one.

use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Object, StatusReason};

use super::change::Change;
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

/// A write that code answers.
#[derive(Clone, Copy)]
pub(super) struct CodeWrite<'a> {
    pub(super) writes: &'a Writes,
    pub(super) code: &'a dyn Write,
    pub(super) request: WriteRequest<'a>,
}

impl CodeWrite<'_> {
    /// Creates an object after the mutating phase of admission. A generated name that is taken is replaced by another one, as over
    /// a store.
    ///
    /// # Errors
    /// Those of the steps and of the code.
    pub(super) async fn create(
        self,
        object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        let writes = self.writes;
        if !writes.resource.has_objects() {
            return self.review(object, options).await;
        }
        if !stamp::is_name_generated(&object) {
            return self.create_named(object, options).await;
        }
        let mut attempts_left = stamp::NAME_ATTEMPTS;
        loop {
            attempts_left -= 1;
            let mut new = object.clone();
            stamp::set_generated_name(&mut new, &(writes.settings.names)());
            let name = new.name().to_owned();
            match self.create_named(new, options).await {
                Err(error) if error.reason != Some(StatusReason::AlreadyExists) => {
                    return Err(error);
                }
                Err(_) if attempts_left > 0 => {}
                Err(_) => {
                    return Err(stamp::no_unique_name(
                        writes.resource.group_resource(),
                        &name,
                    ));
                }
                Ok(created) => return Ok(created),
            }
        }
    }

    /// The answer to an object of a kind without objects, such as a review: it gets no name, no uid and no creation time.
    async fn review(
        self,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        let (writes, request) = (self.writes, self.request);
        request.ctx.pause().await?;
        let draft = writes.prepare_create(request, &mut object);
        writes.judge.validate_create(request, &object, draft)?;
        request.ctx.pause().await?;
        let rules = &writes.rules;
        rules.admit_validation(request, &mut object, None).await?;
        let mut answer = self.code.create(request.ctx, &object, options).await?;
        writes.resource.set_type(&mut answer);
        Ok(answer.into())
    }

    /// Prepares and validates an object with its name, then calls the code.
    async fn create_named(
        self,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        let name = object.name().to_owned();
        let request = WriteRequest {
            name: &name,
            ..self.request
        };
        let named = CodeWrite { request, ..self };
        self.writes
            .prepare_and_validate(request, &mut object)
            .await?;
        named.check(&object, None)?;
        let answer = self.code.create(request.ctx, &object, options).await?;
        named.kept(answer).map(WrittenObject::from)
    }

    /// Makes a change of an object and gives it to the code. Returns `true` if the object was created.
    ///
    /// # Errors
    /// Those of the steps and of the code.
    pub(super) async fn write(
        self,
        change: &dyn Change,
    ) -> Result<(WrittenObject, bool), ApiError> {
        let Self {
            writes,
            code,
            request,
        } = self;
        let options = UpdateOptions {
            dry_run: request.dry_run,
            field_validation: request.validation,
            field_manager: request.manager.to_owned(),
        };
        let mut attempts_left = ATTEMPTS;
        loop {
            attempts_left -= 1;
            let is_last = attempts_left == 0;
            let Some(old) = self.present().await? else {
                if !code.verbs().contains(&Verb::Create) {
                    return Err(writes.resource.not_found(request.name));
                }
                let (object, _) = writes.absent_input(request, change).await?;
                match self.create(object, &options).await {
                    // Another request was first, and this one is of its object.
                    Err(error) if !is_last && error.reason == Some(StatusReason::AlreadyExists) => {
                        continue;
                    }
                    created => return Ok((created?, true)),
                }
            };
            let before = writes.versions.versions_of_code(old)?;
            let old = &before.object;
            let check = |new: &Object| check_version_of_code(&writes.resource, request, new, old);
            let (new, _) = writes.judged(request, change, &before, &check).await?;
            if new == *old {
                return Ok((new.into(), false));
            }
            self.check(&new, Some(old))?;
            match code.update(request.ctx, old, &new, &options).await {
                Err(error) if !is_last && error.reason == Some(StatusReason::Conflict) => {}
                answer => return Ok((self.kept(answer?)?.into(), false)),
            }
        }
    }

    /// The present object; `None` if there is none.
    ///
    /// # Errors
    /// Those of the code.
    pub(super) async fn present(self) -> Result<Option<Object>, ApiError> {
        let WriteRequest {
            ctx,
            namespace,
            name,
            ..
        } = self.request;
        let resource = &self.writes.resource;
        // A kind whose writes look at the present object has a reader, or the registry is not built.
        let Some(code) = resource.reader() else {
            return Ok(None);
        };
        let read = resource.read_by_code(code.as_ref(), ctx, namespace, name);
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
    fn check(self, new: &Object, old: Option<&Object>) -> Result<(), ApiError> {
        check_wanted()?;
        let limit = self.writes.settings.max_object_bytes;
        let bytes = |object: &Object| {
            let mut object = object.clone();
            object.set_meta_str("resourceVersion", "");
            let schema = self.writes.resource.schema();
            Encoder::of(schema).object(&object).len()
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
    pub(super) fn kept(self, mut answer: Object) -> Result<Object, ApiError> {
        let resource = &self.writes.resource;
        resource.identify(&mut answer)?;
        resource.check_place(&answer, self.request.namespace, self.request.name)?;
        Ok(answer)
    }
}
