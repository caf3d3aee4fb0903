//! PATCH on an item or one of its subresources.

use apiloom_meta::ApiError;
use apiloom_meta::patch::Patch;
use http::{Response, StatusCode};

use super::Body;
use super::body::{self, PatchFormat};
use super::call::ResourceCall;
use super::params::{WriteUse, write_options};
use crate::registry::refused_patch;

/// Responds with 200 and the stored object.
pub(super) async fn patch(mut call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let takes_strategic = call.endpoint.def().strategic_merge_patch;
    let format = body::patch_format(&call.request.headers, takes_strategic)?;
    let bytes = call.read_body().await?;
    let options = write_options(call.query, &call.request.headers, WriteUse::Patch)?;
    let patch = match format {
        PatchFormat::Json => Patch::parse_json(&bytes),
        PatchFormat::Merge => Patch::parse_merge(&bytes),
        PatchFormat::Strategic => Patch::parse_strategic(&bytes),
    };
    let patch = patch.map_err(|error| refused_patch(&error))?;
    call.ctx.pause().await;
    let stored = call
        .endpoint
        .writes()
        .patch(
            call.ctx,
            call.namespace,
            call.name,
            call.subresource,
            &patch,
            &options,
        )
        .await?;
    call.reply.written(StatusCode::OK, &stored)
}
