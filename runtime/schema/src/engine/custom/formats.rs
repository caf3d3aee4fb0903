//! String formats of custom resources, with the values that kube-apiserver accepts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::types::Duration;

/// Whether a text of a custom resource has a format. Formats without rules accept every text. Dashes in the name are ignored.
pub fn is_valid(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        }
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && address(text).is_some(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb_color(text),
        "ssn" => is_ssn(text),
        "uri" => is_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        _ => true,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Base64 with padding; the empty text is not accepted.
fn is_base64(text: &str) -> bool {
    let content = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !content.is_empty()
        && text.len() - content.len() <= 2
        && text.len().is_multiple_of(4)
        && content.bytes().all(is_digit)
}

/// An address, in which numbers may have leading zeros.
fn address(text: &str) -> Option<IpAddr> {
    let v4 = |text: &str| {
        let parts: Option<Vec<u8>> = text
            .split('.')
            .map(|part| all_digits(part).then(|| part.trim_start_matches('0')))
            .map(|part| {
                let part = part?;
                if part.is_empty() {
                    Some(0)
                } else {
                    part.parse().ok()
                }
            })
            .collect();
        let parts: [u8; 4] = parts?.try_into().ok()?;
        Some(Ipv4Addr::from(parts))
    };
    if let Some(v4) = v4(text) {
        return Some(v4.into());
    }
    let (start, end) = match text.rsplit_once(':') {
        Some((start, end)) if end.contains('.') => (format!("{start}:"), v4(end)?.to_string()),
        _ => (text.to_owned(), String::new()),
    };
    let v6: Ipv6Addr = [start, end].concat().parse().ok()?;
    Some(v6.into())
}

fn is_cidr(text: &str) -> bool {
    let Some((network, length)) = text.split_once('/') else {
        return false;
    };
    let max = match address(network) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    all_digits(length) && length.parse::<u32>().is_ok_and(|length| length <= max)
}

/// The numbers of the brands, with their checksum.
fn is_credit_card(text: &str) -> bool {
    static BRANDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let brands = [
            "4[0-9]{12}(?:[0-9]{3})?",
            "5[1-5][0-9]{14}",
            "6(?:011|5[0-9]{2})[0-9]{12}",
            "3[47][0-9]{13}",
            "3(?:0[0-5]|[68][0-9])[0-9]{11}",
            "(?:2131|1800|35[0-9]{3})[0-9]{11}",
        ];
        Regex::new(&format!("^(?:{})$", brands.join("|"))).ok()
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_known = BRANDS
        .as_ref()
        .is_some_and(|brands| brands.is_match(&digits));
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0') * if at % 2 == 1 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    is_known && sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && text.parse::<jiff::civil::Date>().is_ok()
}

/// RFC 3339 in any case; a leap second is refused.
fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let time = "^[0-9]{2}:[0-9]{2}:[0-9]{2}(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$";
        Regex::new(time).ok()
    });
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let is_time = TIME.as_ref().is_some_and(|regex| regex.is_match(time));
    is_date(date)
        && is_time
        && time.get(0..2) <= Some("23")
        && time.get(3..5) <= Some("59")
        && time.get(6..8) <= Some("59")
}

/// A duration of Go, or numbers with the names of units: `3 weeks`.
fn is_duration(text: &str) -> bool {
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    static PARTS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)").ok());
    if text.parse::<Duration>().is_ok() {
        return true;
    }
    let Some(parts) = PARTS.as_ref() else {
        return false;
    };
    let mut has_unit = false;
    for part in parts.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = part[2].to_lowercase();
        has_unit |= UNITS
            .iter()
            .any(|(short, long)| short.contains(&unit.as_str()) || unit.starts_with(long));
    }
    has_unit
}

/// An address of RFC 5322, alone or in angle brackets after a name.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(text) => match text.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => text,
    };
    let is_atom = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| {
                c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c)
            })
    };
    let is_dotted = |text: &str| text.split('.').all(is_atom);
    let is_quoted = |text: &str| {
        let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        inner.is_some_and(|inner| !inner.contains(['"', '\r', '\n']))
    };
    let is_literal = |text: &str| {
        let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<IpAddr>().is_ok())
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        (is_dotted(local) || is_quoted(local)) && (is_dotted(domain) || is_literal(domain))
    })
}

/// A host name as kube-apiserver understands it: a name without dots has a dash at most after its first character.
fn is_hostname(text: &str) -> bool {
    static HOST: LazyLock<Option<Regex>> = LazyLock::new(|| {
        const ONE: &str = r"[a-zA-Z0-9\p{S}\p{L}]";
        const INNER: &str = r"[a-zA-Z0-9\-\p{S}\p{L}]";
        let single = format!("{ONE}(?:-?{ONE}{{0,62}})?");
        let label = format!(r"{ONE}(?:{INNER}{{0,61}}{ONE})?\.");
        let dotted = format!(r"(?:{label})+[a-zA-Z\p{{L}}]{{2,63}}");
        Regex::new(&format!("^(?:{single}|{dotted})$")).ok()
    });
    HOST.as_ref().is_some_and(|host| host.is_match(text))
        && text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
}

/// The digits of a book's number, without spaces and dashes.
fn isbn(text: &str) -> Vec<u8> {
    let is_digit = |byte: &u8| !matches!(byte, b'-' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
    text.bytes().filter(is_digit).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn(text);
    let [first @ .., last] = digits.as_slice() else {
        return false;
    };
    let value = |byte: &u8| u32::from(byte.wrapping_sub(b'0'));
    let last = if *last == b'X' { 10 } else { value(last) };
    let sum: u32 = (1..).zip(first).map(|(at, byte)| at * value(byte)).sum();
    first.len() == 9
        && first.iter().all(u8::is_ascii_digit)
        && last <= 10
        && (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights
        .zip(&digits)
        .map(|(weight, byte)| weight * u32::from(byte - b'0'))
        .sum();
    sum.is_multiple_of(10)
}

fn is_label(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = text.as_bytes();
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| *byte == b'-' || is_end(Some(byte)))
}

/// 6, 8 or 20 bytes, in pairs of digits with colons or dashes, or in groups of four digits with dots.
fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize, counts: [usize; 3]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups
                .iter()
                .all(|group| group.len() == digits && is_hex(group))
    };
    let is_plain = [12, 16, 40].contains(&text.len()) && is_hex(text);
    is_plain
        || groups(':', 2, [6, 8, 20])
        || groups('-', 2, [6, 8, 20])
        || groups('.', 4, [3, 4, 10])
}

fn is_rgb_color(text: &str) -> bool {
    let inner = text
        .strip_prefix("rgb(")
        .and_then(|text| text.strip_suffix(')'));
    let is_value = |text: &str| {
        let digits = text.trim_matches(['\t', '\n', '\x0c', '\r', ' ']);
        all_digits(digits)
            && (digits == "0" || !digits.starts_with('0'))
            && digits.parse::<u8>().is_ok()
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(is_value))
}

/// Three, two and four digits, with separators.
fn is_ssn(text: &str) -> bool {
    let is_separator = |byte: u8| matches!(byte, b'-' | b' ');
    text.len() == 11
        && text.bytes().enumerate().all(|(at, byte)| match at {
            3 | 6 => is_separator(byte),
            _ => byte.is_ascii_digit(),
        })
}

/// What Go's `url.ParseRequestURI` accepts: a path from the root, or a scheme and something after it.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    };
    let (has_scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (true, rest),
        _ => (false, text),
    };
    let rest = rest.split('?').next().unwrap_or_default();
    let (host, path) = match rest.strip_prefix("//").filter(|_| has_scheme) {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    // Without a slash it is opaque, which only a URI with a scheme can be.
    if !rest.starts_with('/') {
        return has_scheme;
    }
    is_host(host) && has_valid_escapes(path)
}

fn is_host(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let is_of_user =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_of_user) || !has_valid_escapes(user) {
        return false;
    }
    let is_port = |text: &str| {
        text.is_empty()
            || text
                .strip_prefix(':')
                .is_some_and(|digits| digits.is_empty() || all_digits(digits))
    };
    if let Some(rest) = host.strip_prefix('[') {
        return rest.rsplit_once(']').is_some_and(|(_, port)| is_port(port));
    }
    let port = host.rfind(':').map_or("", |at| &host[at..]);
    let name = &host[..host.len() - port.len()];
    is_port(port)
        && has_valid_escapes(name)
        && !name.contains([' ', '"', '#', '<', '[', '>', '\\', '^', '`', '{', '|', '}'])
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|rest| rest.get(..2).is_some_and(is_hex))
}

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12, with or without dashes.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text;
    let mut groups = Vec::new();
    for len in [8, 4, 4, 4, 12] {
        let Some((group, after)) = rest
            .split_at_checked(len)
            .filter(|(group, _)| is_hex(group))
        else {
            return false;
        };
        groups.push(group);
        rest = after.strip_prefix('-').unwrap_or(after);
        if rest.is_empty() && groups.len() < 5 {
            return false;
        }
    }
    let first = |at: usize| groups[at].as_bytes()[0];
    let has_variant = matches!(first(3), b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
    let is_of_version = match version {
        None => true,
        Some(b'3') => first(2) == b'3',
        Some(version) => first(2) == version && has_variant,
    };
    rest.is_empty() && !text.ends_with('-') && is_of_version
}
