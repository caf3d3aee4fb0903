//! Parsing, comparison and printing of quantities.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

#[track_caller]
fn check(text: &str, canonical: &str) {
    assert_eq!(quantity(text).to_string(), canonical, "{text:?}");
}

#[track_caller]
fn check_error(text: &str, why: ParseQuantityError) {
    assert_eq!(text.parse::<Quantity>().unwrap_err(), why, "{text:?}");
}

#[test]
fn zero_prints_bare() {
    for zero in ["0", "-0", "+0", "0.000", "0Ki", "0e5", "000", "0n", ".0"] {
        check(zero, "0");
    }
}

#[test]
fn decimal_suffixes_are_as_large_as_possible() {
    for (text, canonical) in [
        ("1", "1"),
        ("+1", "1"),
        ("007", "7"),
        ("999", "999"),
        ("1000", "1k"),
        ("10000", "10k"),
        ("1234567", "1234567"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".001", "1m"),
        ("1.", "1"),
        ("1.G", "1G"),
        ("1000m", "1"),
        ("100m", "100m"),
        ("1500u", "1500u"),
        ("5n", "5n"),
        ("2.5P", "2500T"),
        ("12E", "12E"),
        ("1000E", "1000E"),
        ("-1500m", "-1500m"),
        ("100000k", "100M"),
    ] {
        check(text, canonical);
    }
}

#[test]
fn binary_suffixes_are_as_large_as_possible() {
    for (text, canonical) in [
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("3Ei", "3Ei"),
        ("-2048Ki", "-2Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1.1Ki", "1126400m"),
        ("0.05Gi", "53687091200m"),
    ] {
        check(text, canonical);
    }
}

#[test]
fn decimal_exponents_are_multiples_of_three() {
    for (text, canonical) in [
        ("1e3", "1e3"),
        ("1E6", "1e6"),
        ("1e4", "10e3"),
        ("12e6", "12e6"),
        ("1.2e3", "1200"),
        ("1E-3", "1e-3"),
        ("0.5e0", "500e-3"),
        ("1e100", "10e99"),
    ] {
        check(text, canonical);
    }
}

#[test]
fn amounts_below_a_nano_are_rounded_away_from_zero() {
    for (text, canonical) in [
        ("0.1n", "1n"),
        ("3.001n", "4n"),
        ("0.00000012345", "124n"),
        ("-0.1n", "-1n"),
        ("1e-100", "1e-9"),
        ("0.000000000001Ki", "2n"),
        ("0.0000000000000000000000000000000000000000000000001", "1n"),
        (
            "1.00000000000000000000000000000000000000000000000001",
            "1000000001n",
        ),
    ] {
        check(text, canonical);
    }
}

#[test]
fn binary_amounts_end_where_an_i64_does() {
    for big in ["8Ei", "9Ei", "9223372036854775807Ki"] {
        check(big, "9223372036854775807");
        check(&format!("-{big}"), "-9223372036854775807");
    }
}

#[test]
fn what_is_no_quantity_is_refused_in_the_words_of_kubernetes() {
    use ParseQuantityError::{Format, Numeric, Suffix};
    for text in [
        "", " 1", "1 ", "aoeu", "1.1.M", "1+1.0M", "-", "+", ".", "Ki", "--1", "+-1", "0.1am",
        "1e5x", "1Ki5é", "é",
    ] {
        check_error(text, Format);
    }
    for text in [
        "0.1mi",
        ".5i",
        "1i",
        "1e",
        "1e+",
        "-3.01e-",
        "1kk",
        "1k5",
        "1Kie5",
        "1e99999999999",
        "1K",
        "1eE3",
    ] {
        check_error(text, Suffix);
    }
    for text in [
        "1".repeat(40),
        format!("{}.5Ki", "1".repeat(38)),
        "1000000000e2147483647".to_owned(),
    ] {
        check_error(&text, Numeric);
    }
    assert_eq!(
        Format.to_string(),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
    assert_eq!(
        Numeric.to_string(),
        "unable to parse numeric part of quantity"
    );
    assert_eq!(Suffix.to_string(), "unable to parse quantity's suffix");
}

#[test]
fn compares_amounts_not_spellings() {
    let ascending = [
        "-1e50",
        "-1Ki",
        "-1",
        "-1n",
        "0",
        "1n",
        "999999999n",
        "1",
        "1.000000001",
        "2",
        "1k",
        "1Ki",
        "1e40",
        "99999999999999999999999999999999999999e5",
        "1e50",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(quantity(a).cmp(&quantity(b)), i.cmp(&j), "{a} and {b}");
        }
    }
    assert_eq!(quantity("1024"), quantity("1Ki"));
    assert_eq!(quantity("1000m"), quantity("1e0"));
}

#[test]
fn sums_keep_the_family_of_the_first_that_is_not_zero() {
    let sum = |a: &str, b: &str| quantity(a).checked_add(quantity(b)).map(|q| q.to_string());
    let difference = |a: &str, b: &str| quantity(a).checked_sub(quantity(b)).map(|q| q.to_string());
    assert_eq!(sum("500m", "1").as_deref(), Some("1500m"));
    assert_eq!(sum("1Ki", "1024").as_deref(), Some("2Ki"));
    assert_eq!(sum("1024", "1Ki").as_deref(), Some("2048"));
    assert_eq!(sum("0", "1Ki").as_deref(), Some("1Ki"));
    assert_eq!(difference("1", "1000m").as_deref(), Some("0"));
    assert_eq!(difference("0", "1Ki").as_deref(), Some("-1Ki"));
    assert_eq!(sum("1e40", "1n"), None);
    assert_eq!(sum("1e1000000", "1"), None);
}

#[test]
fn gives_integers_when_they_fit() {
    assert_eq!(quantity("2Ki").to_i64(), Some(2048));
    assert_eq!(quantity("1500m").to_i64(), None);
    assert_eq!(quantity("1e30").to_i64(), None);
    assert_eq!(quantity("1500m").ceil(), Some(2));
    assert_eq!(quantity("-1500m").ceil(), Some(-2));
    assert_eq!(quantity("1n").milli(), Some(1));
    assert_eq!(quantity("1.5").milli(), Some(1500));
    assert_eq!(Quantity::from_milli(250).to_string(), "250m");
    assert_eq!(Quantity::from(i64::MIN).to_i64(), Some(i64::MIN));
    assert_eq!(quantity("1500m").to_f64(), 1.5);
    assert_eq!(quantity("1e1000").to_f64(), f64::INFINITY);
}

#[test]
fn stands_in_json_as_a_string_and_may_come_as_a_number() {
    let read = |value| {
        serde_json::from_value::<Quantity>(value)
            .map(|q| q.to_string())
            .ok()
    };
    assert_eq!(read(json!("1.5")).as_deref(), Some("1500m"));
    assert_eq!(read(json!(" 1 ")).as_deref(), Some("1"));
    assert_eq!(read(json!(5)).as_deref(), Some("5"));
    assert_eq!(read(json!(-5)).as_deref(), Some("-5"));
    assert_eq!(
        read(json!(u64::MAX)).as_deref(),
        Some("18446744073709551615")
    );
    assert_eq!(read(json!(0.25)).as_deref(), Some("250m"));
    assert_eq!(read(json!(true)), None);
    assert_eq!(
        serde_json::to_value(quantity("2048Ki")).unwrap(),
        json!("2Mi")
    );
    let schema = serde_json::to_value(schemars::schema_for!(Quantity)).unwrap();
    assert_eq!(
        (&schema["x-kubernetes-int-or-string"], &schema["type"]),
        (&json!(true), &json!(null))
    );
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same_amount(text in r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,3})") {
        if let Ok(read) = text.parse::<Quantity>() {
            let printed = read.to_string();
            prop_assert!(!printed.contains('.'));
            prop_assert_eq!(quantity(&printed), read);
            prop_assert_eq!(quantity(&printed).to_string(), printed);
            prop_assert_eq!(-(-read), read);
            prop_assert_eq!(quantity(&format!("{}", -read)), -read);
        }
    }

    #[test]
    fn agrees_with_plain_integers(a in any::<i32>(), b in any::<i32>(), unit in prop::sample::select(vec![(1_i64, ""), (1000, "k"), (1024, "Ki")])) {
        let (factor, suffix) = unit;
        let (left, right) = (quantity(&format!("{a}{suffix}")), Quantity::from(i64::from(b)));
        let (x, y) = (i64::from(a) * factor, i64::from(b));
        prop_assert_eq!(left.to_i64(), Some(x));
        prop_assert_eq!(left.cmp(&right), x.cmp(&y));
        prop_assert_eq!(left.checked_add(right).and_then(|q| q.to_i64()), Some(x + y));
        prop_assert_eq!(left.checked_sub(right).and_then(|q| q.to_i64()), Some(x - y));
    }

    #[test]
    fn what_parses_matches_the_pattern_of_the_schema(text in r"[+-]?[0-9]{0,3}(\.[0-9]{0,3})?[eEinumkKMGTP]{0,2}[+-]?[0-9]{0,2}") {
        let pattern = regex::Regex::new(PATTERN).unwrap();
        prop_assert_eq!(text.parse::<Quantity>().is_ok(), pattern.is_match(&text));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Quantity>();
    }
}

#[test]
fn the_schema_takes_what_the_type_reads() {
    #[derive(JsonSchema)]
    struct Limits {
        #[allow(dead_code, reason = "only the schema is of interest")]
        cpu: Quantity,
    }
    impl crate::api_type::ApiType for Limits {}
    let schema = crate::engine::Schema::for_type::<Limits>().unwrap();
    let errors = |cpu: serde_json::Value| schema.validate(&json!({ "cpu": cpu })).len();
    assert_eq!((errors(json!("1.5Gi")), errors(json!(5))), (0, 0));
    assert_eq!((errors(json!("1.5gi")), errors(json!(""))), (1, 1));
}
