//! Syntax errors with the texts of Go's decoders, which users and scripts know from Kubernetes.

use super::limits::{MAX_MERGE_KEYS, TOO_DEEP};

/// Go's text for an error of serde_json in `body`.
pub(super) fn json(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    let place = match text {
        "expected value" => "looking for beginning of value",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "key must be a string" => "looking for beginning of object key string",
        "trailing characters" => "after top-level value",
        "invalid escape" => "in string escape code",
        "invalid number" => "in numeric literal",
        "expected ident" => "in literal",
        "trailing comma" => "looking for beginning of value",
        text if text.starts_with("control character") => "in string literal",
        text if text.starts_with("recursion limit") => return TOO_DEEP.to_owned(),
        other => return format!("json: {other}"),
    };
    match at(error, body) {
        Some(found) => {
            let place = if text == "trailing comma" && found == '}' {
                "looking for beginning of object key string"
            } else {
                place
            };
            format!("invalid character {} {place}", quoted(found))
        }
        None => format!("json: {text}"),
    }
}

/// Whether the parser stopped at the maximum nesting.
pub(super) fn is_over_depth(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::{Error, budget::BudgetBreach};
    match error {
        Error::AliasError { error, .. } => is_over_depth(error),
        Error::Budget { breach, .. } => matches!(breach, BudgetBreach::Depth { .. }),
        _ => false,
    }
}

/// Whether a YAML document has too many merge keys.
fn has_too_many_merges(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::{Error, budget::BudgetBreach};
    match error {
        Error::AliasError { error, .. } => has_too_many_merges(error),
        Error::Budget { breach, .. } => matches!(breach, BudgetBreach::MergeKeys { .. }),
        _ => false,
    }
}

/// Go's text for an error of the YAML parser, which begins with the line.
pub(super) fn yaml(error: &serde_saphyr::Error) -> String {
    if has_too_many_merges(error) {
        return format!(
            "error converting YAML to JSON: yaml: more than {MAX_MERGE_KEYS} merge keys (<<)"
        );
    }
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let limits = ["recursion limit", TOO_DEEP];
    if is_over_depth(error) || limits.iter().any(|deep| text.contains(deep)) {
        return TOO_DEEP.to_owned();
    }
    let (text, place) = text.rsplit_once(" at line ").unwrap_or((text, ""));
    match place.split_once(',') {
        Some((line, _)) => format!("error converting YAML to JSON: yaml: line {line}: {text}"),
        None => format!("error converting YAML to JSON: yaml: {text}"),
    }
}

/// The character at the position of an error.
fn at(error: &serde_json::Error, body: &[u8]) -> Option<char> {
    let line = body
        .split(|byte| *byte == b'\n')
        .nth(error.line().checked_sub(1)?)?;
    match error.column().checked_sub(1) {
        // serde_json counts a line break as column 0 of the next line.
        None => Some('\n'),
        Some(column) => {
            let rest =
                String::from_utf8_lossy(line.get(column..)?.get(..4.min(line.len() - column))?)
                    .into_owned();
            rest.chars().next()
        }
    }
}

/// A character as Go quotes it in these errors.
fn quoted(found: char) -> String {
    match found {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        other => {
            let text = crate::field::go_quote(&other.to_string());
            format!("'{}'", &text[1..text.len() - 1])
        }
    }
}
