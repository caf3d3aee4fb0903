//! The parser of YAML: its limits, and Go's texts for its errors.

use serde::de::DeserializeSeed;

use super::limits::{MAX_MERGE_KEYS, TOO_DEEP};

/// Maximum number of parser events repeated by aliases. Merges repeat some that the walk does not see; it counts all
/// others.
const MAX_REPLAYED_EVENTS: usize = 100_000;

/// Parses a document by a seed.
///
/// # Errors
/// Those of the parser and of the seed.
pub(super) fn parse<T>(
    text: &str,
    max_depth: usize,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, serde_saphyr::Error> {
    // A body of 3 MiB, the server's limit, must be accepted. The walk limits the expansion by aliases.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: max_depth,
            max_events: 5_000_000,
            max_nodes: 2_000_000,
            // A manifest may have a hundred lines of comments in a row.
            max_buffered_comment_events: 5_000_000,
            max_merge_keys: MAX_MERGE_KEYS,
            // The walk limits the expanded size, for any number of aliases.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED_EVENTS,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        seed.deserialize(deserializer)
    })
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
pub(super) fn syntax(error: &serde_saphyr::Error) -> String {
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
    if let Some(number) = non_finite(text) {
        return format!("error converting YAML to JSON: json: unsupported value: {number}");
    }
    let (text, place) = text.rsplit_once(" at line ").unwrap_or((text, ""));
    match place.split_once(',') {
        Some((line, _)) => format!("error converting YAML to JSON: yaml: line {line}: {text}"),
        None => format!("error converting YAML to JSON: yaml: {text}"),
    }
}

/// The number of an error for one that JSON does not have, as Go prints it.
fn non_finite(text: &str) -> Option<&'static str> {
    let (_, rest) = text.split_once("non-finite float `")?;
    let (literal, _) = rest.split_once('`')?;
    Some(match literal.as_bytes() {
        [b'-', ..] => "-Inf",
        [.., b'n' | b'N'] => "NaN",
        _ => "+Inf",
    })
}
