//! create: validates and stores a new object.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::{Entry, StorageError};

use super::Writes;
use super::by_code::CodeWrite;
use super::change::PassedStages;
use super::request::WriteRequest;
use super::results::WrittenObject;
use super::stamp::{self, NAME_ATTEMPTS};
use crate::objects::versioned_resource::VersionedResource;
use crate::options::{CreateOptions, RequestContext};

/// The result of one attempt to store a new object.
pub(crate) enum Creation {
    /// The object is stored.
    Created(WrittenObject),
    /// The key has an object already.
    Exists(Box<Entry>),
}

impl Writes {
    /// Creates an object and returns it as stored. `namespace` is that of the URL, `None` for cluster-scoped kinds.
    ///
    /// # Errors
    /// Those of create in the API, such as AlreadyExists, Invalid and Forbidden.
    pub async fn create(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<WrittenObject, ApiError> {
        self.resource.set_type(&mut object);
        stamp::wipe_for_create(&mut object);
        self.decoder.match_namespace(&mut object, namespace)?;
        let name = object.name().to_owned();
        let request = WriteRequest::new(ctx, namespace, &name).with(options);
        let passed = if self.resource.has_objects() {
            PassedStages::None
        } else {
            // The fields of a review have no owners.
            PassedStages::Owners { is_changed: true }
        };
        self.pass_input(request, &mut object, None, passed).await?;
        if let Some(code) = self.resource.writer() {
            let write = CodeWrite {
                writes: self,
                code: code.as_ref(),
                request,
            };
            return Box::pin(write.create(object, options)).await;
        }
        let is_generated = stamp::is_name_generated(&object);
        let mut attempts_left = if is_generated { NAME_ATTEMPTS } else { 1 };
        loop {
            attempts_left -= 1;
            // Only attempts that may be repeated need a copy.
            let mut new = if attempts_left == 0 {
                std::mem::take(&mut object)
            } else {
                object.clone()
            };
            if is_generated {
                stamp::set_generated_name(&mut new, &(self.settings.names)());
            }
            let name = new.name().to_owned();
            let request = WriteRequest {
                name: &name,
                ..request
            };
            match self.create_once(request, new, false).await? {
                Creation::Created(written) => return Ok(written),
                Creation::Exists(_) if attempts_left > 0 => {}
                Creation::Exists(_) if is_generated => {
                    return Err(stamp::no_unique_name(self.resource.group_resource(), &name));
                }
                Creation::Exists(entry) => {
                    return Err(already_exists(&self.resource, &name, &entry));
                }
            }
        }
    }

    /// One attempt to store a new object, after the mutating phase of admission. A dry run only checks whether the key
    /// exists. An object that is not pruned is, once it is validated.
    pub(crate) async fn create_once(
        &self,
        request: WriteRequest<'_>,
        mut object: Object,
        is_unpruned: bool,
    ) -> Result<Creation, ApiError> {
        let kind = &self.resource.kind;
        if let Some(refused) = self.refused_by_definition(request.name) {
            return Err(refused);
        }
        let draft = self.prepare_and_validate(request, &mut object).await?;
        if is_unpruned {
            object = self.decoder.decoded_again(object)?;
        }
        let key = kind.keys.key(request.namespace, request.name)?;
        let mut stored = self.versions.to_store(&object, draft).await?;
        if stored.is_none() && self.resource.def().dialect.defaults_reset_fields_late {
            // What was reset has the defaults that a read would apply.
            kind.versions.default(&mut object, self.resource.version);
        }
        let prepared = Arc::new(kind.encode(stored.as_mut().unwrap_or(&mut object))?);
        self.commit.check_size(&prepared, None)?;
        if request.dry_run {
            let mut object = self.versions.as_read(object, stored.as_ref()).await?;
            object.set_meta_str("resourceVersion", "");
            return Ok(match kind.get(&key, "create").await? {
                Some(entry) => Creation::Exists(Box::new(entry)),
                None => Creation::Created(object.into()),
            });
        }
        match self.commit.store(&key, &prepared, None).await {
            Ok(revision) => {
                request.ctx.settle(revision);
                // The objects of the definition may have been deleted before this one was stored.
                if let Some(refused) = self.refused_by_definition(request.name) {
                    self.commit.undo_create(&key, &object, revision).await?;
                    return Err(refused);
                }
                let written = self.commit.written(&key, &prepared, revision, object);
                written.await.map(Creation::Created)
            }
            Err(StorageError::Exists(entry)) => Ok(Creation::Exists(entry)),
            Err(error) => Err(kind.error(error, "create")),
        }
    }

    /// Forbidden, if the definition of the custom resource is being deleted.
    fn refused_by_definition(&self, name: &str) -> Option<ApiError> {
        let is_terminating = self.resource.kind.is_terminating.load(Ordering::Acquire);
        is_terminating.then(|| {
            let why = "create not allowed while custom resource definition is terminating";
            ApiError::forbidden(self.resource.group_resource(), name, why)
        })
    }
}

/// AlreadyExists. Its message says if the present object is being deleted, since a later retry can succeed then.
fn already_exists(resource: &VersionedResource, name: &str, present: &Entry) -> ApiError {
    let mut error = ApiError::already_exists(resource.group_resource(), name);
    if resource
        .kind
        .decode(&present.key, &present.value, present.revision)
        .is_ok_and(|(object, _)| object.is_deleting())
    {
        error.message.insert_str(0, "object is being deleted: ");
    }
    error
}
