//! `Warning` headers: `299 - "text"`, within the limits of proxies and clients.

use http::header::WARNING;
use http::{HeaderMap, HeaderValue};

/// Maximum number of characters of all warnings together; above it each one is truncated.
const BUDGET_CHARS: usize = 4096;
/// Length to which warnings are truncated.
const CUT_CHARS: usize = 256;

/// Adds one header per text, in order.
pub(crate) fn add(headers: &mut HeaderMap, texts: &[String]) {
    for value in values(texts) {
        // The value has no control characters, so it is always valid.
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(WARNING, value);
        }
    }
}

fn values(texts: &[String]) -> Vec<String> {
    let mut distinct: Vec<&str> = Vec::with_capacity(texts.len());
    for text in texts {
        if !text.is_empty() && !distinct.contains(&text.as_str()) {
            distinct.push(text);
        }
    }
    let total: usize = distinct.iter().map(|text| text.chars().count()).sum();
    if total <= BUDGET_CHARS {
        return distinct
            .into_iter()
            .map(|text| value(text.chars()))
            .collect();
    }
    let mut written = 0;
    let mut out = Vec::new();
    for text in distinct {
        if written >= BUDGET_CHARS {
            break;
        }
        written += text.chars().count().min(CUT_CHARS);
        out.push(value(text.chars().take(CUT_CHARS)));
    }
    out
}

/// The header's value: quoted, without control characters.
fn value(text: impl Iterator<Item = char>) -> String {
    let mut out = String::from("299 - \"");
    for c in text.filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], expected: &[&str]) {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(values(&texts), expected);
    }

    #[test]
    fn a_warning_is_quoted_and_loses_control_characters() {
        check(
            &["unknown field \"metadata.foo\""],
            &[r#"299 - "unknown field \"metadata.foo\"""#],
        );
        check(&["a\\b\nc\u{7f}"], &[r#"299 - "a\\bc""#]);
    }

    #[test]
    fn a_text_is_sent_once_and_an_empty_one_never() {
        check(&["a", "", "b", "a"], &["299 - \"a\"", "299 - \"b\""]);
    }

    #[test]
    fn within_the_budget_nothing_is_cut() {
        let long = "x".repeat(BUDGET_CHARS);
        check(&[&long], &[&format!("299 - \"{long}\"")]);
    }

    #[test]
    fn over_the_budget_each_is_cut_and_the_rest_dropped() {
        let texts: Vec<String> = (0..20)
            .map(|n| format!("{n:03}{}", "é".repeat(400)))
            .collect();
        let got = values(&texts);
        assert_eq!(got.len(), BUDGET_CHARS / CUT_CHARS);
        assert_eq!(
            got[1],
            format!("299 - \"001{}\"", "é".repeat(CUT_CHARS - 3))
        );
    }

    #[test]
    fn texts_beyond_ascii_become_headers() {
        let mut headers = HeaderMap::new();
        add(&mut headers, &["grün".to_owned()]);
        assert_eq!(
            headers.get(WARNING).map(HeaderValue::as_bytes),
            Some("299 - \"grün\"".as_bytes())
        );
    }
}
