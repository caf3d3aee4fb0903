//! POST on a collection.

use apiloom_meta::ApiError;
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::{WriteUse, write_options};
use crate::response::Body;
use crate::shape::body;

/// Responds with 201 and the stored object.
pub(crate) async fn create(mut call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let format = body::format(&call.request.headers)?;
    let bytes = call.read_body().await?;
    let (bytes, codec_format) = call.document(format, bytes).await?;
    let options = write_options(call.query, &call.request.headers, WriteUse::Create)?;
    let validation = format.validation(options.field_validation);
    let writes = call.endpoint.writes();
    let object = writes.decode(call.ctx, &bytes, codec_format, validation)?;
    call.audit_object(&object);
    call.ctx.pause().await?;
    let created = call
        .endpoint
        .writes()
        .create(call.ctx, call.namespace, object, &options)
        .await?;
    call.reply.written(StatusCode::CREATED, &created)
}
