//! Field errors and paths, printed.

use std::cell::Cell;

use serde::Serializer;
use serde_json::json;

use super::*;

#[track_caller]
fn check(error: &FieldError, reason: &str, body: &str) {
    assert_eq!(error.to_string(), format!("spec.x: {body}"));
    assert_eq!((error.kind.as_str(), error.body.as_str()), (reason, body));
}

#[test]
fn every_kind_has_its_reason_and_text() {
    let path = FieldPath::new("spec.x");
    check(
        &FieldError::required(&path, ""),
        "FieldValueRequired",
        "Required value",
    );
    check(
        &FieldError::required(&path, "why"),
        "FieldValueRequired",
        "Required value: why",
    );
    check(
        &FieldError::invalid(&path, "a\"b", "why"),
        "FieldValueInvalid",
        r#"Invalid value: "a\"b": why"#,
    );
    check(
        &FieldError::type_invalid(&path, 5, "why"),
        "FieldValueTypeInvalid",
        "Invalid value: 5: why",
    );
    check(
        &FieldError::not_supported(&path, "X", &["a", "b"]),
        "FieldValueNotSupported",
        r#"Unsupported value: "X": supported values: "a", "b""#,
    );
    check(
        &FieldError::duplicate(&path, "a"),
        "FieldValueDuplicate",
        r#"Duplicate value: "a""#,
    );
    check(
        &FieldError::forbidden(&path, "why"),
        "FieldValueForbidden",
        "Forbidden: why",
    );
    check(
        &FieldError::not_found(&path, "a"),
        "FieldValueNotFound",
        r#"Not found: "a""#,
    );
    check(
        &FieldError::too_long(&path, 5),
        "FieldValueTooLong",
        "Too long: may not be more than 5 bytes",
    );
    check(
        &FieldError::too_short(&path, 5),
        "FieldValueTooShort",
        "Too short: must be at least 5 characters",
    );
    check(
        &FieldError::too_many(&path, 6, 5),
        "FieldValueTooMany",
        "Too many: 6: must have at most 5 items",
    );
    check(
        &FieldError::internal(&path, "why"),
        "InternalError",
        "Internal error: why",
    );
    check(
        &FieldError::too_few(&path, 4, 5),
        "FieldValueTooFew",
        "Too few: 4: must have at least 5 items",
    );
}

#[test]
fn values_are_shown_by_type() {
    #[derive(Serialize)]
    struct Pair {
        z: u8,
        a: &'static str,
    }
    let shown = |error: FieldError| error.body;
    let path = FieldPath::root();
    assert_eq!(
        shown(FieldError::duplicate(&path, true)),
        "Duplicate value: true"
    );
    assert_eq!(
        shown(FieldError::duplicate(&path, -1.5)),
        "Duplicate value: -1.5"
    );
    assert_eq!(
        shown(FieldError::duplicate(&path, json!(null))),
        "Duplicate value: null"
    );
    assert_eq!(
        shown(FieldError::duplicate(&path, None::<&str>)),
        "Duplicate value: null"
    );
    assert_eq!(
        shown(FieldError::duplicate(&path, ["All"])),
        r#"Duplicate value: ["All"]"#
    );
    assert_eq!(
        shown(FieldError::duplicate(&path, Pair { z: 1, a: "<&>" })),
        r#"Duplicate value: {"z":1,"a":"\u003c\u0026\u003e"}"#
    );
}

#[test]
fn long_values_are_truncated_between_characters() {
    let path = FieldPath::root();
    let check = |value: &str, kept: &str| {
        let expected = format!("Duplicate value: \"{kept}...\"");
        assert_eq!(FieldError::duplicate(&path, value).body, expected);
    };
    check(&"\u{e4}".repeat(5_000), &"\u{e4}".repeat(4_096));
    check(
        &format!("a{}", "\u{e4}".repeat(5_000)),
        &format!("a{}", "\u{e4}".repeat(4_095)),
    );
    let text = "x".repeat(8_000);
    check(
        &format!("{text}{}", "\"".repeat(500)),
        &format!("{text}{}", "\\\"".repeat(192)),
    );
    let kept = "x".repeat(8_192);
    let whole = FieldError::duplicate(&path, &kept).body;
    assert_eq!(whole, format!("Duplicate value: \"{kept}\""));
    let list = FieldError::duplicate(&path, vec!["\u{e4}"; 5_000]).body;
    assert!(list.starts_with("Duplicate value: [\"\u{e4}\","));
    // A character is at the limit.
    let cut = list.trim_start_matches("Duplicate value: ").len();
    assert!((8_192..=8_192 + CUT.len()).contains(&cut), "{cut}");
    assert!(list.ends_with(CUT));
}

/// All of it was serialized, for an error that shows 8 KiB.
#[test]
fn of_a_long_value_only_the_beginning_is_serialized() {
    struct Counted<'a>(&'a Cell<usize>);
    impl Serialize for Counted<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.serialize_u8(7)
        }
    }
    let count = Cell::new(0);
    let items: Vec<_> = (0..100_000).map(|_| Counted(&count)).collect();
    let error = FieldError::invalid(&FieldPath::root(), &items, "why");
    let shown = "7,".repeat(4_095);
    assert_eq!(error.body, format!("Invalid value: [{shown}7...: why"));
    assert!(count.get() < 4_200, "{} of 100,000 items", count.get());
}

#[test]
fn paths_are_built_from_fields_indices_and_keys() {
    let spec = FieldPath::new("spec");
    assert_eq!(
        spec.child("containers").index(0).child("name").as_str(),
        "spec.containers[0].name"
    );
    assert_eq!(
        FieldPath::root()
            .child("metadata")
            .child("annotations")
            .key("a.b/c")
            .as_str(),
        "metadata.annotations[a.b/c]"
    );
    assert_eq!(FieldPath::from("a.b"), FieldPath::new("a").child("b"));
}

#[test]
fn the_root_prints_as_nil() {
    assert_eq!(FieldPath::root().to_string(), "<nil>");
    assert_eq!(FieldPath::root().as_str(), "");
    assert_eq!(
        FieldError::required(&FieldPath::root(), "")
            .path
            .to_string(),
        "<nil>"
    );
}

#[test]
fn several_errors_are_put_in_brackets() {
    let (a, b) = (
        FieldError::required(&"a".into(), ""),
        FieldError::required(&"b".into(), ""),
    );
    assert_eq!(aggregate(&[]), "[]");
    assert_eq!(aggregate(std::slice::from_ref(&a)), "a: Required value");
    assert_eq!(
        aggregate(&[a.clone(), b, a]),
        "[a: Required value, b: Required value]"
    );
}

#[test]
fn strings_are_quoted_as_go_quotes() {
    for (text, quoted) in [
        ("", r#""""#),
        ("plain text", r#""plain text""#),
        ("\"\\", r#""\"\\""#),
        ("\n\r\t\u{7}\u{8}\u{b}\u{c}", r#""\n\r\t\a\b\v\f""#),
        ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
        ("é世😀", "\"é世😀\""),
        ("e\u{301}", "\"e\u{301}\""),
        ("\u{301}", "\"\u{301}\""),
        (
            "\u{80}\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}\u{e000}",
            r#""\u0080\u00a0\u00ad\u200b\u2028\ufeff\ue000""#,
        ),
        ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
        ("'", "\"'\""),
        ("\u{fffd}", "\"\u{fffd}\""),
    ] {
        assert_eq!(go_quote(text), quoted);
    }
}
