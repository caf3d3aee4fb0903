//! DELETE on an item and on a collection.

use apiloom_meta::{ApiError, GroupVersion};
use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};

use super::Body;
use super::body;
use super::call::ResourceCall;
use super::params::{ListUse, delete_options_of_body, delete_options_of_query, list_options};
use super::query::Query;
use crate::registry::{DeleteOptions, Deleted};

/// Answers with a Status when the object is gone, with the object while it is not.
pub(super) async fn delete(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply;
    let own = call.endpoint.def().gvk().group_version();
    let bytes = body::read(call.body).await?;
    call.endpoint
        .resource()
        .reserve(call.ctx, bytes.len())
        .await;
    let options = options(call.request, call.query, &own, bytes)?;
    match call
        .endpoint
        .writes()
        .delete(call.ctx, call.namespace, call.name, &options)
        .await?
    {
        Deleted::Gone(details) => Ok(reply.deleted(details)),
        Deleted::Returned(object) => reply.object(StatusCode::OK, &object),
        Deleted::Pending(object) => {
            // Clients of the deprecated option expect to be told that dependents are still to come.
            let orphaning_refused = options.orphan_dependents == Some(false);
            reply.object(
                if orphaning_refused {
                    StatusCode::ACCEPTED
                } else {
                    StatusCode::OK
                },
                &object,
            )
        }
    }
}

/// Answers with the list of what was deleted.
pub(super) async fn delete_collection(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply;
    let read = || list_options(call.query, ListUse::List);
    let bytes = call.query.bytes();
    let list = call
        .endpoint
        .resource()
        .read_query(call.ctx, bytes, read)
        .await?;
    let own = call.endpoint.def().gvk().group_version();
    let bytes = body::read(call.body).await?;
    call.endpoint
        .resource()
        .reserve(call.ctx, bytes.len())
        .await;
    let options = options(call.request, call.query, &own, bytes)?;
    let listed = call
        .endpoint
        .delete_collection(call.ctx, call.namespace, &list, &options)
        .await?;
    reply.list(listed).await
}

/// The body says everything when there is one; otherwise the query does.
fn options(
    request: &Parts,
    query: &Query,
    own: &GroupVersion,
    bytes: Bytes,
) -> Result<DeleteOptions, ApiError> {
    if bytes.is_empty() {
        return delete_options_of_query(query);
    }
    let format = body::format(&request.headers)?;
    let (bytes, format) = body::document(format, bytes)?;
    delete_options_of_body(&bytes, format, own)
}
