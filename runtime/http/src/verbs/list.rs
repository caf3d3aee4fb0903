//! GET on a collection.

use apiloom_meta::ApiError;
use apiloom_meta::kind::Verb;
use http::Response;

use super::call::ResourceCall;
use crate::request::params::{ListUse, list_options};
use crate::response::Body;

/// Responds with 200 and the selected objects.
pub(crate) async fn list(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply;
    let read = || list_options(call.query, ListUse::List);
    let bytes = call.query.bytes();
    let options = call
        .endpoint
        .resource()
        .read_query(call.ctx, bytes, read)
        .await?;
    let def = call.endpoint.def();
    if !def.has_verb(Verb::List) {
        return Err(ApiError::method_not_supported(
            &def.group_resource(),
            "list",
        ));
    }
    let listed = call
        .endpoint
        .reads()
        .list(call.ctx, call.namespace, &options)
        .await?;
    reply.list(listed).await
}
