//! Errors on the wire: the table from reasons to HTTP status codes, and `Status` responses.

use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::protobuf::STATUS;
use apiloom_meta::{ApiError, Status, StatusDetails, StatusReason};
use http::header::{CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use super::format::{Sink, Writer};
use super::negotiate::negotiate_error;
use crate::request::accept::Accepts;
use crate::request::query::Query;
use crate::response::{Body, full, plain};

/// The HTTP status code of an error; 500 without a reason.
pub fn code(reason: Option<StatusReason>) -> StatusCode {
    let Some(reason) = reason else {
        return StatusCode::INTERNAL_SERVER_ERROR;
    };
    match reason {
        StatusReason::BadRequest => StatusCode::BAD_REQUEST,
        StatusReason::Unauthorized => StatusCode::UNAUTHORIZED,
        StatusReason::Forbidden => StatusCode::FORBIDDEN,
        StatusReason::NotFound => StatusCode::NOT_FOUND,
        StatusReason::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        StatusReason::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        StatusReason::AlreadyExists | StatusReason::Conflict => StatusCode::CONFLICT,
        StatusReason::Gone | StatusReason::Expired => StatusCode::GONE,
        StatusReason::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        StatusReason::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusReason::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        StatusReason::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        StatusReason::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        StatusReason::Timeout => StatusCode::GATEWAY_TIMEOUT,
        // InternalError and ServerTimeout; other reasons are 500 until they are listed here.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The HTTP status code of an error: that of the other program whose answer it is, else that of its reason.
pub fn code_of(error: &ApiError) -> StatusCode {
    let foreign = error.foreign.as_ref().and_then(|status| status.code);
    foreign
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or_else(|| code(error.reason))
}

/// Limits for the message of an error, and for that of one cause. Parts of a request are truncated where the text is
/// built; these limits are for texts where that was forgotten.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
const MAX_CAUSE_BYTES: usize = 4 * 1024;

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("...TRUNCATED");
    }
}

/// The `Status` object of an error.
pub fn status(error: &ApiError) -> Status {
    let mut status = Status::failure(error);
    cut(&mut status.message, MAX_MESSAGE_BYTES);
    let details = status.details.iter_mut();
    for cause in details.flat_map(|details| &mut details.causes) {
        cut(&mut cause.message, MAX_CAUSE_BYTES);
    }
    status.code = Some(code_of(error).as_u16());
    status
}

/// The response to a failed request, with the error's code, in the format that [`negotiate_error`] chose.
pub(crate) fn respond_as(error: &ApiError, format: &dyn Writer) -> Response<Body> {
    let json = Encoder::json(&status(error));
    let show = |out: &mut dyn Sink| {
        out.describe(&STATUS);
        out.json(&json);
    };
    let body = format.document(&show, json.len());
    let mut response = Response::new(full(body));
    *response.status_mut() = code_of(error);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if let Some(seconds) = error
        .details
        .as_ref()
        .map(|d| d.retry_after_seconds)
        .filter(|s| *s > 0)
    {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The response to a request that failed before its query was parsed, except for the parameter `pretty`.
pub fn respond(error: &ApiError, request: &Parts) -> Response<Body> {
    let accepts = Accepts::new(&request.headers);
    let query = Query::of_parameter(&request.uri, "pretty");
    respond_as(error, negotiate_error(&accepts, &query))
}

/// The 404 response for an unknown path: plain text, as in Go's mux.
pub fn page_not_found() -> Response<Body> {
    let mut response = plain(StatusCode::NOT_FOUND, "404 page not found\n");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The error for a method that the path does not support.
pub(crate) fn method_not_allowed() -> ApiError {
    let message = "the server does not allow this method on the requested resource";
    ApiError::new(StatusReason::MethodNotAllowed, message).with_details(StatusDetails::default())
}

/// Refuses methods other than GET; like kube-apiserver's router, documents do not support HEAD.
///
/// # Errors
/// MethodNotAllowed.
pub(crate) fn only_get(request: &Parts) -> Result<(), ApiError> {
    if request.method == Method::GET {
        return Ok(());
    }
    Err(method_not_allowed())
}

#[cfg(test)]
mod tests {
    use apiloom_meta::GroupResource;

    use super::*;
    use crate::testing;

    fn check(error: &ApiError, accept: &str, code: u16, body: &str) {
        let response = respond(error, &testing::get("/x", &[("accept", accept)]));
        assert_eq!(response.status().as_u16(), code);
        assert_eq!(testing::body(response), body);
    }

    fn foo() -> GroupResource {
        GroupResource::new("g.io", "foos")
    }

    #[test]
    fn a_failure_has_every_key_in_the_order_of_the_api() {
        check(
            &ApiError::not_found(&foo(), "a<b"),
            "application/json",
            404,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"foos.g.io \\\"a\\u003cb\\\" not found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"a\\u003cb\",\"group\":\"g.io\",\"kind\":\"foos\"},\"code\":404}\n",
        );
    }

    #[test]
    fn details_are_left_out_or_empty_as_the_error_says() {
        check(
            &ApiError::bad_request("no"),
            "",
            400,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"BadRequest\",\"code\":400}\n",
        );
        check(
            &ApiError::no_such_resource(),
            "",
            404,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"the server could not find the requested resource\",\"reason\":\"NotFound\",\"details\":{},\"code\":404}\n",
        );
    }

    #[test]
    fn an_internal_text_has_no_reason() {
        check(
            &ApiError::internal_text("boom"),
            "",
            500,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"boom\",\"code\":500}\n",
        );
    }

    #[test]
    fn a_client_that_accepts_nothing_gets_indented_json_with_the_own_code() {
        check(
            &ApiError::bad_request("no"),
            "text/html",
            400,
            "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"no\",\n  \"reason\": \"BadRequest\",\n  \"code\": 400\n}",
        );
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(200_000);
        let status = status(&ApiError::internal(&*long));
        let cause = &status.details.unwrap().causes[0].message;
        for (text, most) in [
            (&status.message, MAX_MESSAGE_BYTES),
            (cause, MAX_CAUSE_BYTES),
        ] {
            assert!(text.ends_with("é...TRUNCATED"), "{text:.100}");
            assert!((most..most + 20).contains(&text.len()), "{}", text.len());
        }
    }

    #[test]
    fn retry_after_is_also_a_header() {
        let mut error = ApiError::new(StatusReason::TooManyRequests, "later");
        let details = apiloom_meta::StatusDetails {
            retry_after_seconds: 3,
            ..Default::default()
        };
        assert_eq!(
            respond(&error, &testing::get("/x", &[]))
                .headers()
                .get("retry-after"),
            None
        );
        error = error.with_details(details);
        let response = respond(&error, &testing::get("/x", &[]));
        assert_eq!(
            (
                response.status().as_u16(),
                testing::header(&response, "retry-after")
            ),
            (429, "3")
        );
    }
}
