//! The formats of texts, as keys spell them and as schemas do.

/// Formats: the key's word and its JSON spelling.
pub(crate) const FORMATS: &[(&str, &str)] = &[
    ("dns_label", "dns-label"),
    ("dns_subdomain", "dns-subdomain"),
    ("label_key", "label-key"),
    ("label_value", "label-value"),
    ("path_segment", "path-segment"),
    ("qualified_name", "qualified-name"),
    ("uuid", "uuid"),
    ("ip", "ip"),
    ("ipv4", "ipv4"),
    ("ipv6", "ipv6"),
    ("cidr", "cidr"),
    ("uri", "uri"),
    ("email", "email"),
    ("date", "date"),
    ("date_time", "date-time"),
    ("duration", "duration"),
    ("byte", "byte"),
];

/// The word of a format, by its spelling in JSON or with `_`.
pub(crate) fn format_word(spelling: &str) -> Option<&'static str> {
    let found = FORMATS
        .iter()
        .find(|(word, json)| [*word, *json].contains(&spelling));
    found.map(|(word, _)| *word)
}
