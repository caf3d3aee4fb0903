//! PUT on an item or one of its subresources.

use apiloom_meta::ApiError;
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::{WriteUse, write_options};
use crate::response::Body;
use crate::shape::body;

/// Responds with 200 and the stored object, or 201 if it was created.
pub(crate) async fn update(mut call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let bytes = call.read_body().await?;
    let options = write_options(call.query, &call.request.headers, WriteUse::Update)?;
    let format = body::format(&call.request.headers)?;
    let validation = format.validation(options.field_validation);
    let (bytes, format) = call.document(format, bytes).await?;
    let bodies = call.endpoint.input(call.subresource);
    let object = bodies
        .writes()
        .decode(call.ctx, &bytes, format, validation)?;
    call.audit_object(&object);
    call.ctx.pause().await?;
    let request = call.write_request().with(&options);
    let (stored, created) = call.endpoint.writes().update(request, object).await?;
    call.reply.written(
        if created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        },
        &stored,
    )
}
