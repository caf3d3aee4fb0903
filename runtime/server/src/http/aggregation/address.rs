//! The path and the query of a forwarded request: those that were authorized, encoded again.

use std::fmt::Write as _;

use crate::http::query::Query;

/// The path and query of a request for another server. What was decoded is encoded again, so that the other server reads what
/// was authorized here.
pub(super) fn target(path: &str, query: &Query) -> String {
    let mut target = String::with_capacity(path.len());
    escape(path, "-_.~$&+,/:;=@", &mut target);
    let mut pairs: Vec<(&str, &str)> = query.pairs().collect();
    // Stable: values of the same name keep their order.
    pairs.sort_by_key(|(name, _)| *name);
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        target.push(if index == 0 { '?' } else { '&' });
        escape_form(name, &mut target);
        target.push('=');
        escape_form(value, &mut target);
    }
    target
}

/// Whether a path has a segment `..`, which another server may resolve to a path that was not authorized.
pub(super) fn leaves_its_place(path: &str) -> bool {
    path.split('/').any(|segment| segment == "..")
}

/// Escapes what is neither a letter, a digit, nor among these characters.
fn escape(text: &str, kept: &str, out: &mut String) {
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || (c.is_ascii() && kept.contains(c)) {
            out.push(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Escapes a name or a value of a query, where a space is a plus sign.
fn escape_form(text: &str, out: &mut String) {
    for (index, part) in text.split(' ').enumerate() {
        if index > 0 {
            out.push('+');
        }
        escape(part, "-_.~", out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_encoded_again() {
        let check = |path: &str, query: &str, expected: &str| {
            assert_eq!(target(path, &Query::parse(query)), expected);
        };
        check("/apis/g/v1", "", "/apis/g/v1");
        check("/apis/g/v1/a b/ä?", "", "/apis/g/v1/a%20b/%C3%A4%3F");
        check("/x", "b=2&a=x+y&b=1&c", "/x?a=x+y&b=2&b=1&c=");
        check("/x", "q=a%3Db%2C%26&%zz=1&x;y", "/x?q=a%3Db%2C%26");
        check("/x", "n%0d%0a=v", "/x?n%0D%0A=v");
    }

    #[test]
    fn parent_segments_are_found() {
        for (path, expected) in [
            ("/apis/g/v1/../x", true),
            ("/apis/g/v1/..", true),
            ("/apis/g/v1/..x", false),
            ("/apis/g/v1/...", false),
        ] {
            assert_eq!(leaves_its_place(path), expected, "{path}");
        }
    }
}
