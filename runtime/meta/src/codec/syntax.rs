//! Syntax errors with the texts of Go's decoders, which users and scripts know from Kubernetes.

use super::limits::TOO_DEEP;

/// The beginning of Go's texts for values that a type cannot hold.
pub(super) const MISTYPED: &str = "json: cannot unmarshal";

/// Go's text for an error of serde_json in `body`.
pub(super) fn json(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    let position = position(error, body).unwrap_or_default();
    let before = &body[..position.min(body.len())];
    let found = at(position, body);
    let place = match text {
        "expected value" => "looking for beginning of value",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "key must be a string" => "looking for beginning of object key string",
        "trailing characters" => "after top-level value",
        "invalid escape" => "in string escape code",
        "invalid number" => in_number(before),
        "expected ident" => &in_literal(before),
        "trailing comma" if found == Some('}') => "looking for beginning of object key string",
        "trailing comma" => "looking for beginning of value",
        "number out of range" => {
            let number = number_at(position, body).unwrap_or_default();
            return format!("{MISTYPED} number {number} into Go value of type float64");
        }
        text if text.starts_with("control character") => "in string literal",
        text if text.starts_with("recursion limit") => return TOO_DEEP.to_owned(),
        other => return format!("json: {other}"),
    };
    match found {
        Some(found) => format!("invalid character {} {place}", quoted(found)),
        None => format!("json: {text}"),
    }
}

/// The number that ends at a position, as it is written.
fn number_at(position: usize, body: &[u8]) -> Option<&str> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let up_to = body.get(..=position).unwrap_or(body);
    let digits = up_to.iter().rposition(is_part)?;
    let start = up_to[..digits].iter().rposition(|byte| !is_part(byte));
    let start = start.map_or(0, |at| at + 1);
    let rest = &body[start..];
    let end = rest.iter().position(|byte| !is_part(byte));
    std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()
}

/// What Go says of a character that cannot go on with a number.
fn in_number(before: &[u8]) -> &'static str {
    match before.last() {
        Some(b'.') => "after decimal point in numeric literal",
        Some(b'e' | b'E' | b'+') => "in exponent of numeric literal",
        Some(b'-') if matches!(before, [.., b'e' | b'E', b'-']) => "in exponent of numeric literal",
        // No digit follows a zero at the beginning, so the value ends there.
        Some(b'0') => after_value(before),
        _ => "in numeric literal",
    }
}

/// What Go says of a character that cannot go on with `true`, `false` or `null`.
fn in_literal(before: &[u8]) -> String {
    let begun = before.iter().rev();
    let begun = begun.take_while(|byte| byte.is_ascii_lowercase()).count();
    let begun = &before[before.len() - begun..];
    let mut literals = ["true", "false", "null"].into_iter();
    let expected = literals.find_map(|literal| {
        let rest = literal.as_bytes().strip_prefix(begun)?;
        Some((literal, char::from(*rest.first()?)))
    });
    expected.map_or_else(
        || "in literal".to_owned(),
        |(literal, expected)| format!("in literal {literal} (expecting '{expected}')"),
    )
}

/// What Go says of a character after a value with which this beginning of a document ends.
fn after_value(beginning: &[u8]) -> &'static str {
    let mut open = Vec::new();
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in beginning {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => open.push(*byte),
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
    }
    match open.last() {
        Some(b'{') => "after object key:value pair",
        Some(_) => "after array element",
        None => "after top-level value",
    }
}

/// The position of an error's character in the document.
fn position(error: &serde_json::Error, body: &[u8]) -> Option<usize> {
    let lines = body.split_inclusive(|byte| *byte == b'\n');
    let before = lines.take(error.line().checked_sub(1)?).map(<[u8]>::len);
    // serde_json counts a line break as column 0 of the next line.
    (before.sum::<usize>() + error.column()).checked_sub(1)
}

/// The character at a position.
fn at(position: usize, body: &[u8]) -> Option<char> {
    let rest = body.get(position..)?;
    String::from_utf8_lossy(&rest[..4.min(rest.len())])
        .chars()
        .next()
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
