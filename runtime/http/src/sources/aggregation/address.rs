//! The path and the query of a forwarded request: the bytes that were authorized, encoded again.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::request::query::decode_bytes;

/// The path and query of a request for another server. As in kube-apiserver's proxy, decoded bytes are encoded again one by one, also
/// those that are not UTF-8, so that the other server reads the path that was authorized here; and the query is sorted by name.
pub(super) fn target(uri: &http::Uri) -> String {
    let path = uri.path();
    let mut target = String::with_capacity(path.len());
    // A path with an invalid escape was refused before.
    let path = decode_bytes(path).map_or(Cow::Borrowed(path.as_bytes()), Cow::Owned);
    escape(&path, "-_.~$&+,/:;=@", &mut target);
    let pairs = uri.query().unwrap_or_default().split('&');
    let pairs = pairs.filter(|pair| !pair.is_empty() && !pair.contains(';'));
    let mut pairs: Vec<_> = pairs.filter_map(decode_pair).collect();
    // Stable: values of the same name keep their order.
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        target.push(if index == 0 { '?' } else { '&' });
        escape_form(&name, &mut target);
        target.push('=');
        escape_form(&value, &mut target);
    }
    target
}

/// The bytes of a name and a value of a query; `None` for an invalid escape.
fn decode_pair(pair: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let decode = |text: &str| decode_bytes(&text.replace('+', " "));
    Some((decode(name)?, decode(value)?))
}

/// Whether a path has a segment `..`, which another server may resolve to a path that was not authorized.
pub(super) fn leaves_its_place(path: &str) -> bool {
    path.split('/').any(|segment| segment == "..")
}

/// Escapes what is neither a letter, a digit, nor among these characters.
fn escape(text: &[u8], kept: &str, out: &mut String) {
    for &byte in text {
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
fn escape_form(text: &[u8], out: &mut String) {
    for (index, part) in text.split(|byte| *byte == b' ').enumerate() {
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
        let check = |uri: &str, expected: &str| {
            assert_eq!(target(&uri.parse().unwrap()), expected, "{uri}");
        };
        check("/apis/g/v1", "/apis/g/v1");
        check("/apis/g/v1?", "/apis/g/v1");
        check("/apis/g/v1/a%20b/%c3%a4%3F", "/apis/g/v1/a%20b/%C3%A4%3F");
        check("/x?b=2&a=x+y&b=1&c", "/x?a=x+y&b=2&b=1&c=");
        check("/x?q=a%3Db%2C%26&%zz=1&x;y", "/x?q=a%3Db%2C%26");
        check("/x?n%0d%0a=v", "/x?n%0D%0A=v");
    }

    /// Two names that differ in bytes which are not UTF-8 are two names for the other server too.
    #[test]
    fn bytes_that_are_not_utf_8_stay_as_they_were_sent() {
        let target = |uri: &str| target(&uri.parse().unwrap());
        assert_eq!(target("/x/%ff%fe?a=%ff&%80=1"), "/x/%FF%FE?a=%FF&%80=1");
        assert_eq!(target("/x/%EF%BF%BD"), "/x/%EF%BF%BD");
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
