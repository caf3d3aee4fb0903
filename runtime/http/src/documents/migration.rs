//! `POST /storage/migrate`: rewrites stored objects that are not stored as they would be now.
//!
//! The response is a stream of JSON lines: reports on the resources, one after the other, and at the end a Status. A
//! stream without a Status was interrupted, and the next request continues. The migration runs only while the client reads
//! the response.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use apiloom_meta::codec::Encoder;
use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, GroupResource, ListMeta, Status, StatusReason};
use apiloom_registry::{Migration, MigrationOptions, MigrationReport, Registry};
use bytes::Bytes;
use futures_util::Stream;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde::Serialize;

use crate::request::query::Query;
use crate::response::{Body, CutOff, IsWatch};
use crate::shape::error::{method_not_allowed, status};
use crate::streams::shutdown_signal::ShutdownSignal;

/// Responds to a request for the endpoint.
///
/// # Errors
/// MethodNotAllowed for other methods than POST; those of the parameters.
pub(crate) fn respond(
    request: &Parts,
    query: &Query,
    registry: &Arc<Registry>,
    stopping: ShutdownSignal,
) -> Result<Response<Body>, ApiError> {
    if request.method != Method::POST {
        return Err(method_not_allowed());
    }
    let migration = registry.migrate(options(query)?)?;
    let running = Running {
        migration,
        failed: 0,
        first_error: None,
    };
    let mut response = Response::new(StreamBody::new(lines(running, stopping)).boxed_unsync());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    // Lines are neither compressed nor delayed.
    response
        .extensions_mut()
        .insert(IsWatch { has_lines: true });
    Ok(response)
}

/// Reads the parameters `resource` (several times), `dryRun` and `maxWritesPerSecond`.
fn options(query: &Query) -> Result<MigrationOptions, ApiError> {
    let dry_run = match query.text("dryRun") {
        "" => false,
        "All" => true,
        other => {
            return Err(ApiError::bad_request(format!(
                "dryRun is {}; the only value is \"All\"",
                go_quote(&echoed(other))
            )));
        }
    };
    let rate = query.first("maxWritesPerSecond").map(|text| {
        text.parse::<NonZeroU32>().map_err(|_| {
            ApiError::bad_request(format!(
                "maxWritesPerSecond is {}, which is not a number from 1 to {}",
                go_quote(&echoed(text)),
                u32::MAX
            ))
        })
    });
    let resources = query.all("resource").map(|name| {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        GroupResource::new(group, resource)
    });
    Ok(MigrationOptions {
        resources: resources.collect(),
        dry_run,
        max_writes_per_second: rate.transpose()?,
    })
}

/// A migration, and what its last line says.
struct Running {
    migration: Migration,
    failed: u64,
    first_error: Option<String>,
}

/// The lines of the response. When the server shuts down, the stream ends without a Status.
fn lines(
    running: Running,
    stopping: ShutdownSignal,
) -> impl Stream<Item = Result<Frame<Bytes>, CutOff>> {
    let state = Some(Box::new((running, Box::pin(stopping.wait()))));
    futures_util::stream::unfold(state, async |state| {
        let mut state = state?;
        let (running, stopping) = &mut *state;
        let next = tokio::select! {
            biased;
            () = stopping => return None,
            next = running.migration.next() => next,
        };
        let (line, goes_on) = match next {
            Some(Ok(report)) => (running.report(report), true),
            Some(Err(error)) => (Encoder::json(&status(&error)), false),
            None => (Encoder::json(&running.end()), false),
        };
        let line = [&line, &b"\n"[..]].concat();
        Some((Ok(Frame::data(line.into())), goes_on.then_some(state)))
    })
}

impl Running {
    fn report(&mut self, report: MigrationReport) -> Bytes {
        if report.is_complete {
            self.failed += report.failed;
        }
        if self.first_error.is_none() {
            self.first_error = report.errors.first().cloned();
        }
        Encoder::json(&ReportLine {
            resource: report.resource.to_string(),
            storage_version: report.storage_version,
            objects: report.objects,
            rewritten: report.rewritten,
            failed: report.failed,
            stored_versions: report.stored_versions,
            errors: report.errors,
            complete: report.is_complete,
        })
    }

    fn end(&mut self) -> Status {
        match self.first_error.take() {
            None => Status {
                kind: "Status".to_owned(),
                api_version: "v1".to_owned(),
                metadata: ListMeta::default(),
                status: "Success".to_owned(),
                message: String::new(),
                reason: String::new(),
                details: None,
                code: None,
            },
            Some(first) => status(&ApiError::new(
                StatusReason::InternalError,
                match self.failed {
                    0 => format!("not all resources were migrated; the first: {first}"),
                    failed => {
                        format!("{failed} objects could not be rewritten; the first: {first}")
                    }
                },
            )),
        }
    }
}

/// A report as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportLine {
    resource: String,
    storage_version: String,
    objects: u64,
    rewritten: u64,
    failed: u64,
    stored_versions: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    complete: bool,
}
