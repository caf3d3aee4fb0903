//! DELETE on an item and on a collection.

use apiloom_meta::{ApiError, GroupVersion};
use http::request::Parts;
use http::{Response, StatusCode};

use super::Body;
use super::body::{self, RequestBody};
use super::call::Call;
use super::params::{ListUse, delete_options_of_body, delete_options_of_query, list_options};
use super::query::Query;
use crate::registry::{DeleteOptions, Deleted};

/// Answers with a Status when the object is gone, with the object while it is not.
pub(super) async fn delete(call: Call<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply()?;
    let own = call.endpoint.def().gvk().group_version();
    let options = options(call.request, &call.query, &own, call.body).await?;
    match call
        .endpoint
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
pub(super) async fn delete_collection(call: Call<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply()?;
    let list = list_options(&call.query, ListUse::List)?;
    let own = call.endpoint.def().gvk().group_version();
    let options = options(call.request, &call.query, &own, call.body).await?;
    let listed = call
        .endpoint
        .delete_collection(call.ctx, call.namespace, &list, &options)
        .await?;
    reply.list(listed).await
}

/// The body says everything when there is one; otherwise the query does.
async fn options(
    request: &Parts,
    query: &Query,
    own: &GroupVersion,
    body: RequestBody,
) -> Result<DeleteOptions, ApiError> {
    let bytes = body::read(body).await?;
    if bytes.is_empty() {
        return delete_options_of_query(query);
    }
    let (bytes, format) = body::format(&request.headers)?.document(bytes)?;
    delete_options_of_body(&bytes, format, own)
}
