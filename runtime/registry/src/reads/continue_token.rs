//! Continue tokens of paged lists, in the format of kube-apiserver.

use apiloom_meta::ApiError;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde::{Deserialize, Serialize};

use crate::options::ListOptions;

/// The version of the token format; there is only one.
const VERSION: &str = "meta.k8s.io/v1";

/// Revision of a token that continues at the present state (an inconsistent list).
const LATEST: i64 = -1;

/// Base64 as Go reads it: the bits behind the last byte may have any value.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Content of a token. The order of the fields is that of the JSON.
#[derive(Serialize, Deserialize)]
struct Token {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

/// A decoded token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continue {
    /// Revision of the list; `None` for the present state.
    pub(crate) at: Option<u64>,
    /// Key at which the next page starts.
    pub(crate) start: String,
}

/// A token that continues behind `last`, a key below `prefix`, at a revision.
pub(crate) fn encode(prefix: &str, last: &str, revision: u64) -> String {
    // NUL is the smallest byte, so this is the smallest key greater than `last`.
    token(
        i64::try_from(revision).unwrap_or(LATEST),
        format!("{}\0", last.strip_prefix(prefix).unwrap_or(last)),
    )
}

/// A token that continues at `start`, a key below `prefix`, at the state that is present then.
pub(crate) fn encode_inconsistent(prefix: &str, start: &str) -> String {
    token(
        LATEST,
        start.strip_prefix(prefix).unwrap_or(start).to_owned(),
    )
}

fn token(rv: i64, start: String) -> String {
    let token = Token {
        v: VERSION.to_owned(),
        rv,
        start,
    };
    BASE64.encode(serde_json::to_vec(&token).expect("a struct of strings and a number is JSON"))
}

/// The token of a request, beside which a resourceVersion means nothing.
///
/// # Errors
/// Those of [`decode`]; BadRequest for a resourceVersion other than 0.
pub(crate) fn of_options(options: &ListOptions, prefix: &str) -> Result<Continue, ApiError> {
    let token = decode(&options.continue_token, prefix)?;
    if !matches!(&*options.resource_version, "" | "0") {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    Ok(token)
}

/// Decodes a token.
///
/// # Errors
/// BadRequest with the texts of kube-apiserver.
fn decode(token: &str, prefix: &str) -> Result<Continue, ApiError> {
    decode_token(token, prefix)
        .map_err(|why| ApiError::bad_request(format!("invalid continue token: {why}")))
}

fn decode_token(token: &str, prefix: &str) -> Result<Continue, String> {
    let json = BASE64
        .decode(token)
        .map_err(|e| format!("continue key is not valid: {}", base64_text(&e, token)))?;
    let token: Token =
        serde_json::from_slice(&json).map_err(|e| format!("continue key is not valid: {e}"))?;
    if token.v != VERSION {
        return Err(format!(
            "continue key is not valid: server does not recognize this encoded version {}",
            token.v
        ));
    }
    if token.rv == 0 {
        return Err(format!(
            "continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})"
        ));
    }
    if token.start.is_empty() {
        return Err(format!(
            "continue key is not valid: encoded start key empty (version {VERSION})"
        ));
    }
    let suffix = token.start.strip_prefix('/').unwrap_or(&token.start);
    // Only keys below the prefix are allowed: `..` or an empty segment would leave it.
    if suffix
        .split('/')
        .any(|segment| segment.is_empty() || segment == "." || segment == "..")
    {
        return Err(format!("continue key is not valid: {}", token.start));
    }
    Ok(Continue {
        at: u64::try_from(token.rv).ok(),
        start: format!("{prefix}{suffix}"),
    })
}

/// The error text of Go's encoding/base64.
fn base64_text(error: &base64::DecodeError, token: &str) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            *at
        }
        // The characters that are too few for a byte begin there.
        _ => token.len().saturating_sub(1),
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/registry/g/things/";

    fn raw(json: &str) -> String {
        BASE64.encode(json)
    }

    #[test]
    fn a_token_is_the_json_that_upstream_writes() {
        let token = encode(PREFIX, "/registry/g/things/ns/a", 592);
        assert_eq!(
            BASE64.decode(&token).unwrap(),
            br#"{"v":"meta.k8s.io/v1","rv":592,"start":"ns/a\u0000"}"#
        );
        let expected = Continue {
            at: Some(592),
            start: "/registry/g/things/ns/a\0".to_owned(),
        };
        assert_eq!(decode(&token, PREFIX).unwrap(), expected);
    }

    #[test]
    fn a_start_with_a_leading_slash_means_the_same() {
        let token = raw(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"/ns/a\u0000"}"#);
        assert_eq!(
            decode(&token, PREFIX).unwrap().start,
            "/registry/g/things/ns/a\0"
        );
    }

    #[test]
    fn an_inconsistent_token_has_no_revision() {
        let token = encode_inconsistent(PREFIX, "/registry/g/things/ns/a\0");
        let expected = Continue {
            at: None,
            start: "/registry/g/things/ns/a\0".to_owned(),
        };
        assert_eq!(decode(&token, PREFIX).unwrap(), expected);
    }

    fn check(token: &str, expected: &str) {
        assert_eq!(
            decode(token, PREFIX).unwrap_err().message,
            format!("invalid continue token: continue key is not valid: {expected}")
        );
    }

    #[test]
    fn broken_tokens_are_named() {
        check("a!b", "illegal base64 data at input byte 1");
        check("x", "illegal base64 data at input byte 0");
        // Bits that are left over are no error of the encoding.
        check("e30", "server does not recognize this encoded version ");
        check("e31", "server does not recognize this encoded version ");
        check("abcde", "illegal base64 data at input byte 4");
        check(&raw("{"), "EOF while parsing an object at line 1 column 1");
        check(
            &raw(r#"{"v":"v9","rv":1,"start":"a"}"#),
            "server does not recognize this encoded version v9",
        );
        check(
            &raw(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        );
        check(
            &raw(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#),
            "encoded start key empty (version meta.k8s.io/v1)",
        );
        check(
            &raw(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#),
            "../x",
        );
        check(
            &raw(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#),
            "a//b",
        );
    }
}
