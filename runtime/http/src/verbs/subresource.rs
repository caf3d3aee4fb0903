//! Requests for a subresource with a handler: its body is decoded, its handler is called.

use apiloom_meta::ApiError;
use apiloom_meta::kind::Verb;
use apiloom_registry::{CreateOptions, SubresourceAnswer};
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::{WriteUse, write_options};
use crate::response::Body;
use crate::shape::body;

/// Responds with 201 to a create and 200 to others, with what the handler returned.
pub(crate) async fn subresource(
    verb: Verb,
    mut call: ResourceCall<'_>,
) -> Result<Response<Body>, ApiError> {
    let (code, write_use) = match verb {
        Verb::Create => (StatusCode::CREATED, Some(WriteUse::Create)),
        Verb::Update => (StatusCode::OK, Some(WriteUse::Update)),
        _ => (StatusCode::OK, None),
    };
    let (body, options) = match write_use {
        None => (None, CreateOptions::default()),
        Some(write_use) => {
            let format = body::format(&call.request.headers)?;
            let bytes = call.read_body().await?;
            let (bytes, codec_format) = call.document(format, bytes).await?;
            let options = write_options(call.query, &call.request.headers, write_use)?;
            let validation = format.validation(options.field_validation);
            let input = call.endpoint.input(call.subresource);
            let body = input
                .writes()
                .decode(call.ctx, &bytes, codec_format, validation)?;
            call.audit_object(&body);
            call.ctx.pause().await?;
            (Some(body), options)
        }
    };
    let request = call.write_request().with(&options);
    let answer = call
        .endpoint
        .call_subresource((verb, body), request, &options)
        .await?;
    match answer {
        SubresourceAnswer::Object(object) => call.reply.object(code, &object),
        SubresourceAnswer::Status(status) => Ok(call.reply.status(code, *status)),
    }
}
