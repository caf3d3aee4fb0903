//! The grammar of the names that attributes declare: groups, versions, plurals, kinds.

use crate::diagnostics::DiagnosticId as Id;
use crate::{Diagnostics, SpannedValue};

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let start = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|b| inner(*b))
        && start(bytes.first())
        && start(bytes.last())
}

pub(super) fn bad_name(what: &str, name: &SpannedValue<String>, rule: &str, d: &mut Diagnostics) {
    d.error(
        Id::BadName,
        name.span,
        format!("{:?} is not a {what}", name.value),
    )
    .help(rule);
}

/// A group is a DNS subdomain; the empty name is the core group.
pub(crate) fn check_group(name: &SpannedValue<String>, d: &mut Diagnostics) {
    let valid = name.is_empty() || name.len() <= 253 && name.split('.').all(is_label);
    if !valid {
        bad_name(
            "group",
            name,
            "a group is a DNS subdomain such as \"wardle.example.com\"",
            d,
        );
    }
}

/// Versions, plurals, short names are lower-case DNS labels that begin with a letter.
pub(crate) fn check_label(what: &str, name: &SpannedValue<String>, d: &mut Diagnostics) {
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        bad_name(
            what,
            name,
            "write lower-case letters, digits and `-`, beginning with a letter, at most 63",
            d,
        );
    }
}

/// Checks the path of keys: segments of names, such as `leases` or `services/specs`.
pub(super) fn check_store_path(path: &SpannedValue<String>, d: &mut Diagnostics) {
    let is_segment = |segment: &str| {
        let is_legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
        segment.starts_with(|c: char| c.is_ascii_lowercase()) && segment.bytes().all(is_legal)
    };
    if !path.split('/').all(is_segment) {
        bad_name(
            "store path",
            path,
            "write segments of lower-case letters, digits, `-` and `.`, with `/` between them",
            d,
        );
    }
}

pub(super) fn check_camel(what: &str, name: &SpannedValue<String>, d: &mut Diagnostics) {
    let valid = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_alphanumeric())
        && name.len() <= 63;
    if !valid {
        bad_name(
            what,
            name,
            "write a CamelCase word of at most 63 letters and digits",
            d,
        );
    }
}
