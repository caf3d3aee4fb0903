//! PATCH on an item or one of its subresources, apply included.

use apiloom_meta::ApiError;
use apiloom_meta::codec::Format;
use apiloom_meta::patch::Patch;
use apiloom_registry::{FieldValidation, PatchOptions, refused_patch};
use http::{Response, StatusCode};

use super::call::ResourceCall;
use crate::request::params::{WriteUse, patch_options};
use crate::response::Body;
use crate::shape::body::{self, PatchFormat};

/// Responds with 200 and the stored object.
pub(crate) async fn patch(mut call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let formats = call.endpoint.patch_formats(call.subresource);
    let format = body::patch_format(&call.request.headers, formats)?;
    let bytes = call.read_body().await?;
    let write_use = match format {
        PatchFormat::Apply => WriteUse::Apply,
        PatchFormat::Json | PatchFormat::Merge | PatchFormat::Strategic => WriteUse::Patch,
    };
    let options = patch_options(call.query, &call.request.headers, write_use)?;
    audit(&call, &bytes, format);
    let is_checked = options.field_validation != FieldValidation::Ignore;
    let patch = match format {
        PatchFormat::Json if is_checked => Patch::parse_json(&bytes),
        PatchFormat::Json => Patch::parse_json_freely(&bytes),
        PatchFormat::Merge if is_checked => Patch::parse_merge(&bytes),
        PatchFormat::Merge => Patch::parse_merge_freely(&bytes),
        PatchFormat::Strategic => Patch::parse_strategic(&bytes),
        PatchFormat::Apply => return apply(call, &bytes, &options).await,
    };
    let patch = patch.map_err(|error| refused_patch(&error))?;
    call.ctx.pause().await?;
    let request = call.write_request().with(&options);
    let stored = call.endpoint.writes().patch(request, &patch).await?;
    call.reply.written(StatusCode::OK, &stored)
}

/// Server-side apply: responds with 200 and the stored object, or 201 if it was created.
async fn apply(
    call: ResourceCall<'_>,
    bytes: &[u8],
    options: &PatchOptions,
) -> Result<Response<Body>, ApiError> {
    let writes = call.endpoint.writes();
    let document = writes.decode_applied(bytes)?;
    call.ctx.pause().await?;
    let request = call.write_request().with(options);
    let (stored, created) = writes.apply(request, &document).await?;
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    call.reply.written(status, &stored)
}

/// Notes the patch for the audit.
fn audit(call: &ResourceCall<'_>, bytes: &[u8], format: PatchFormat) {
    if let Some(audit) = call.ctx.audit() {
        let schema = call.endpoint.schema();
        call.ctx.work(|| match format {
            PatchFormat::Json => audit.note_steps(bytes, schema),
            PatchFormat::Merge | PatchFormat::Strategic => {
                audit.note_patch(bytes, Format::Json, schema);
            }
            // Always read as YAML, of which JSON is a part.
            PatchFormat::Apply => audit.note_patch(bytes, Format::Yaml, schema),
        });
    }
}
