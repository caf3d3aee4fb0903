//! String formats that are validated; other formats are documentation only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::node::QUANTITY;
use super::node::{Canonical, Node};
use crate::types::{Duration, MicroTime, Quantity, Time};
use crate::{bytes, names};

/// The problems of `text` in a format; none for formats without validation.
pub(crate) fn problems(format: &str, text: &str) -> Vec<String> {
    let (fits, detail) = match format {
        "dns-label" => return names::dns_label(text),
        "dns-subdomain" => return names::dns_subdomain(text),
        "label-key" => return names::label_key(text),
        "label-value" => return names::label_value(text),
        "qualified-name" => return names::qualified_name(text),
        "path-segment" => return names::path_segment(text),
        "uuid" => return names::uuid(text),
        "ip" => (
            text.parse::<IpAddr>().is_ok(),
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        "ipv4" => (
            text.parse::<Ipv4Addr>().is_ok(),
            "must be a valid IPv4 address",
        ),
        "ipv6" => (
            text.parse::<Ipv6Addr>().is_ok(),
            "must be a valid IPv6 address",
        ),
        "cidr" => (
            is_cidr(text),
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        "uri" => (
            is_uri(text),
            "must be an absolute URI, (e.g. https://example.com/path)",
        ),
        "email" => (
            is_email(text),
            "must be an email address, (e.g. user@example.com)",
        ),
        "date" => (is_date(text), "must be a date in the form 2006-01-02"),
        "date-time" | QUANTITY => return decode_problem(format, text).into_iter().collect(),
        "duration" => (
            text.parse::<Duration>().is_ok(),
            "must be a duration, (e.g. 1h30m or 15s)",
        ),
        "byte" => (is_base64(text), "must be base64-encoded"),
        _ => return Vec::new(),
    };
    if fits {
        Vec::new()
    } else {
        vec![detail.to_owned()]
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    // Go accepts neither a sign nor a leading zero.
    let plain =
        length.bytes().all(|b| b.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    plain && length.parse::<u8>().is_ok_and(|length| length <= max)
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    scheme_ok && !rest.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    !local.is_empty()
        && !local.contains(|c: char| c.is_whitespace() || c == '@' || c.is_control())
        && domain.split('.').all(label)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// A text in the canonical form of its type, or the error of Go, which parses such texts while decoding.
pub fn read(node: &Node, text: String) -> Result<String, String> {
    let format = node.format.as_deref();
    if let Some(problem) = format.and_then(|format| decode_problem(format, &text)) {
        return Err(problem);
    }
    let Some(canonical) = node.canonical else {
        return Ok(text);
    };
    // A malformed time was refused above.
    match canonical {
        Canonical::Seconds => Ok(text.parse().map_or(text, |time: Time| time.to_string())),
        Canonical::Microseconds => Ok(text
            .parse()
            .map_or(text, |time: MicroTime| time.to_string())),
        Canonical::Duration => match text.parse::<Duration>() {
            Ok(duration) => Ok(duration.to_string()),
            Err(error) => Err(error.to_string()),
        },
        Canonical::Bytes if is_base64(&text) => Ok(text),
        Canonical::Bytes => match bytes::decode(&text) {
            Ok(bytes) => Ok(bytes::encode(&bytes)),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// The error of Go for a malformed text in a format that is parsed while decoding.
pub(crate) fn decode_problem(format: &str, text: &str) -> Option<String> {
    match format {
        "date-time" => text.parse::<Time>().err().map(|error| error.to_string()),
        QUANTITY => text
            .trim()
            .parse::<Quantity>()
            .err()
            .map(|error| error.to_string()),
        _ => None,
    }
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(
                problems(format, text),
                Vec::<String>::new(),
                "{format} {text:?}"
            );
        }
        for text in bad {
            assert!(!problems(format, text).is_empty(), "{format} {text:?}");
        }
    }

    #[test]
    fn formats_take_what_kubernetes_takes() {
        check(
            "uuid",
            &["123e4567-e89b-12d3-a456-426614174000"],
            &["123E4567-e89b-12d3-a456-426614174000", "", "123e4567"],
        );
        check(
            "ip",
            &["10.0.0.1", "::1"],
            &["10.0.0.256", "10.0.0.01", "a"],
        );
        check("ipv4", &["10.0.0.1"], &["::1"]);
        check("ipv6", &["2001:db8::"], &["10.0.0.1"]);
        check(
            "cidr",
            &["10.0.0.0/8", "::/0"],
            &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/08"],
        );
        check(
            "uri",
            &["https://a.b/c?d", "urn:x"],
            &["a/b", ":x", "http:", "http://a b"],
        );
        check(
            "email",
            &["a.b@c.d"],
            &["a", "@c.d", "a@", "a b@c.d", "a@b..c"],
        );
        check(
            "date",
            &["2026-11-21"],
            &["2026-13-01", "20261121", "2026-11-21T00:00"],
        );
        check(
            "date-time",
            &["2026-11-21T09:28:46Z", "2026-11-21T09:28:46.5+02:00"],
            &["2026-11-21", "2026-11-21 09:28:46Z", "x"],
        );
        check(
            "duration",
            &["1h30m", "-1.5s", "0", "10\u{b5}s"],
            &["", "1", "1 h", "h", "1.2.3s", "5d"],
        );
        check("byte", &["aGk=", ""], &["aGk", "a b"]);
        check("password", &["anything"], &[]);
    }
}
