//! Parsing and matching of field selectors.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &[(&str, bool, &str)]) {
    let selector = FieldSelector::parse(text).unwrap();
    let found: Vec<_> = selector
        .requirements()
        .iter()
        .map(|r| (r.field.as_str(), r.equals, r.value.as_str()))
        .collect();
    assert_eq!(found, expected, "{text:?}");
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(
        FieldSelector::parse(text).unwrap_err(),
        expected,
        "{text:?}"
    );
}

#[test]
fn reads_every_operator() {
    check("", &[]);
    check("a=b", &[("a", true, "b")]);
    check("a==b", &[("a", true, "b")]);
    check("a!=b", &[("a", false, "b")]);
    check(
        "spec.b=2,metadata.name=1",
        &[("metadata.name", true, "1"), ("spec.b", true, "2")],
    );
}

#[test]
fn empty_terms_are_ignored_and_empty_values_are_values() {
    check(",a=b,", &[("a", true, "b")]);
    check("a=", &[("a", true, "")]);
    check("a!=", &[("a", false, "")]);
}

#[test]
fn values_are_unescaped() {
    check(r"a=x\,y", &[("a", true, "x,y")]);
    check(r"a=\\\=\,,b=1", &[("a", true, r"\=,"), ("b", true, "1")]);
}

#[test]
fn bare_terms_and_other_operators_are_refused() {
    check_error("a", "invalid selector: 'a'; can't understand 'a'");
    check_error(
        "b=1,a>2",
        "invalid selector: 'b=1,a>2'; can't understand 'a>2'",
    );
}

#[test]
fn bad_escapes_are_refused() {
    check_error(
        r"a=\y",
        r"invalid field selector: invalid escape sequence: \y",
    );
    check_error(
        r"a=x\",
        r"invalid field selector: invalid escape sequence: \",
    );
    check_error(
        "a=b=c",
        "invalid field selector: unescaped character in value: 61",
    );
    check_error(
        "a===b",
        "invalid field selector: unescaped character in value: 61",
    );
}

#[test]
fn a_missing_field_reads_as_the_empty_string() {
    let object = |field: &str| Cow::Borrowed(if field == "metadata.name" { "a" } else { "" });
    for (selector, selected) in [
        ("", true),
        ("metadata.name=a", true),
        ("metadata.name=b", false),
        ("metadata.name!=b", true),
        ("spec.x=", true),
        ("spec.x!=y", true),
        ("spec.x=y", false),
        ("metadata.name=a,spec.x=y", false),
    ] {
        assert_eq!(
            FieldSelector::parse(selector).unwrap().matches(object),
            selected,
            "{selector:?}"
        );
    }
}

#[test]
fn requires_tells_the_value_a_field_must_equal() {
    let selector = FieldSelector::parse("a=1,b!=2").unwrap();
    assert_eq!(
        [
            selector.requires("a"),
            selector.requires("b"),
            selector.requires("c")
        ],
        [Some("1"), None, None]
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = FieldSelector::parse(&text);
    }

    #[test]
    fn what_is_printed_reads_as_the_same_selector(text in r"([ab.]{0,2}(=|==|!=)([xy]|\\\\|\\,|\\=){0,3},?){0,4}") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }

    #[test]
    fn any_value_can_be_written(value in any::<String>()) {
        let selector = FieldSelector::new(vec![FieldRequirement { field: "a".to_owned(), equals: true, value }]);
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
    }
}
