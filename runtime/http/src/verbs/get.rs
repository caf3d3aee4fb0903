//! GET on an item or one of its subresources, which show the whole object too, or its Scale.

use apiloom_meta::ApiError;
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::get_options;
use crate::response::Body;

/// Responds with 200 and the object; the parameter `watch` is ignored.
pub(crate) async fn get(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let reply = call.reply;
    let options = get_options(call.query)?;
    let object = call
        .endpoint
        .reads()
        .get(call.ctx, call.namespace, call.name, &options)
        .await?;
    if call.endpoint.writes().is_scale(call.subresource) {
        let object = call
            .endpoint
            .writes()
            .shown(call.subresource, &*object.object()?)?;
        return reply.object(StatusCode::OK, &object);
    }
    if reply.is_table() {
        let json = object.json(call.endpoint.schema());
        let bytes = json.whole().len();
        call.endpoint.resource().reserve(call.ctx, bytes).await;
        return call.ctx.work(|| reply.json(StatusCode::OK, &json));
    }
    reply.document(StatusCode::OK, &object)
}
