//! The body of a request that is not stored: what a handler of a subresource takes.

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Object};

use super::Writes;
use super::draft::Draft;
use super::target::Target;
use crate::registry::options::{CreateOptions, RequestContext};
use crate::registry::rules::admission::Operation;

impl Writes {
    /// Runs both phases of admission for a request that opens a stream.
    ///
    /// # Errors
    /// Those of admission.
    pub(crate) async fn admit_connect(
        &self,
        (ctx, namespace, name): (&RequestContext, Option<&str>, &str),
        subresource: &str,
    ) -> Result<(), ApiError> {
        let options = CreateOptions::default();
        let target = Target {
            operation: Some(Operation::Connect),
            ..Target::of_write(ctx, namespace, name, subresource, &options)
        };
        self.admit_without_object(target).await
    }

    /// Defaults, validates and admits a body. Its name and namespace are those of the URL; absent ones are set.
    ///
    /// # Errors
    /// BadRequest for another name or namespace, Invalid, and those of admission.
    pub(crate) async fn admit_body(
        &self,
        verb: Verb,
        (ctx, namespace, name): (&RequestContext, Option<&str>, &str),
        subresource: &str,
        body: &mut Object,
        options: &CreateOptions,
    ) -> Result<(), ApiError> {
        self.set_type(body);
        if body.name().is_empty() && verb == Verb::Create {
            body.set_meta_str("name", name);
        }
        self.match_name(body, name)?;
        self.match_namespace(body, namespace)?;
        let operation = if verb == Verb::Create {
            Operation::Create
        } else {
            Operation::Update
        };
        let target = Target {
            operation: Some(operation),
            ..Target::of_write(ctx, namespace, name, subresource, options)
        };
        self.default_input(target, body)?;
        self.admit_mutation(target, body, None).await?;
        ctx.pause().await?;
        self.validate_create(ctx, body, Ok(Draft::of_new(None)))?;
        ctx.pause().await?;
        self.admit_validation(target, body, None).await
    }
}
