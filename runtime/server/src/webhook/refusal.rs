//! The texts of responses without success, as those of client-go.

use http::StatusCode;
use serde::Deserialize;

/// Most characters of a body that are shown.
const SHOWN: usize = 200;

#[derive(Deserialize)]
struct Message {
    kind: String,
    #[serde(default)]
    message: String,
}

/// What a response says that has another code than those of success.
pub(super) fn text(code: StatusCode, body: &[u8]) -> String {
    if let Ok(status) = serde_json::from_slice::<Message>(body)
        && status.kind == "Status"
        && !status.message.is_empty()
    {
        return shown(&status.message);
    }
    let known = match code.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => "the server does not allow access to the requested resource",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        413 => "the server responded that the request is too large",
        415 => "the server rejected the content type of our request",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        300..=399 => {
            return format!(
                "the server redirects (code {}), which is not followed",
                code.as_u16()
            );
        }
        500..=599 => {
            let body = shown(&String::from_utf8_lossy(body));
            return format!(
                "an error on the server ({body:?}) has prevented the request from succeeding"
            );
        }
        other => {
            return format!(
                "the server responded with the status code {other} but did not return more information"
            );
        }
    };
    known.to_owned()
}

/// The beginning of a text, in one line.
fn shown(text: &str) -> String {
    let text = text.trim();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_without_success_have_texts() {
        let check = |code: u16, body: &str, expected: &str| {
            let text = text(StatusCode::from_u16(code).unwrap(), body.as_bytes());
            assert_eq!(text, expected);
        };
        check(
            404,
            "404 page not found\n",
            "the server could not find the requested resource",
        );
        check(
            500,
            "out of paint\n",
            "an error on the server (\"out of paint\") has prevented the request from succeeding",
        );
        check(
            307,
            "",
            "the server redirects (code 307), which is not followed",
        );
        check(
            418,
            "",
            "the server responded with the status code 418 but did not return more information",
        );
        check(503, r#"{"kind":"Status","message":"painting"}"#, "painting");
        check(
            503,
            r#"{"kind":"Status"}"#,
            "the server is currently unable to handle the request",
        );
        check(
            503,
            r#"{"kind":"Other","message":"x"}"#,
            "the server is currently unable to handle the request",
        );
        let long = "é".repeat(1000);
        let text = text(StatusCode::INTERNAL_SERVER_ERROR, long.as_bytes());
        assert!(text.len() < 600 && text.contains('…'), "{text}");
    }
}
