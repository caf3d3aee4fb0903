//! Parts of an answer for errors. Answers can be Secrets and tokens: of JSON only its form is shown, without the texts of values.

/// Most bytes of an answer that are shown.
const MAX_BYTES: usize = 512;

/// How much is shown before and after a position.
const BEFORE: usize = 60;
const AFTER: usize = 60;

/// The part of an answer around a position; its beginning if it is not JSON.
pub(super) fn of(answer: &[u8], at: usize) -> String {
    if !answer.trim_ascii_start().starts_with(b"{") && !answer.trim_ascii_start().starts_with(b"[")
    {
        return text(answer);
    }
    let end = at.saturating_add(AFTER).min(answer.len());
    let start = at.saturating_sub(BEFORE).min(end);
    let mut shown = Vec::new();
    let mut next = 0;
    while next < end {
        let piece = piece_end(answer, next);
        // The text of a value is left out whole, wherever the part begins.
        let is_value = answer[next] == b'"' && !is_key(answer, piece);
        if is_value && piece > start {
            shown.extend_from_slice("\"…\"".as_bytes());
        } else if piece > start {
            shown.extend_from_slice(&answer[next.max(start)..piece.min(end)]);
        }
        next = piece;
    }
    text(&shown)
}

/// The end of the string at a position, or of the byte that is there.
fn piece_end(json: &[u8], at: usize) -> usize {
    if json[at] != b'"' {
        return at + 1;
    }
    let mut end = at + 1;
    while end < json.len() && json[end] != b'"' {
        end += 1 + usize::from(json[end] == b'\\');
    }
    (end + 1).min(json.len())
}

/// Whether the string that ends at a position is the key of a field.
fn is_key(json: &[u8], end: usize) -> bool {
    json[end..].trim_ascii_start().starts_with(b":")
}

/// The beginning of a text, without control characters.
pub(super) fn text(bytes: &[u8]) -> String {
    let begin = &bytes[..bytes.len().min(MAX_BYTES)];
    let text = String::from_utf8_lossy(begin);
    let printable = text.chars().map(|character| match character {
        '\n' | '\t' | '\r' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    });
    printable.collect::<String>().trim().to_owned()
}

/// What serde writes before a value in backticks. Names of fields are in backticks too, and are shown.
const BEFORE_VALUES: [&str; 5] = [
    "unknown variant `",
    "boolean `",
    "integer `",
    "floating point `",
    "character `",
];

/// The message of a decoder without the values that it quotes: `invalid type: string "…", expected i32`.
pub(super) fn reason(message: &str) -> String {
    let mut shown = String::new();
    let mut rest = message;
    loop {
        let starts = BEFORE_VALUES.iter().filter_map(|before| {
            let start = rest.find(before)?;
            Some(start + before.len())
        });
        let quote = rest.find('"');
        match (starts.min(), quote) {
            (Some(start), quote) if quote.is_none_or(|quote| start <= quote) => {
                shown.push_str(&rest[..start]);
                shown.push('…');
                rest = &rest[start..];
                rest = &rest[value_end(rest)..];
            }
            (_, Some(quote)) => {
                shown.push_str(&rest[..quote]);
                shown.push_str("\"…\"");
                rest = &rest[piece_end(rest.as_bytes(), quote)..];
            }
            _ => break,
        }
    }
    shown.push_str(rest);
    shown
}

/// The end of a value in backticks, at the last one of them: the value is written as it is, and can have some too.
fn value_end(text: &str) -> usize {
    let end = ["`, expected ", "`, there are no variants", "`"];
    let end = end.iter().find_map(|end| text.rfind(end));
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_values_are_not_shown() {
        let secret = br#"{"kind":"Secret","data":{"pass\"word":"aHVudGVy", "b" : "c2\"Vj"},"n":[5,"dG9r"],"end":"b3Blb"#;
        for at in 0..=secret.len() {
            let shown = of(secret, at);
            for value in ["Secret", "aHV", "dGVy", "Vj", "dG9r", "b3B", "3Blb"] {
                assert!(!shown.contains(value), "{at}: {shown}");
            }
        }
        let shown = of(secret, 40);
        assert!(
            shown.starts_with(r#"{"kind":"…","data":{"pass\"word":"…", "b" : "…"},"n":["#),
            "{shown}"
        );
        assert_eq!(of(b" <html>\n502</html>", 9), "<html> 502</html>");
        assert_eq!(of(b"{", 9), "{");
    }

    #[test]
    fn messages_do_not_quote_values() {
        assert_eq!(
            reason(r#"invalid type: string "a\"b", expected i32 at line 1"#),
            r#"invalid type: string "…", expected i32 at line 1"#
        );
        assert_eq!(reason(r#"missing field `a`"#), "missing field `a`");
        assert_eq!(reason("open \"x"), "open \"…\"");
        for (message, shown) in [
            (
                "unknown field `a`, expected `b`",
                "unknown field `a`, expected `b`",
            ),
            (
                "unknown variant `a`, expected `b` or `c` at line 1",
                "unknown variant `…`, expected `b` or `c` at line 1",
            ),
            (
                "unknown variant `a`b\"`, expected x`, expected one of `c`, `d`",
                "unknown variant `…`, expected one of `c`, `d`",
            ),
            (
                "unknown variant `a`, there are no variants",
                "unknown variant `…`, there are no variants",
            ),
            (
                "invalid type: integer `5`, expected `x` at line 1",
                "invalid type: integer `…`, expected `x` at line 1",
            ),
            (
                "invalid value: character `\"`, expected \"y\"",
                "invalid value: character `…`, expected \"…\"",
            ),
            (
                "invalid value: string \"integer `5`, expected \", expected i32",
                "invalid value: string \"…\", expected i32",
            ),
            (
                "invalid type: floating point `5",
                "invalid type: floating point `…",
            ),
        ] {
            assert_eq!(reason(message), shown);
        }
    }
}
