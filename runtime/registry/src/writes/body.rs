//! The body of a request that is not stored: what a handler of a subresource takes.

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Object};

use super::Writes;
use super::request::WriteRequest;
use super::versions::Draft;
use crate::rules::admission::Operation;

impl Writes {
    /// Runs both phases of admission for a request that opens a stream.
    ///
    /// # Errors
    /// Those of admission.
    pub async fn admit_connect(&self, request: WriteRequest<'_>) -> Result<(), ApiError> {
        let request = request.admitted_as(Operation::Connect);
        self.rules.admit_without_object(request).await
    }

    /// Defaults, validates and admits a body. Its name and namespace are those of the URL; absent ones are set.
    ///
    /// # Errors
    /// BadRequest for another name or namespace, Invalid, and those of admission.
    pub(crate) async fn admit_body(
        &self,
        verb: Verb,
        request: WriteRequest<'_>,
        body: &mut Object,
    ) -> Result<(), ApiError> {
        self.resource.set_type(body);
        if body.name().is_empty() && verb == Verb::Create {
            body.set_meta_str("name", request.name);
        }
        self.decoder.match_name(body, request.name)?;
        self.decoder.match_namespace(body, request.namespace)?;
        let request = request.admitted_as(if verb == Verb::Create {
            Operation::Create
        } else {
            Operation::Update
        });
        self.rules.default_input(request, body)?;
        self.rules.admit_mutation(request, body, None).await?;
        request.ctx.pause().await?;
        let draft = Ok(Draft::of_new(None));
        self.judge.validate_create(request, body, draft)?;
        request.ctx.pause().await?;
        self.rules.admit_validation(request, body, None).await
    }
}
