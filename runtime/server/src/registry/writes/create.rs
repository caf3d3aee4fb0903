//! create: a new object from a client's.

use std::sync::Arc;

use apiloom_meta::kind::GenerationRule;
use apiloom_meta::{ApiError, Object};
use apiloom_storage::{Entry, StorageError};

use super::Writes;
use super::draft::{Draft, InHub};
use super::stamp;
use super::target::Target;
use super::written::Written;
use crate::registry::error;
use crate::registry::options::{CreateOptions, RequestContext};
use crate::registry::rules::handler::ErasedHandler;

/// How many generated names are tried before the client is asked to try again.
const NAME_ATTEMPTS: usize = 8;

/// What became of one attempt to write a new object.
pub(crate) enum Creation {
    /// It is written.
    Created(Written),
    /// The key was taken, by this.
    Taken(Box<Entry>),
}

impl Writes {
    /// Creates an object; gives it as stored. `namespace` is the URL's, `None` for cluster-scoped kinds.
    ///
    /// # Errors
    /// The errors of the API's create.
    pub async fn create(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<Written, ApiError> {
        self.set_type(&mut object);
        stamp::wipe_for_create(&mut object);
        self.match_namespace(&mut object, namespace)?;
        let name = object.name().to_owned();
        let target = Target {
            ctx,
            namespace,
            name: &name,
            subresource: "",
            dry_run: options.dry_run,
        };
        self.admit_mutation(target, &mut object, None).await?;
        if let Some(handler) = self.resource.handler() {
            return self.answer(handler, target, object, options).await;
        }
        if !object.name().is_empty() || object.meta_str("generateName").is_empty() {
            let name = object.name().to_owned();
            return match self
                .create_once(
                    Target {
                        name: &name,
                        ..target
                    },
                    object,
                )
                .await?
            {
                Creation::Created(written) => Ok(written),
                Creation::Taken(entry) => Err(self.already_exists(&name, &entry)),
            };
        }
        self.create_with_generated_name(target, &object).await
    }

    /// Everything from an admitted object to the answer of a kind without a store. The object gets no identity.
    async fn answer(
        &self,
        handler: &dyn ErasedHandler,
        target: Target<'_>,
        mut object: Object,
        options: &CreateOptions,
    ) -> Result<Written, ApiError> {
        let ctx = target.ctx;
        ctx.pause().await;
        let draft = self.prepare_create(target, &mut object);
        self.validate_create(ctx, &mut object, draft)?;
        ctx.pause().await;
        self.admit_validation(target, &mut object, None).await?;
        let mut answer = handler.create(ctx, &object, options).await?;
        self.set_type(&mut answer);
        self.warn(ctx, &answer);
        Ok(answer.into())
    }

    async fn create_with_generated_name(
        &self,
        target: Target<'_>,
        object: &Object,
    ) -> Result<Written, ApiError> {
        let mut name = String::new();
        for _ in 0..NAME_ATTEMPTS {
            name = stamp::generated_name(object.meta_str("generateName"), &(self.settings.names)());
            let mut named = object.clone();
            named.set_meta_str("name", &name);
            if let Creation::Created(written) = self
                .create_once(
                    Target {
                        name: &name,
                        ..target
                    },
                    named,
                )
                .await?
            {
                return Ok(written);
            }
        }
        let mut error = ApiError::already_exists(&self.resource.kind.resource, &name);
        error
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        if let Some(details) = &mut error.details {
            details.retry_after_seconds = 1;
        }
        Err(error)
    }

    /// Everything from an admitted object to a written one, under one name.
    pub(crate) async fn create_once(
        &self,
        target: Target<'_>,
        mut object: Object,
    ) -> Result<Creation, ApiError> {
        self.match_namespace(&mut object, target.namespace)?;
        target.ctx.pause().await;
        let draft = self.before_create(target, &mut object);
        target.ctx.pause().await;
        let draft = self.validate_create(target.ctx, &mut object, draft)?;
        target.ctx.pause().await;
        self.admit_validation(target, &mut object, None).await?;
        if error::parse_version(object.resource_version()).is_ok_and(|version| version != 0) {
            return Err(ApiError::internal_text(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        object.set_meta_str("resourceVersion", "");
        let created = self.write_new(target, object, draft).await?;
        if let Creation::Created(written) = &created {
            self.warn(target.ctx, &written.object);
        }
        Ok(created)
    }

    /// Identity, generation, and what the kind's rules prepare; gives the object in the other versions.
    fn before_create(&self, target: Target<'_>, object: &mut Object) -> Result<Draft, ApiError> {
        stamp::stamp_created(object);
        if self.resource.def().generation == GenerationRule::Spec {
            stamp::set_meta_number(object, "generation", Some(1));
        }
        let fields = self.resource.def().fields_of_subresources();
        if fields
            .filter(|field| object.fields_mut().remove(*field).is_some())
            .count()
            > 0
        {
            self.resource.kind.default(object, self.resource.version);
        }
        self.prepare_create(target, object)
    }

    /// What the kind's rules prepare.
    fn prepare_create(&self, target: Target<'_>, object: &mut Object) -> Result<Draft, ApiError> {
        self.prepare(object, |strategy, object| {
            strategy.prepare_for_create(target.ctx, object)
        });
        let mut hub = self.new_in_hub(object)?;
        if let Some(hub) = &mut hub {
            self.prepare_in_hub(object, hub, |strategy, InHub { new, .. }| {
                strategy.prepare_for_create(target.ctx, new)
            })?;
        }
        Ok(Draft::of_new(hub))
    }

    async fn write_new(
        &self,
        target: Target<'_>,
        mut object: Object,
        draft: Draft,
    ) -> Result<Creation, ApiError> {
        let key = self.resource.kind.key(target.namespace, target.name)?;
        let mut stored = self.to_store(&object, draft).await?;
        let prepared = self
            .resource
            .kind
            .encode(stored.as_mut().unwrap_or(&mut object))?;
        let prepared = Arc::new(prepared);
        self.check_size(&prepared, None)?;
        if target.dry_run {
            let mut object = self.as_read(object, stored.as_ref()).await?;
            object.set_meta_str("resourceVersion", "");
            return Ok(match self.resource.kind.get(&key, "create").await? {
                Some(entry) => Creation::Taken(Box::new(entry)),
                None => Creation::Created(object.into()),
            });
        }
        match self.store(&key, &prepared, None).await {
            Ok(revision) => self
                .written(&key, &prepared, revision, object)
                .await
                .map(Creation::Created),
            Err(StorageError::Exists(entry)) => Ok(Creation::Taken(entry)),
            Err(error) => Err(self.resource.kind.error(error, "create")),
        }
    }

    /// AlreadyExists; says so when the present object is on its way out, because then trying again helps.
    pub(crate) fn already_exists(&self, name: &str, present: &Entry) -> ApiError {
        let mut error = ApiError::already_exists(&self.resource.kind.resource, name);
        if self
            .resource
            .kind
            .decode(&present.key, &present.value, present.revision)
            .is_ok_and(|(object, _)| object.is_deleting())
        {
            error.message.insert_str(0, "object is being deleted: ");
        }
        error
    }
}
