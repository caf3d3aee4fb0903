//! Bytes and escapes that are not Unicode: replaced as Go's JSON decoder does, refused as its YAML decoder does.

use std::str::Utf8Error;

/// The text of a body, with U+FFFD for every byte that is not part of a character.
pub(super) fn replace_invalid(body: &[u8]) -> String {
    let mut text = String::with_capacity(body.len());
    for chunk in body.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// The error of Go's YAML reader for a body that is not UTF-8.
pub(super) fn yaml_problem(body: &[u8], error: &Utf8Error) -> String {
    let rest = &body[error.valid_up_to()..];
    let length = match rest.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let trailing = rest.get(1..length);
    let problem = match trailing {
        Some([]) => "invalid leading UTF-8 octet",
        None => "incomplete UTF-8 octet sequence",
        Some(bytes) if bytes.iter().any(|byte| byte & 0xc0 != 0x80) => {
            "invalid trailing UTF-8 octet"
        }
        // Surrogates, and code points above the last character.
        Some(bytes) if (rest[0] == 0xed && bytes[0] >= 0xa0) || rest[0] >= 0xf4 => {
            "invalid Unicode character"
        }
        Some(_) => "invalid length of a UTF-8 sequence",
    };
    format!("error converting YAML to JSON: yaml: {problem}")
}

/// JSON with U+FFFD for every escaped surrogate without its pair; `None` if there is none.
pub(super) fn replace_lone_surrogates(json: &str) -> Option<String> {
    let mut replaced: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        let Some(unit) = code_unit(json, escape) else {
            // Another escape, of a character that may have several bytes.
            let next = json[escape + 1..].chars().next().map_or(0, char::len_utf8);
            at = escape + 1 + next;
            continue;
        };
        at = escape + ESCAPE_BYTES;
        match unit {
            0xd800..=0xdbff
                if code_unit(json, at).is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) =>
            {
                at += ESCAPE_BYTES;
            }
            0xd800..=0xdfff => {
                let text = replaced.get_or_insert_with(|| String::with_capacity(json.len()));
                text.push_str(&json[copied..escape]);
                text.push_str("\\ufffd");
                copied = at;
            }
            _ => {}
        }
    }
    replaced.map(|text| text + &json[copied..])
}

/// Length of an escape with four hexadecimal digits.
const ESCAPE_BYTES: usize = 6;

/// The code unit of an escape with four hexadecimal digits at a position; `None` if there is no such escape.
fn code_unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use crate::codec::{Decoder, Format};

    fn check(json: &[u8], expected: &str) {
        let value = Decoder::new(Format::Json)
            .value(json)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(value, serde_json::Value::String(expected.to_owned()));
    }

    #[test]
    fn bytes_that_are_no_character_are_replaced_one_by_one() {
        check(b"\"a\xffb\"", "a\u{fffd}b");
        check(b"\"\xe2\x82\"", "\u{fffd}\u{fffd}");
        check(b"\"\xed\xa0\x80\"", "\u{fffd}\u{fffd}\u{fffd}");
        check(b"\"\xc3\xa4\xc3\"", "\u{e4}\u{fffd}");
        Decoder::new(Format::Json)
            .value(b"{\xff}")
            .expect_err("outside of strings");
    }

    #[test]
    fn surrogates_that_stand_alone_are_replaced() {
        check(br#""\ud800""#, "\u{fffd}");
        check(br#""\udc00x""#, "\u{fffd}x");
        check(br#""\ud800\u0041""#, "\u{fffd}A");
        check(br#""\ud800\n""#, "\u{fffd}\n");
        check(br#""\ud800\ud83d\ude00""#, "\u{fffd}\u{1f600}");
        check(br#""\\ud800\uDBFF""#, "\\ud800\u{fffd}");
        check(br#""\ud83d\ude00""#, "\u{1f600}");
        for bad in [
            r#""\ud80""#,
            r#""\ud800"#,
            r#""\ud800\x""#,
            r#"\ud800"#,
            "\"\\\u{e4}\\ud800\"",
        ] {
            Decoder::new(Format::Json)
                .value(bad.as_bytes())
                .expect_err(bad);
        }
    }

    #[test]
    fn yaml_names_what_is_wrong_with_a_byte() {
        for (yaml, problem) in [
            (&b"a: \xff"[..], "invalid leading UTF-8 octet"),
            (b"a: \x80", "invalid leading UTF-8 octet"),
            (b"a: \xe2\x82", "incomplete UTF-8 octet sequence"),
            (b"a: \xe2x\x82", "invalid trailing UTF-8 octet"),
            (b"a: \xed\xa0\x80", "invalid Unicode character"),
            (b"a: \xc0\x80", "invalid length of a UTF-8 sequence"),
        ] {
            let error = Decoder::new(Format::Yaml).value(yaml).expect_err(problem);
            let expected = format!("error converting YAML to JSON: yaml: {problem}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
