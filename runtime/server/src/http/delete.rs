//! DELETE on an item and on a collection.

use apiloom_meta::ApiError;
use apiloom_meta::kind::ResourceDef;
use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};

use super::Body;
use super::body;
use super::call::ResourceCall;
use super::params::{ListUse, delete_options_of_body, delete_options_of_query, list_options};
use super::query::Query;
use crate::registry::{Catalog, DeleteOptions, DeleteResult};

/// Responds with a Status if the object is removed, or with the object if its deletion has only begun.
pub(super) async fn delete(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply;
    let bytes = body::read(call.body).await?;
    call.endpoint
        .resource()
        .reserve(call.ctx, bytes.len())
        .await;
    let options = options(
        call.request,
        call.query,
        call.catalog,
        call.endpoint.def(),
        bytes,
    )?;
    match call
        .endpoint
        .writes()
        .delete(call.ctx, call.namespace, call.name, &options)
        .await?
    {
        DeleteResult::Gone(details) => Ok(reply.deleted(details)),
        DeleteResult::LastState(object) => reply.object(StatusCode::OK, &object),
        DeleteResult::Pending(object) => {
            // Clients that set the deprecated option expect a response before dependents are deleted.
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

/// Responds with the list of deleted objects.
pub(super) async fn delete_collection(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply;
    let read = || list_options(call.query, ListUse::List);
    let bytes = call.query.bytes();
    let list = call
        .endpoint
        .resource()
        .read_query(call.ctx, bytes, read)
        .await?;
    let bytes = body::read(call.body).await?;
    call.endpoint
        .resource()
        .reserve(call.ctx, bytes.len())
        .await;
    let options = options(
        call.request,
        call.query,
        call.catalog,
        call.endpoint.def(),
        bytes,
    )?;
    let listed = call
        .endpoint
        .delete_collection(call.ctx, call.namespace, &list, &options)
        .await?;
    reply.list(listed).await
}

/// The options are those of the body, if there is one, else those of the query.
fn options(
    request: &Parts,
    query: &Query,
    catalog: &Catalog,
    def: &ResourceDef,
    bytes: Bytes,
) -> Result<DeleteOptions, ApiError> {
    if bytes.is_empty() {
        return delete_options_of_query(query);
    }
    let format = body::format(&request.headers)?;
    let (bytes, format) = body::document(format, bytes, catalog)?;
    delete_options_of_body(&bytes, format, &def.group_version())
}
