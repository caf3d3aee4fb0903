//! POST on a collection.

use apiloom_meta::ApiError;
use http::{Response, StatusCode};

use super::Body;
use super::body;
use super::call::ResourceCall;
use super::params::{WriteUse, write_options};

/// Responds with 201 and the stored object.
pub(super) async fn create(mut call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let format = body::format(&call.request.headers)?;
    let bytes = call.read_body().await?;
    let (bytes, format) = body::document(format, bytes, call.catalog)?;
    let options = write_options(call.query, &call.request.headers, WriteUse::Create)?;
    let object =
        call.endpoint
            .writes()
            .decode(call.ctx, &bytes, format, options.field_validation)?;
    call.ctx.pause().await;
    let created = call
        .endpoint
        .writes()
        .create(call.ctx, call.namespace, object, &options)
        .await?;
    call.reply.written(StatusCode::CREATED, &created)
}
