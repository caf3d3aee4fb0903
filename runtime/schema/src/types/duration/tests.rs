//! Durations are parsed and printed as in Go.

use proptest::prelude::*;

use super::*;

fn parse_text(text: &str) -> Result<i64, String> {
    text.parse::<Duration>()
        .map(Duration::as_nanos)
        .map_err(|error| error.to_string())
}

const S: i64 = 1_000_000_000;

#[test]
fn go_spellings_are_read() {
    for (text, nanos) in [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("5s", 5 * S),
        ("30s", 30 * S),
        ("1478s", 1478 * S),
        ("-5s", -5 * S),
        ("+5s", 5 * S),
        ("5.0s", 5 * S),
        ("5.6s", 5_600_000_000),
        ("5.s", 5 * S),
        (".5s", 500_000_000),
        ("1.004s", 1_004_000_000),
        ("1.0040s", 1_004_000_000),
        ("100.00100s", 100_001_000_000),
        ("10ns", 10),
        ("11us", 11_000),
        ("12\u{b5}s", 12_000),
        ("12\u{3bc}s", 12_000),
        ("13ms", 13_000_000),
        ("15m", 900 * S),
        ("16h", 57_600 * S),
        ("3h30m", 12_600 * S),
        ("30m3h", 12_600 * S),
        ("10.5s4m", 250_500_000_000),
        ("-2m3.4s", -123_400_000_000),
        ("1h2m3s4ms5us6ns", 3_723_004_005_006),
        ("39h9m14.425s", 140_954_425_000_000),
        ("52763797000ns", 52_763_797_000),
        ("0.3333333333333333333h", 1_200 * S),
        ("9007199254740993ns", 9_007_199_254_740_993),
        ("9223372036854775807ns", i64::MAX),
        ("9223372036854775.807us", i64::MAX),
        ("9223372036s854ms775us807ns", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
        ("-9223372036854775.808us", i64::MIN),
        ("-2562047h47m16.854775808s", i64::MIN),
        ("0.100000000000000000000h", 360 * S),
        ("0.9223372036854775807h", 3_320_413_933_267),
        ("0.830103483285477580700h", 2_988_372_539_827),
    ] {
        assert_eq!(parse_text(text), Ok(nanos), "{text}");
    }
}

#[test]
fn other_texts_are_refused_in_the_words_of_go() {
    for (text, error) in [
        ("", r#"time: invalid duration """#),
        ("-", r#"time: invalid duration "-""#),
        ("s", r#"time: invalid duration "s""#),
        (".", r#"time: invalid duration ".""#),
        ("-.", r#"time: invalid duration "-.""#),
        (".s", r#"time: invalid duration ".s""#),
        ("+.s", r#"time: invalid duration "+.s""#),
        ("1d", r#"time: unknown unit "d" in duration "1d""#),
        ("3", r#"time: missing unit in duration "3""#),
        ("1..2s", r#"time: missing unit in duration "1..2s""#),
        ("1h x", r#"time: unknown unit "h x" in duration "1h x""#),
        (" 1h", r#"time: invalid duration " 1h""#),
        ("1H", r#"time: unknown unit "H" in duration "1H""#),
        ("--1s", r#"time: invalid duration "--1s""#),
        (
            "9223372036854775808ns",
            r#"time: invalid duration "9223372036854775808ns""#,
        ),
        (
            "9223372036854775.808us",
            r#"time: invalid duration "9223372036854775.808us""#,
        ),
        (
            "-9223372036854775809ns",
            r#"time: invalid duration "-9223372036854775809ns""#,
        ),
        (
            "9223372036854ms775us808ns",
            r#"time: invalid duration "9223372036854ms775us808ns""#,
        ),
        ("3000000h", r#"time: invalid duration "3000000h""#),
        (
            "99999999999999999999s",
            r#"time: invalid duration "99999999999999999999s""#,
        ),
        ("\u{65e5}", r#"time: invalid duration "\xe6\x97\xa5""#),
        ("1\u{0}", r#"time: unknown unit "\x00" in duration "1\x00""#),
        ("1\"", r#"time: unknown unit "\"" in duration "1\"""#),
    ] {
        assert_eq!(parse_text(text), Err(error.to_owned()), "{text:?}");
    }
}

#[test]
fn durations_are_printed_as_go_prints_them() {
    for (nanos, text) in [
        (0, "0s"),
        (1, "1ns"),
        (-1, "-1ns"),
        (1_100, "1.1\u{b5}s"),
        (2_200_000, "2.2ms"),
        (100_000_000, "100ms"),
        (3_300_000_000, "3.3s"),
        (60 * S, "1m0s"),
        (300 * S + 1, "5m0.000000001s"),
        (305 * S, "5m5s"),
        (305_001_000_000, "5m5.001s"),
        (18_305_001_000_000, "5h5m5.001s"),
        (3600 * S, "1h0m0s"),
        (5400 * S, "1h30m0s"),
        (480_000_000_000_001, "133h20m0.000000001s"),
        (i64::MAX, "2562047h47m16.854775807s"),
        (i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(Duration::from_nanos(nanos).to_string(), text);
    }
}

#[test]
fn standard_durations_convert_where_they_fit() {
    let second = time::Duration::from_secs(1);
    assert_eq!(Duration::try_from(second), Ok(Duration::from_secs(1)));
    assert_eq!(time::Duration::try_from(Duration::from_secs(1)), Ok(second));
    assert!(time::Duration::try_from(Duration::from_nanos(-1)).is_err());
    assert!(Duration::try_from(time::Duration::MAX).is_err());
    assert_eq!(Duration::from_secs(i64::MAX), Duration::MAX);
    assert_eq!(Duration::from_secs(i64::MIN), Duration::MIN);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(nanos in any::<i64>()) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        let json = serde_json::to_string(&duration).unwrap();
        prop_assert_eq!(serde_json::from_str::<Duration>(&json).unwrap(), duration);
    }

    #[test]
    fn small_durations_read_back(nanos in -2_000_000_000_000i64..2_000_000_000_000) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    /// Integer multiples of units are added, in any order.
    #[test]
    fn parts_add_up(hours in 0i64..1_000_000, minutes in 0i64..1_000_000, micros in 0i64..1_000_000_000) {
        let text = format!("{micros}us{hours}h{minutes}m");
        let nanos = hours * 3600 * S + minutes * 60 * S + micros * 1_000;
        prop_assert_eq!(parse_text(&text), Ok(nanos));
        prop_assert_eq!(parse_text(&format!("-{text}")), Ok(-nanos));
    }

    #[test]
    fn no_text_panics_and_what_is_read_is_printed_alike(text in "[-+]?([0-9]{0,20}(\\.[0-9]{0,20})?(ns|us|ms|s|m|h|x|)){0,4}") {
        if let Ok(duration) = text.parse::<Duration>() {
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
