//! DELETE on an item and on a collection.

use apiloom_meta::ApiError;
use apiloom_meta::kind::protobuf::DELETE_OPTIONS;
use apiloom_registry::{DeleteOptions, DeleteResult};
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::{
    ListUse, delete_options_of_body, delete_options_of_query, list_options,
};
use crate::response::Body;
use crate::shape::body;

/// Responds with a Status if the object is removed, or with the object if its deletion has only begun.
pub(crate) async fn delete(mut call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let options = options(&mut call).await?;
    match call
        .endpoint
        .writes()
        .delete(call.ctx, call.namespace, call.name, &options)
        .await?
    {
        DeleteResult::Gone(details) => Ok(call.reply.deleted(details)),
        DeleteResult::LastState(object) => call.reply.object(StatusCode::OK, &object),
        DeleteResult::Pending(object) => {
            // Clients that set the deprecated option expect a response before dependents are deleted.
            let orphaning_refused = options.orphan_dependents == Some(false);
            call.reply.object(
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
pub(crate) async fn delete_collection(
    mut call: ResourceCall<'_>,
) -> Result<Response<Body>, ApiError> {
    let read = || list_options(call.query, ListUse::List);
    let bytes = call.query.bytes();
    let list = call
        .endpoint
        .resource()
        .read_query(call.ctx, bytes, read)
        .await?;
    let options = options(&mut call).await?;
    let listed = call
        .endpoint
        .delete_collection(call.ctx, call.namespace, &list, &options)
        .await?;
    call.reply.list(listed).await
}

/// The options are those of the body, if there is one, else those of the query.
async fn options(call: &mut ResourceCall<'_>) -> Result<DeleteOptions, ApiError> {
    let bytes = call.read_body().await?;
    if bytes.is_empty() {
        return delete_options_of_query(call.query);
    }
    let format = body::format(&call.request.headers)?;
    let (bytes, format) = body::document(format, bytes, call.catalog, Some(&DELETE_OPTIONS))?;
    let options = delete_options_of_body(&bytes, format)?;
    if let Some(audit) = call.ctx.audit() {
        audit.note_body(&bytes, format);
    }
    Ok(options)
}
