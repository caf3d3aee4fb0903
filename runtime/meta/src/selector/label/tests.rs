//! Parsing and matching of label selectors.

use proptest::prelude::*;

use super::*;

const LABELS: [(&str, &str); 4] = [("app", "web"), ("tier", ""), ("size", "7"), ("in", "notin")];

fn matches(selector: &str) -> bool {
    let selector =
        LabelSelector::parse(selector).unwrap_or_else(|why| panic!("{selector:?}: {why}"));
    selector.matches(|key| LABELS.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
}

#[track_caller]
fn check_error(selector: &str, expected: &str) {
    assert_eq!(
        LabelSelector::parse(selector).unwrap_err(),
        expected,
        "{selector:?}"
    );
}

#[test]
fn every_operator_matches_as_it_says() {
    for yes in [
        "",
        " ",
        "app",
        "app=web",
        "app==web",
        "app = web",
        "app in (web,api)",
        "app in(api , web)",
        "app!=api",
        "app notin (api)",
        "!other",
        "! other",
        "size>6",
        "size<8",
        "app=web,size>6,!other",
        "tier=",
        "tier==",
        "tier in ()",
        "tier in (,a)",
        "tier in (a,)",
        "tier in (a,,b)",
        "tier",
        "\tapp\n",
        "in=notin",
        "in in (in,notin)",
        "in",
        "!notin",
    ] {
        assert!(matches(yes), "{yes:?}");
    }
    for no in [
        "other",
        "app=api",
        "app in (api)",
        "app!=web",
        "app notin (web,api)",
        "!app",
        "size>7",
        "size<7",
        "app>1",
        "other>1",
        "other<1",
        "app=web,other",
        "other=",
        "other in ()",
        "tier!=",
        "tier notin ()",
        "in notin (notin)",
    ] {
        assert!(!matches(no), "{no:?}");
    }
}

#[test]
fn unequal_and_notin_select_objects_without_the_label() {
    for yes in ["other!=a", "other notin (a,b)", "other!=", "other notin ()"] {
        assert!(matches(yes), "{yes:?}");
    }
}

#[test]
fn errors_name_the_token_found_and_what_was_expected() {
    check_error(
        "a b",
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    );
    check_error(
        "a===b",
        "unable to parse requirement: found '=', expected: identifier",
    );
    check_error(
        "a in",
        "unable to parse requirement: found '' expected: '('",
    );
    check_error(
        "a in b",
        "unable to parse requirement: found 'b' expected: '('",
    );
    check_error(
        "a in (",
        "unable to parse requirement: found '', expected: ',', ')' or identifier",
    );
    check_error(
        "a in (=",
        "unable to parse requirement: found '=', expected: ',', ')' or identifier",
    );
    check_error(
        "a notin (x",
        "unable to parse requirement: found '', expected: ',' or ')'",
    );
    check_error(
        "a in (x,",
        "unable to parse requirement: found '', expected: ',', or identifier",
    );
    check_error(
        "a in (x=y)",
        "unable to parse requirement: found '=', expected: ',' or ')'",
    );
    check_error("a,,b", "found ',', expected: identifier after ','");
    check_error("a,", "found '', expected: identifier after ','");
    check_error(
        ",a",
        "found ',', expected: !, identifier, or 'end of string'",
    );
    check_error(
        "=a",
        "found '=', expected: !, identifier, or 'end of string'",
    );
    check_error("a=b c", "found 'c', expected: ',' or 'end of string'");
    check_error("!a=b", "found '=', expected: ',' or 'end of string'");
    check_error(
        "!",
        "unable to parse requirement: found '', expected: identifier",
    );
    check_error(
        "!!a",
        "unable to parse requirement: found '!', expected: identifier",
    );
    check_error(
        "a!",
        "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
    );
    check_error(
        "a=(b)",
        "unable to parse requirement: found '(', expected: identifier",
    );
}

#[test]
fn keys_and_values_must_be_well_formed() {
    let key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let long = "x".repeat(64);
    check_error(
        "-x",
        &format!("unable to parse requirement: <nil>: Invalid value: \"-x\": {key}"),
    );
    check_error(
        "a=-b",
        &format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {value}"),
    );
    check_error(
        "a>-5",
        &format!("unable to parse requirement: values[0][a]: Invalid value: \"-5\": {value}"),
    );
    check_error(
        &format!("a={long}"),
        &format!(
            "unable to parse requirement: values[0][a]: Invalid value: \"{long}\": must be no more than 63 bytes"
        ),
    );
    check_error(
        "a in (_z,-b)",
        &format!(
            "unable to parse requirement: [values[0][a]: Invalid value: \"-b\": {value}, values[1][a]: Invalid value: \"_z\": {value}]"
        ),
    );
    check_error(
        "a>b",
        "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
    );
    check_error(
        "a<",
        "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer",
    );
}

#[test]
fn requirements_made_by_hand_take_the_values_of_their_operator() {
    let count = |operator, values: &[&str]| {
        Requirement::new(
            "a",
            operator,
            values.iter().map(|v| (*v).to_owned()).collect(),
        )
        .err()
        .unwrap_or_default()
    };
    assert_eq!(
        count(Operator::In, &[]),
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    );
    assert_eq!(
        count(Operator::Equals, &["a", "b"]),
        r#"values: Invalid value: ["a","b"]: exact-match compatibility requires one single value"#
    );
    assert_eq!(
        count(Operator::Exists, &["a"]),
        r#"values: Invalid value: ["a"]: values set must be empty for exists and does not exist"#
    );
    assert_eq!(
        count(Operator::LessThan, &["1", "2"]),
        r#"values: Invalid value: ["1","2"]: for 'Gt', 'Lt' operators, exactly one value is required"#
    );
    assert_eq!(count(Operator::In, &["b", "a", "b"]), "");
}

#[test]
fn prints_sorted_by_key_with_sorted_values() {
    for (text, printed) in [
        ("", ""),
        ("z,!b,a=1", "a=1,!b,z"),
        ("k in (b,a,b)", "k in (a,b)"),
        ("k notin ( )", "k notin ()"),
        ("k in (a,)", "k in (,a)"),
        ("k == v,k!=w,k>1,k<3", "k==v,k!=w,k>1,k<3"),
    ] {
        assert_eq!(LabelSelector::parse(text).unwrap().to_string(), printed);
    }
}

#[test]
fn requires_tells_the_one_value_a_label_must_have() {
    let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d,e!=5").unwrap();
    let required: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .map(|key| selector.requires(key))
        .into();
    assert_eq!(required, [Some("1"), Some("2"), None, None, None, None]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = LabelSelector::parse(&text);
    }

    #[test]
    fn what_is_printed_reads_as_the_same_selector(text in "([a-c!]?[a-c]?( in | notin |=|==|!=|>|<|)[(]?[ab15,]{0,4}[)]?,?){1,4}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }
}
