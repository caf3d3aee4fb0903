//! YAML out, and finding the first of several documents in it.

use bytes::Bytes;
use serde_json::{Map, Value};

/// A value as a YAML document.
pub(super) fn encode(value: &Value) -> Bytes {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_fields(&mut out, fields, 0, false),
        Value::Array(items) if !items.is_empty() => write_items(&mut out, items, 0),
        scalar => {
            write_scalar(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out.into()
}

/// The fields, each on its own line; the first one goes on with the line that is open.
fn write_fields(out: &mut String, fields: &Map<String, Value>, indent: usize, first_inline: bool) {
    // serde_json's map keeps its keys sorted.
    for (at, (key, value)) in fields.iter().enumerate() {
        if at > 0 || !first_inline {
            pad(out, indent);
        }
        write_text(out, key);
        out.push(':');
        write_below(out, value, indent);
    }
}

/// A value behind `key:`.
fn write_below(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write_fields(out, fields, indent + 2, false);
        }
        // Lists stand at the indentation of their key, as Kubernetes prints them.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_items(out, items, indent);
        }
        scalar => {
            out.push(' ');
            write_scalar(out, scalar, indent + 2);
            out.push('\n');
        }
    }
}

fn write_items(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(out, indent);
        out.push_str("- ");
        write_item(out, item, indent);
    }
}

/// A value behind `- `.
fn write_item(out: &mut String, item: &Value, indent: usize) {
    match item {
        Value::Object(fields) if !fields.is_empty() => write_fields(out, fields, indent + 2, true),
        Value::Array(items) if !items.is_empty() => {
            let (first, rest) = (&items[0], &items[1..]);
            out.push_str("- ");
            write_item(out, first, indent + 2);
            write_items(out, rest, indent + 2);
        }
        scalar => {
            write_scalar(out, scalar, indent + 2);
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(text) if is_block(text) => write_block(out, text, indent),
        Value::String(text) => write_text(out, text),
        // The integer -0 is 0 in YAML.
        Value::Number(number)
            if number
                .as_f64()
                .is_some_and(|n| n == 0.0 && n.is_sign_negative()) =>
        {
            out.push_str("-0.0");
        }
        other => out.push_str(&String::from_utf8_lossy(&super::encode::json(other))),
    }
}

/// Text on one line, quoted where it must be.
fn write_text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        write_quoted(out, text);
    }
}

/// A double-quoted string; what is not printable is escaped.
fn write_quoted(out: &mut String, text: &str) {
    use std::fmt::Write;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if (c as u32) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
        }
    }
    out.push('"');
}

/// Text of several lines that a literal block keeps as it is.
fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || (is_printable(c) && c != '\u{feff}'))
        // A line of blanks, or blanks at the end of one, are easily lost when it is edited.
        && text.split('\n').all(|line| !line.ends_with([' ', '\t']))
}

fn write_block(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push('|');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 => {}
        _ => out.push('+'),
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{1_0000}'..)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Whether every reader takes the bare text for this very string.
fn is_plain(text: &str) -> bool {
    let safe = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(
                c,
                '-' | '_'
                    | '.'
                    | '/'
                    | ' '
                    | ':'
                    | '@'
                    | '+'
                    | '('
                    | ')'
                    | '$'
                    | '%'
                    | ','
                    | ';'
                    | '='
                    | '~'
                    | '^'
            )
    };
    let safe = |c: char| safe(c) || (!c.is_ascii() && is_printable(c) && !c.is_whitespace());
    let starts = |c: char| {
        c.is_ascii_alphabetic()
            || matches!(c, '_' | '/' | '$' | '(')
            || (!c.is_ascii() && is_printable(c) && !c.is_whitespace())
    };
    !text.is_empty()
        && text.chars().all(safe)
        // What begins with a digit, dot or sign may be a number or a time; a lone word with one inside is not.
        && (text.starts_with(starts) || (text.starts_with(|c: char| c.is_ascii_digit()) && is_name(text)))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !is_word(text)
}

/// Text that begins with a digit but cannot be read as a number, a date or a sexagesimal: it has a letter that no
/// notation of numbers knows.
fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/'))
        && text.bytes().any(
            |b| matches!(b.to_ascii_lowercase(), b'g'..=b'm' | b'p'..=b's' | b'u'..=b'w' | b'y'),
        )
}

/// Words that YAML 1.1 or 1.2 reads as something else.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// The text of the first document: from the start to the marker that ends it. A marker stands at the beginning of a line,
/// where no scalar of a document can go on.
pub(super) fn first_document(text: &str) -> &str {
    let mut begun = false;
    let mut start = 0;
    // A carriage return ends a line too, before any character.
    for line in text.split_inclusive(['\n', '\r']) {
        let bare = line.trim_end_matches(['\n', '\r']);
        let rest = bare
            .strip_prefix("---")
            .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        let is_end = bare
            .strip_prefix("...")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if begun && (rest.is_some() || is_end) {
            return &text[..start];
        }
        let is_directive = bare.starts_with('%');
        // The marker begins the document even when nothing else is on its line: an empty document is one too.
        begun |= rest.is_some()
            || !(bare.trim().is_empty()
                || bare.trim_start().starts_with('#')
                || is_directive
                || is_end);
        start += line.len();
    }
    text
}
