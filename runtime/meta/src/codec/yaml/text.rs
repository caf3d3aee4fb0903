//! Strings in YAML: plain if every parser reads them as strings, else quoted or in a block.

/// Appends the indentation of a line.
pub(super) fn pad(out: &mut Vec<u8>, indent: usize) {
    out.resize(out.len() + indent, b' ');
}

/// Appends a string on one line, quoted if necessary.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    if is_plain(text) {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_quoted(out, text);
    }
}

/// Appends a double-quoted string; characters that are not printable are escaped.
fn write_quoted(out: &mut Vec<u8>, text: &str) {
    use std::io::Write;
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if is_printable(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
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
    out.push(b'"');
}

/// Whether a literal block can represent a string of several lines exactly.
pub(super) fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || (is_printable(c) && c != '\u{feff}'))
        // Blanks at the end of a line are easily lost when the file is edited.
        && text.split('\n').all(|line| !line.ends_with([' ', '\t']))
}

pub(super) fn write_block(out: &mut Vec<u8>, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push(b'|');
    match text.len() - body.len() {
        0 => out.push(b'-'),
        1 => {}
        _ => out.push(b'+'),
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push(b'\n');
        if !line.is_empty() {
            pad(out, indent);
            out.extend_from_slice(line.as_bytes());
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{1_0000}'..)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Whether every parser reads the unquoted text as this string.
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
        // A text that begins with a digit, dot or sign may be a number or a time, unless it is a name.
        && (text.starts_with(starts) || (text.starts_with(|c: char| c.is_ascii_digit()) && is_name(text)))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !is_word(text)
}

/// Whether a text that begins with a digit cannot be a number, a date or a sexagesimal, because it has a letter that
/// these do not have.
fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/'))
        && text.bytes().any(
            |b| matches!(b.to_ascii_lowercase(), b'g'..=b'm' | b'p'..=b's' | b'u'..=b'w' | b'y'),
        )
}

/// Whether a word has another type in YAML 1.1 or 1.2.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}
