//! The Status of a failed response, also of one that has none.

use apiloom_meta::{Status, StatusCause, StatusDetails};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::excerpt;
use crate::error::Error;

/// Most bytes of a failure that are read: texts of proxies can be long.
pub(super) const MAX_FAILURE_BYTES: usize = 1 << 20;

/// The error of a response with this code.
pub(super) fn failure(code: StatusCode, headers: &HeaderMap, body: &[u8], is_post: bool) -> Error {
    let mut status = parse(body).unwrap_or_else(|| made_up(code, body, is_post));
    // The code of HTTP is what proxies and this client judge by; that of the body is a copy.
    status.code = Some(code.as_u16());
    let details = status.details.get_or_insert_default();
    if details.retry_after_seconds == 0 {
        details.retry_after_seconds = retry_after_seconds(headers);
    }
    if *details == StatusDetails::default() {
        status.details = None;
    }
    Error::Api(Box::new(status))
}

/// The Status in a body; `None` if it is something else.
pub(super) fn parse(body: &[u8]) -> Option<Status> {
    #[derive(Deserialize)]
    struct TypeOnly {
        kind: String,
    }
    let is_status = serde_json::from_slice::<TypeOnly>(body).ok()?.kind == "Status";
    let status = is_status.then(|| serde_json::from_slice::<Status>(body));
    status?.ok()
}

/// The error of an answer with a code of success whose body is the Status of a failure.
pub(super) fn failure_in_success(body: &[u8]) -> Option<Error> {
    let status = parse(body).filter(|status| status.status == "Failure")?;
    Some(Error::Api(Box::new(status)))
}

/// Seconds of the header `Retry-After`; 0 without one. Dates are not used by API servers.
fn retry_after_seconds(headers: &HeaderMap) -> u32 {
    let value = headers.get(header::RETRY_AFTER);
    let text = value.and_then(|value| value.to_str().ok());
    text.and_then(|text| text.trim().parse().ok())
        .unwrap_or_default()
}

/// A Status for a body without one, with the reasons and messages of client-go.
fn made_up(code: StatusCode, body: &[u8], is_post: bool) -> Status {
    let (reason, message) = match code.as_u16() {
        400 => (
            "BadRequest",
            "the server rejected our request for an unknown reason",
        ),
        401 => (
            "Unauthorized",
            "the server has asked for the client to provide credentials",
        ),
        403 => (
            "Forbidden",
            "the server does not allow access to the requested resource",
        ),
        404 => (
            "NotFound",
            "the server could not find the requested resource",
        ),
        405 => (
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        406 => (
            "NotAcceptable",
            "the server was unable to respond with a content type that the client supports",
        ),
        409 if is_post => ("AlreadyExists", "the server reported a conflict"),
        409 => ("Conflict", "the server reported a conflict"),
        410 => ("Gone", "the requested state is no longer available"),
        413 => ("RequestEntityTooLarge", "the request is too large"),
        415 => (
            "UnsupportedMediaType",
            "the server does not accept the content type of the request",
        ),
        422 => (
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500..=599 => (
            "InternalError",
            "an error on the server has prevented the request from succeeding",
        ),
        _ => ("", "the server responded with an unexpected code"),
    };
    let text = excerpt::text(body);
    let cause = StatusCause {
        reason: "UnexpectedServerResponse".to_owned(),
        message: text.clone(),
        field: String::new(),
    };
    let message = if text.is_empty() {
        format!("{message} (code {})", code.as_u16())
    } else {
        format!("{message} (code {}): {text}", code.as_u16())
    };
    Status {
        status: "Failure".to_owned(),
        message,
        reason: reason.to_owned(),
        ..Status::success()
    }
    .with_details(StatusDetails {
        causes: Vec::from_iter((!text.is_empty()).then_some(cause)),
        ..StatusDetails::default()
    })
}

/// The texts of `Warning` headers: `299 - "text"`.
pub(super) fn warnings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::WARNING).iter();
    let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    texts.filter_map(|text| warning(&text)).collect()
}

fn warning(value: &str) -> Option<String> {
    let (code, rest) = value.split_once(' ')?;
    let (_agent, quoted) = rest.trim_start().split_once(' ')?;
    let quoted = quoted.trim().strip_prefix('"')?;
    if code != "299" {
        return None;
    }
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;

    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn trap_18_a_body_without_status_becomes_one_with_the_code() {
        let html = b"<html>\n<b>Bad Gateway</b>\x07</html>";
        let error = failure(StatusCode::BAD_GATEWAY, &HeaderMap::new(), html, false);
        let status = error.status().unwrap();
        assert_eq!((status.code, &*status.reason), (Some(502), "InternalError"));
        assert!(error.to_string().contains("<b>Bad Gateway</b>"), "{error}");
        assert_eq!(error.causes()[0].reason, "UnexpectedServerResponse");
    }

    #[test]
    fn trap_18_a_pretty_printed_status_is_read() {
        let text = b"{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"reason\": \"Expired\"\n}\n";
        let error = failure(StatusCode::GONE, &HeaderMap::new(), text, false);
        assert!(error.is_expired());
    }

    #[test]
    fn a_conflict_without_status_depends_on_the_method() {
        let none = HeaderMap::new();
        assert!(failure(StatusCode::CONFLICT, &none, b"", true).is_already_exists());
        assert!(failure(StatusCode::CONFLICT, &none, b"", false).is_conflict());
    }

    #[test]
    fn the_header_says_when_to_try_again() {
        let asked = headers("retry-after", "7");
        let error = failure(StatusCode::TOO_MANY_REQUESTS, &asked, b"wait", false);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        for malformed in ["", "-1", "soon", "99999999999999999999"] {
            let asked = headers("retry-after", malformed);
            let error = failure(StatusCode::TOO_MANY_REQUESTS, &asked, b"wait", false);
            assert_eq!(error.retry_after(), None, "{malformed:?}");
        }
    }

    #[test]
    fn warnings_are_unquoted() {
        let found = |value| warnings(&headers("warning", value));
        assert_eq!(
            found(r#"299 - "unknown field \"spec.x\"""#),
            ["unknown field \"spec.x\""]
        );
        for other in [r#"199 - "x""#, "299 - \"open", "299", ""] {
            assert_eq!(found(other), [""; 0], "{other:?}");
        }
    }
}
