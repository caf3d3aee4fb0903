//! GET on a collection with the parameter `count`.

use apiloom_meta::{ApiError, Status};
use apiloom_registry::ListOptions;
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::{ListUse, list_options};
use crate::response::Body;

/// Responds with 200 and a Status, whose message is the number of the selected objects. Pages are left out of account.
pub(crate) async fn count(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let read = || list_options(call.query, ListUse::List);
    let bytes = call.query.bytes();
    let resource = call.endpoint.resource();
    let options = resource.read_query(call.ctx, bytes, read).await?;
    let options = ListOptions {
        limit: 0,
        continue_token: String::new(),
        ..options
    };
    let reads = call.endpoint.reads();
    let listed = reads.list(call.ctx, call.namespace, &options).await?;
    let mut items = listed.items.iter();
    let number = items.try_fold(0_u64, |number, item| item.map(|_| number + 1))?;
    let status = Status {
        message: number.to_string(),
        ..Status::success()
    };
    Ok(call.reply.status(StatusCode::OK, status))
}
