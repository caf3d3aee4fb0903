//! Tests of the name grammars.

use proptest::prelude::*;

use super::*;

const SUBDOMAIN_TEXT: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const KEY_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn check(grammar: fn(&str) -> Vec<String>, text: &str, complaints: &[&str]) {
    assert_eq!(grammar(text), complaints, "{text:?}");
}

#[test]
fn subdomains() {
    for good in ["a", "a-b", "a.b", "1.2.3", "my.name-1", &"a".repeat(253)] {
        check(dns_subdomain, good, &[]);
    }
    for bad in ["", "A_b", "-a", "a-", ".a", "a.", "a..b", "a b", "é", "a\n"] {
        check(dns_subdomain, bad, &[SUBDOMAIN_TEXT]);
    }
    check(
        dns_subdomain,
        &"a".repeat(254),
        &["must be no more than 253 characters"],
    );
}

#[test]
fn labels() {
    for good in ["a", "0", "a-b", "123-abc"] {
        check(dns_label, good, &[]);
    }
    for bad in ["", "A", "-a", "a-", "a_b", "a..b"] {
        check(dns_label, bad, &[LABEL_TEXT]);
    }
    check(dns_label, "a.b", &["must not contain dots"]);
    check(
        dns_label,
        &"a".repeat(64),
        &["must be no more than 63 characters"],
    );
}

#[test]
fn labels_of_rfc_1035_begin_with_a_letter() {
    check(dns1035_label, "abc-123", &[]);
    for bad in ["", "1a", "a.b", "A", "a-"] {
        check(dns1035_label, bad, &[DNS_1035_TEXT]);
    }
}

#[test]
fn label_keys() {
    for good in [
        "a",
        "A.b_c-d",
        "example.com/a",
        "1/2",
        &format!("{}/{}", "a".repeat(253), "b".repeat(63)),
    ] {
        check(label_key, good, &[]);
    }
    let name_part = format!("name part {KEY_TEXT}");
    check(label_key, "-x", &[&name_part]);
    check(label_key, "", &["name part must be non-empty", &name_part]);
    check(
        label_key,
        "a/",
        &["name part must be non-empty", &name_part],
    );
    check(label_key, "/a", &["prefix part must be non-empty"]);
    check(
        label_key,
        "A/a",
        &[&format!("prefix part {SUBDOMAIN_TEXT}")],
    );
    check(
        label_key,
        &"a".repeat(64),
        &["name part must be no more than 63 bytes"],
    );
    check(
        label_key,
        &format!("{}/a", "a".repeat(254)),
        &["prefix part must be no more than 253 bytes"],
    );
    let whole = format!(
        "a valid label key {KEY_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    );
    check(label_key, "a/b/c", &[&whole]);
}

#[test]
fn label_values() {
    for good in ["", "a", "MyValue", "my_value", "1.2"] {
        check(label_value, good, &[]);
    }
    check(label_value, "-b", &[VALUE_TEXT]);
    check(label_value, "a b", &[VALUE_TEXT]);
    check(
        label_value,
        &"x".repeat(64),
        &["must be no more than 63 bytes"],
    );
}

#[test]
fn path_segments() {
    check(path_segment, "system:a.b", &[]);
    check(path_segment, "", &[]);
    check(path_segment, ".", &["may not be '.'"]);
    check(path_segment, "..", &["may not be '..'"]);
    check(
        path_segment,
        "a/b%",
        &["may not contain '/'", "may not contain '%'"],
    );
    check(path_segment_prefix, "..", &[]);
}

#[test]
fn uuids() {
    check(uuid, "123e4567-e89b-12d3-a456-426614174000", &[]);
    for bad in [
        "",
        "123E4567-e89b-12d3-a456-426614174000",
        "123e4567e89b12d3a456426614174000",
        "123e4567-e89b-12d3-a456-42661417400g",
    ] {
        check(
            uuid,
            bad,
            &["must be a lowercase UUID in 8-4-4-4-12 format"],
        );
    }
}

proptest! {
    /// The byte loops agree with the regular expressions in the error texts.
    #[test]
    fn grammars_are_their_regular_expressions(text in "[a-zA-Z0-9._/ -]{0,12}") {
        let matches = |pattern: &str| regex::Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(&text);
        prop_assert_eq!(dns_subdomain(&text).is_empty(), matches(DNS_SUBDOMAIN));
        prop_assert_eq!(dns_label(&text).is_empty(), matches(DNS_LABEL));
        prop_assert_eq!(dns1035_label(&text).is_empty(), matches(DNS_1035_LABEL));
        prop_assert_eq!(label_value(&text).is_empty(), matches(LABEL_VALUE));
        prop_assert_eq!(label_key(&text).is_empty(), matches(&format!("({DNS_SUBDOMAIN}/)?{LABEL_KEY_NAME}")));
    }

    #[test]
    fn nothing_panics(text in any::<String>()) {
        for grammar in [dns_subdomain, dns_label, dns1035_label, label_key, label_value, path_segment, path_segment_prefix, uuid] {
            let _ = grammar(&text);
        }
    }
}
