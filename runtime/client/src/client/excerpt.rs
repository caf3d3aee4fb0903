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

/// The message of a decoder without the values that it quotes: `invalid type: string "…", expected i32`.
pub(super) fn reason(message: &str) -> String {
    let bytes = message.as_bytes();
    let mut shown = String::new();
    let mut next = 0;
    while let Some(quote) = message[next..].find('"').map(|at| next + at) {
        shown.push_str(&message[next..quote]);
        shown.push_str("\"…\"");
        next = piece_end(bytes, quote);
    }
    shown.push_str(&message[next..]);
    shown
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
    }
}
