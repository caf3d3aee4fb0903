//! Reads request bodies, with a limit, and determines their format.

use apiloom_meta::codec;
use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::{ApiError, StatusDetails, StatusReason};
use apiloom_registry::auth::BoxError;
use apiloom_registry::{Catalog, PatchFormats};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::combinators::UnsyncBoxBody;

use super::format::{FORMATS, Format, listed, media_types};
use crate::received::{self, CollectError};

/// The body of a request, from a connection or from the same process.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// Limit for a body in bytes, as in kube-apiserver: twice the limit of etcd, so that every object that can be stored
/// fits.
pub(super) const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Reads the whole body.
///
/// # Errors
/// RequestEntityTooLarge above [`MAX_BODY_BYTES`]; TooManyRequests while the bodies of other requests have the memory for all of them;
/// a 500 without a reason if the client disconnects.
pub(crate) async fn read(body: RequestBody) -> Result<Bytes, ApiError> {
    let read = received::REQUESTS.collect(body, MAX_BODY_BYTES).await;
    read.map_err(|error| match error {
        CollectError::TooLong(most) => ApiError::too_large(most),
        CollectError::NoRoom => without_room(),
        CollectError::BrokenOff(error) => {
            ApiError::internal_text(format!("reading the request body: {error}"))
        }
    })
}

fn without_room() -> ApiError {
    let text =
        "the server has no memory for more request bodies at this time, please try again later";
    ApiError::new(StatusReason::TooManyRequests, text).with_details(StatusDetails {
        retry_after_seconds: 1,
        ..StatusDetails::default()
    })
}

/// The size up to which a body may grow when it is decoded; see [`codec::Decoder::expanded_bytes`].
pub(crate) fn expanded_bytes(headers: &HeaderMap, body: &[u8]) -> usize {
    // Objects and apply patches.
    if media_type(headers).ends_with("yaml") {
        codec::Decoder::new(codec::Format::Yaml).expanded_bytes(body)
    } else {
        body.len()
    }
}

/// The format of an object or of options, from `Content-Type`; JSON if the header is missing.
///
/// # Errors
/// UnsupportedMediaType.
pub(crate) fn format(headers: &HeaderMap) -> Result<&'static dyn Format, ApiError> {
    let Some(given) = headers.get(CONTENT_TYPE).filter(|given| !given.is_empty()) else {
        return Ok(FORMATS[0]);
    };
    let given = given.to_str().ok().and_then(parse_media_type);
    let given = given.ok_or_else(unsupported)?;
    let known = FORMATS.iter().find(|format| format.media_type() == given);
    known.copied().ok_or_else(unsupported)
}

fn unsupported() -> ApiError {
    none_of(&listed(media_types()))
}

/// UnsupportedMediaType with the media types that are accepted.
fn none_of(accepted: &str) -> ApiError {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    );
    ApiError::new(StatusReason::UnsupportedMediaType, message)
}

/// Converts a body to a format from which every kind can be decoded; `own` is the Protobuf message of the kind that the
/// request is for.
///
/// # Errors
/// UnsupportedMediaType for a kind without a form in the format; BadRequest for a malformed body.
pub(crate) fn document(
    format: &dyn Format,
    body: Bytes,
    catalog: &Catalog,
    own: Option<&'static ProtobufMessage>,
) -> Result<(Bytes, codec::Format), ApiError> {
    let read = format.read(body, catalog, own)?;
    read.ok_or_else(unsupported)
}

/// The supported patch formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    Json,
    Merge,
    Strategic,
    /// The document of an apply request, which is not a patch but the fields that its manager wants.
    Apply,
}

/// The format of a patch, from `Content-Type`, which is required. Not every kind takes strategic merge patches.
///
/// # Errors
/// UnsupportedMediaType: for a strategic merge patch of a kind that takes none, and for all formats that a handler refuses,
/// with a text upon which clients send a merge patch; else with the text of kube-apiserver's router.
pub(crate) fn patch_format(
    headers: &HeaderMap,
    formats: PatchFormats,
) -> Result<PatchFormat, ApiError> {
    const WITHOUT_STRATEGIC: &str =
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    let strategic = "application/strategic-merge-patch+json";
    match (media_type(headers).as_str(), formats) {
        ("application/json-patch+json", _) => Ok(PatchFormat::Json),
        ("application/merge-patch+json", _) => Ok(PatchFormat::Merge),
        (given, PatchFormats::All) if given == strategic => Ok(PatchFormat::Strategic),
        (given, _) if given == strategic => Err(none_of(WITHOUT_STRATEGIC)),
        ("application/apply-patch+yaml", _) => Ok(PatchFormat::Apply),
        (_, PatchFormats::InHandler) => Err(none_of(WITHOUT_STRATEGIC)),
        _ => {
            let error = ApiError::new(
                StatusReason::UnsupportedMediaType,
                "415: Unsupported Media Type",
            );
            Err(error.with_details(StatusDetails::default()))
        }
    }
}

/// The media type in lower case, without parameters; `None` if it or a parameter is malformed, as in Go's
/// `mime.ParseMediaType`.
fn parse_media_type(text: &str) -> Option<String> {
    let (media_type, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    let mut parameters: Vec<(String, String)> = Vec::new();
    loop {
        rest = rest.trim_start();
        // One trailing semicolon is ignored.
        if rest.is_empty() || rest.trim_end() == ";" {
            break;
        }
        let (name, value, behind) = parse_parameter(rest)?;
        let is_twice = |(other, given): &(String, String)| *other == name && *given != value;
        if parameters.iter().any(is_twice) {
            return None;
        }
        parameters.push((name, value));
        rest = behind;
    }
    let media_type = media_type.trim().to_ascii_lowercase();
    (!media_type.is_empty()).then_some(media_type)
}

/// Parses a parameter at the beginning of a text, with its semicolon; returns name, value and the rest of the text.
fn parse_parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.strip_prefix(';')?.trim_start())?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        let (value, rest) = token(rest)?;
        return Some((name.to_ascii_lowercase(), value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()? {
            (end, '"') => return Some((name.to_ascii_lowercase(), value, &quoted[end + 1..])),
            (_, '\\') => value.push(characters.next()?.1),
            (_, other) => value.push(other),
        }
    }
}

/// Parses a token at the beginning of a text; returns it and the rest.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The media type in lower case; empty if the header is missing, and an unknown type if it is malformed.
fn media_type(headers: &HeaderMap) -> String {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return String::new();
    };
    let text = value.to_str().unwrap_or("unreadable");
    text.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;
    use crate::testing;

    fn headers(content_type: &str) -> HeaderMap {
        testing::get("/x", &[("content-type", content_type)]).headers
    }

    const JSON: &str = "application/json";
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

    fn format_of(headers: &HeaderMap) -> Result<&'static str, ApiError> {
        format(headers).map(Format::media_type)
    }

    #[test]
    fn content_types_are_compared_without_parameters() {
        for (given, expected) in [
            ("", JSON),
            ("application/json", JSON),
            ("Application/JSON; charset=utf-8", JSON),
            ("application/yaml", "application/yaml"),
            (PROTOBUF, PROTOBUF),
        ] {
            assert_eq!(format_of(&headers(given)), Ok(expected), "{given}");
        }
        assert_eq!(format_of(&HeaderMap::new()), Ok(JSON));
        assert_eq!(
            format_of(&headers("application/json; a=b; c=\"d;\\\"\" ;")),
            Ok(JSON)
        );
        // A malformed header is not a media type, even if its beginning is one.
        let malformed = [
            ";;;",
            ";",
            " ",
            "application/json;;",
            "application/json; charset",
            "application/json; charset=",
            "application/json; charset=\"utf-8",
            "application/json; a=b; a=c",
            "application/json; =b",
        ];
        for given in ["application/xml", "json"].into_iter().chain(malformed) {
            let error = format_of(&headers(given)).expect_err(given);
            assert_eq!(
                error.message,
                "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
            );
            assert_eq!(error.details, None);
        }
    }

    #[test]
    fn patches_name_a_format_that_is_served() {
        assert_eq!(
            patch_format(
                &headers("application/merge-patch+json; x=y"),
                PatchFormats::WithoutStrategic
            ),
            Ok(PatchFormat::Merge)
        );
        assert_eq!(
            patch_format(&headers("application/json-patch+json"), PatchFormats::All),
            Ok(PatchFormat::Json)
        );
        assert_eq!(
            patch_format(
                &headers("application/strategic-merge-patch+json"),
                PatchFormats::All
            ),
            Ok(PatchFormat::Strategic)
        );
        assert_eq!(
            patch_format(
                &headers("application/apply-patch+yaml"),
                PatchFormats::WithoutStrategic
            ),
            Ok(PatchFormat::Apply)
        );
        let strategic = headers("application/strategic-merge-patch+json");
        let error =
            patch_format(&strategic, PatchFormats::WithoutStrategic).expect_err("no merge keys");
        assert_eq!(
            error.message,
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        );
        assert_eq!(error.details, None);
        for given in ["", "application/json"] {
            let error =
                patch_format(&headers(given), PatchFormats::WithoutStrategic).expect_err(given);
            assert_eq!(
                (error.message.as_str(), error.details),
                ("415: Unsupported Media Type", Some(Box::default()))
            );
        }
        for given in [
            "",
            "application/json",
            "application/strategic-merge-patch+json",
        ] {
            let refused = patch_format(&headers(given), PatchFormats::InHandler);
            assert_eq!(refused.expect_err(given), error, "{given}");
        }
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused() {
        let read_zeros = |length: usize| {
            let body = Full::new(Bytes::from(vec![0; length])).map_err(|never| match never {});
            read(body.boxed_unsync())
        };
        assert_eq!(
            read_zeros(MAX_BODY_BYTES).await.map(|b| b.len()),
            Ok(MAX_BODY_BYTES)
        );
        let error = read_zeros(MAX_BODY_BYTES + 1).await.expect_err("too large");
        assert_eq!(error.message, "Request entity too large: limit is 3145728");
        assert_eq!(error.reason, Some(StatusReason::RequestEntityTooLarge));
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_is_refused_too() {
        let chunks = (0..4).map(|_| Ok(http_body::Frame::data(Bytes::from(vec![0; 1024 * 1024]))));
        let body = http_body_util::StreamBody::new(futures_util::stream::iter(chunks));
        assert!(read(body.boxed_unsync()).await.is_err());
    }
}
