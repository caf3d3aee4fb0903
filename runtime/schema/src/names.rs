//! Grammars of names: DNS labels and subdomains, label keys and values, path segments, UUIDs.
//!
//! All checks return the problems of the text, in Kubernetes' words; none if it is well-formed.

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CONFIG_MAP_KEY: &str = "[-._a-zA-Z0-9]+";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Maximum length of a DNS label, a label value, and the name part of a label key, in bytes.
pub const LABEL_MAX_BYTES: usize = 63;
/// Maximum length of a DNS subdomain, in bytes.
pub const SUBDOMAIN_MAX_BYTES: usize = 253;

/// Whether the first and the last byte are in `edge`, and those between in `middle`; a single byte is both first and
/// last.
fn is_word(text: &[u8], edge: fn(u8) -> bool, middle: fn(u8) -> bool) -> bool {
    match text {
        [] => false,
        [only] => edge(*only),
        [first, inside @ .., last] => {
            edge(*first) && edge(*last) && inside.iter().all(|b| middle(*b))
        }
    }
}

fn lower_alnum(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_dns_label(text: &[u8]) -> bool {
    is_word(text, lower_alnum, |b| lower_alnum(b) || b == b'-')
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(|label| is_dns_label(label.as_bytes()))
}

fn is_label_word(text: &str) -> bool {
    is_word(
        text.as_bytes(),
        |b| b.is_ascii_alphanumeric(),
        |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'),
    )
}

/// A rule with its examples and its regular expression, in the format of Kubernetes.
fn rule(text: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!(
        "{text} (e.g. {}regex used for validation is '{regex}')",
        examples.join(" or ")
    )
}

// Kubernetes' texts say characters for names and bytes for label keys and values; both limits are in bytes.
fn at_most_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn at_most_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn subdomain_complaints(text: &str, at_most: fn(usize) -> String) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_MAX_BYTES {
        complaints.push(at_most(SUBDOMAIN_MAX_BYTES));
    }
    if !is_dns_subdomain(text) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        complaints.push(rule(words, DNS_SUBDOMAIN, &["example.com"]));
    }
    complaints
}

/// Checks an RFC 1123 subdomain such as `my.name`, the format of most object names.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain_complaints(text, at_most_characters)
}

/// Checks an RFC 1123 label such as `my-name` or `123-abc`, the format of namespace names.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_MAX_BYTES {
        complaints.push(at_most_characters(LABEL_MAX_BYTES));
    }
    if is_dns_label(text.as_bytes()) {
        return complaints;
    }
    if is_dns_subdomain(text) {
        complaints.push("must not contain dots".to_owned());
    } else {
        let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
        complaints.push(rule(words, DNS_LABEL, &["my-name", "123-abc"]));
    }
    complaints
}

/// Checks an RFC 1035 label: a DNS label that begins with a letter.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_MAX_BYTES {
        complaints.push(at_most_characters(LABEL_MAX_BYTES));
    }
    if !(is_dns_label(text.as_bytes()) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        complaints.push(rule(words, DNS_1035_LABEL, &["my-name", "abc-123"]));
    }
    complaints
}

/// Checks a label key: a name of at most 63 bytes, after an optional DNS subdomain and a slash.
pub fn label_key(text: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let mut complaints = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let rule = rule(LABEL_KEY_RULE, LABEL_KEY_NAME, &examples);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            complaints.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            complaints.extend(
                subdomain_complaints(prefix, at_most_bytes)
                    .iter()
                    .map(|c| format!("prefix part {c}")),
            );
            name
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX_BYTES {
        complaints.push(format!("name part {}", at_most_bytes(LABEL_MAX_BYTES)));
    }
    if !is_label_word(name) {
        complaints.push(format!(
            "name part {}",
            rule(LABEL_KEY_RULE, LABEL_KEY_NAME, &examples)
        ));
    }
    complaints
}

/// Checks a qualified name, such as that of a finalizer; the grammar is that of a label key.
pub fn qualified_name(text: &str) -> Vec<String> {
    label_key(text)
}

/// Checks a label value: empty, or a word of at most 63 bytes.
pub fn label_value(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_MAX_BYTES {
        complaints.push(at_most_bytes(LABEL_MAX_BYTES));
    }
    if !(text.is_empty() || is_label_word(text)) {
        let words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        complaints.push(rule(words, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    complaints
}

/// Checks a key of the data of a ConfigMap or a Secret, which can be a file name: `app.properties`.
pub fn config_map_key(text: &str) -> Vec<String> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_MAX_BYTES {
        complaints.push(at_most_characters(SUBDOMAIN_MAX_BYTES));
    }
    if text.is_empty() || !text.bytes().all(is_legal) {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        let examples = ["key.name", "KEY_NAME", "key-name"];
        complaints.push(rule(words, CONFIG_MAP_KEY, &examples));
    }
    match text {
        "." | ".." => complaints.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}

/// Checks a name that is one segment of a URL path. It may be empty, and of any length.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_prefix(text),
    }
}

/// Checks the beginning of a path segment, to which a suffix will be appended.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ['/', '%']
        .iter()
        .filter(|c| text.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// Checks a UUID in the server's format: lower case, in groups of 8-4-4-4-12.
pub fn uuid(text: &str) -> Vec<String> {
    let groups: Vec<&str> = text.split('-').collect();
    let sizes = groups.iter().map(|g| g.len()).eq([8, 4, 4, 4, 12]);
    let digits = groups.iter().all(|g| {
        g.bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    });
    if sizes && digits {
        Vec::new()
    } else {
        vec!["must be a lowercase UUID in 8-4-4-4-12 format".to_owned()]
    }
}

#[cfg(test)]
mod tests;
