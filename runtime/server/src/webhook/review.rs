//! The reviews that webhooks answer with.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A review as a webhook answers it: its kind, which may be left out, and its status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<S> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default = "Option::default")]
    status: Option<S>,
}

/// The status of a review of this kind and group, in the version v1 or v1beta1; its default if the answer has none.
///
/// # Errors
/// If the answer is no such review.
pub fn status_of_review<S: DeserializeOwned + Default>(
    answer: &[u8],
    kind: &str,
    group: &str,
) -> Result<S, String> {
    let no_review = |why: String| format!("the answer of the webhook is no {kind}: {why}");
    // An array is no object, although its items could be the members of one.
    if answer.trim_ascii_start().first() != Some(&b'{') {
        return Err(no_review("it is no JSON object".to_owned()));
    }
    let review: Review<S> =
        serde_json::from_slice(answer).map_err(|error| no_review(error.to_string()))?;
    let version = review.api_version.strip_prefix(group);
    let is_version = matches!(version, Some("/v1" | "/v1beta1")) || review.api_version.is_empty();
    if !is_version || !["", kind].contains(&&*review.kind) {
        return Err(no_review(format!(
            "unexpected kind {:?} of {:?}",
            review.kind, review.api_version
        )));
    }
    Ok(review.status.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    struct Status {
        allowed: bool,
    }

    fn status(answer: &str) -> Result<Status, String> {
        status_of_review(answer.as_bytes(), "Review", "example.com")
    }

    #[test]
    fn an_answer_has_the_status_of_its_review() {
        let allowed = |version: &str| {
            let answer = format!(
                r#" {{"kind":"Review","apiVersion":"example.com/{version}","status":{{"allowed":true}}}}"#
            );
            status(&answer).map(|status| status.allowed)
        };
        assert_eq!(allowed("v1"), Ok(true));
        assert_eq!(allowed("v1beta1"), Ok(true));
        assert!(allowed("v2").is_err());
        for open in ["{}", r#"{"kind":"Review"}"#, r#"{"status":null}"#] {
            assert_eq!(status(open), Ok(Status::default()), "{open}");
        }
    }

    #[test]
    fn other_documents_are_no_answers() {
        for (answer, why) in [
            ("", "it is no JSON object"),
            ("[]", "it is no JSON object"),
            ("{", "EOF"),
            (r#"{"status":{"allowed":"yes"}}"#, "invalid type"),
            (r#"{"kind":"Status"}"#, "unexpected kind \"Status\""),
            (r#"{"apiVersion":"v1"}"#, "of \"v1\""),
        ] {
            let error = status(answer).unwrap_err();
            assert!(
                error.starts_with("the answer of the webhook is no Review: "),
                "{error}"
            );
            assert!(error.contains(why), "{error}");
        }
    }
}
