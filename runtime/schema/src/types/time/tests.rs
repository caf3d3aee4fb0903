//! Parsing and printing of times.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, printed: &str) {
    let time: Time = text.parse().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(time.to_string(), printed, "{text:?}");
}

#[track_caller]
fn check_error(text: &str, why: &str) {
    assert_eq!(
        text.parse::<Time>().unwrap_err().to_string(),
        format!("parsing time {}{why}", go_quote(text))
    );
}

#[test]
fn prints_in_utc_to_the_second() {
    check("2026-11-21T09:28:46Z", "2026-11-21T09:28:46Z");
    check("2026-11-21T10:28:46+01:00", "2026-11-21T09:28:46Z");
    check("2026-11-21T00:28:46-09:30", "2026-11-21T09:58:46Z");
    check("2026-11-21T09:28:46.999999999999Z", "2026-11-21T09:28:46Z");
    check("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z");
    check("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z");
    check("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z");
    check("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z");
}

#[test]
fn refuses_what_is_no_time_with_the_text_of_go() {
    let layout = " as \"2006-01-02T15:04:05Z07:00\": cannot parse";
    check_error("", &format!("{layout} \"\" as \"2006\""));
    check_error("yesterday", &format!("{layout} \"yesterday\" as \"2006\""));
    check_error("2026/11/21", &format!("{layout} \"/11/21\" as \"-\""));
    check_error("2026-11-21", &format!("{layout} \"\" as \"T\""));
    check_error(
        "2026-11-21 09:28:46Z",
        &format!("{layout} \" 09:28:46Z\" as \"T\""),
    );
    check_error(
        "2026-11-21T09:28:46",
        &format!("{layout} \"\" as \"Z07:00\""),
    );
    check_error(
        "2026-11-21T09:28:46z",
        &format!("{layout} \"z\" as \"Z07:00\""),
    );
    check_error(
        "2026-11-21T09:28:46+0100",
        &format!("{layout} \"+0100\" as \"Z07:00\""),
    );
    check_error(
        "2026-11-21T09:28:46+0x:00",
        &format!("{layout} \"+0x:00\" as \"Z07:00\""),
    );
    check_error("2026-13-21T09:28:46Z", ": month out of range");
    check_error("2026-02-30T09:28:46Z", ": day out of range");
    check_error("2026-02-20T24:28:46Z", ": hour out of range");
    check_error("2026-02-20T09:28:60Z", ": second out of range");
    check_error(
        "2026-02-20T09:28:06+25:00",
        ": time zone offset hour out of range",
    );
    check_error("2026-02-20T09:28:06Z ", ": extra text: \" \"");
    check_error("9999-12-31T23:59:59-01:00", ": year out of range");
}

#[test]
fn micro_time_has_six_fractional_digits() {
    for (text, printed) in [
        ("2026-11-21T09:28:46Z", "2026-11-21T09:28:46.000000Z"),
        (
            "2026-11-21T09:28:46.1234567Z",
            "2026-11-21T09:28:46.123456Z",
        ),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"),
    ] {
        assert_eq!(text.parse::<MicroTime>().unwrap().to_string(), printed);
    }
}

#[test]
fn times_far_away_stay_printable() {
    assert_eq!(
        Time::from_unix_seconds(i64::MAX).to_string(),
        "9999-12-31T23:59:59Z"
    );
    assert_eq!(
        Time::from_unix_seconds(i64::MIN).to_string(),
        "0000-01-01T00:00:00Z"
    );
    assert_eq!(
        MicroTime::from_unix_micros(i64::MAX).to_string(),
        "9999-12-31T23:59:59.999999Z"
    );
    assert_eq!(
        Time::now().plus(Duration::MAX).to_string(),
        "9999-12-31T23:59:59Z"
    );
}

#[test]
fn durations_do_not_go_below_zero() {
    let (early, late) = (Time::from_unix_seconds(10), Time::from_unix_seconds(25));
    assert_eq!(late.duration_since(early), Duration::from_secs(15));
    assert_eq!(early.duration_since(late), Duration::ZERO);
    assert_eq!(early.plus(Duration::from_millis(15_900)), late);
}

#[test]
fn conversions_keep_the_second() {
    let time: Time = "1969-12-31T23:59:59Z".parse().unwrap();
    assert_eq!(Time::from(MicroTime::from(time)), time);
    assert_eq!(Time::from(MicroTime::from_unix_micros(-1)), time);
}

#[test]
fn stands_in_json_as_a_string() {
    let time: Time = serde_json::from_str("\"2026-11-21T10:28:46+01:00\"").unwrap();
    assert_eq!(
        serde_json::to_string(&time).unwrap(),
        "\"2026-11-21T09:28:46Z\""
    );
    assert!(serde_json::from_str::<Time>("5").is_err());
    assert_eq!(serde_json::from_str::<Option<Time>>("null").unwrap(), None);
    let schema = serde_json::to_value(schemars::schema_for!(Time)).unwrap();
    assert_eq!(
        (&schema["type"], &schema["format"]),
        (&"string".into(), &"date-time".into())
    );
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same_time(micros in any::<i64>()) {
        let time = MicroTime::from_unix_micros(micros);
        prop_assert_eq!(time.to_string().parse::<MicroTime>().unwrap(), time);
        prop_assert_eq!(Time::from(time).to_string().parse::<Time>().unwrap(), Time::from(time));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Time>();
    }

    #[test]
    fn any_near_time_is_read_or_refused(text in r"[0-9]{4}-[0-9]{2}-[0-9é]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]{0,12})?(Z|[+-][0-9é]{2}:[0-9é]{2}).?") {
        let _ = text.parse::<MicroTime>();
    }
}
