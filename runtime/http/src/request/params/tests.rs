//! Options and their errors, as tables.

use apiloom_meta::StatusReason;
use apiloom_meta::codec::Format;
use apiloom_registry::{Preconditions, PropagationPolicy};

use super::*;

fn refused<T: std::fmt::Debug>(result: Result<T, ApiError>) -> (StatusReason, String) {
    let error = result.expect_err("refused");
    (error.reason.expect("has a reason"), error.message)
}

fn list_invalid(query: &str, list_use: ListUse, expected: &str) {
    let got = refused(list_options(&Query::parse(query), list_use));
    let expected = format!("ListOptions.meta.k8s.io \"\" is invalid: {expected}");
    assert_eq!(got, (StatusReason::Invalid, expected), "{query}");
}

#[test]
fn list_options_that_do_not_fit_together_are_invalid() {
    let check = |query: &str, expected: &str| list_invalid(query, ListUse::List, expected);
    check(
        "resourceVersionMatch=Exact",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    );
    check(
        "resourceVersionMatch=Exact&resourceVersion=5&continue=x",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
    );
    check(
        "resourceVersionMatch=Foo&resourceVersion=5",
        "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
    );
    check(
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
    );
    check(
        "sendInitialEvents=false",
        "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
    );
}

#[test]
fn watch_options_that_do_not_fit_together_are_invalid() {
    let check = |query: &str, expected: &str| list_invalid(query, ListUse::Watch, expected);
    check(
        "sendInitialEvents=true",
        "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
    check(
        "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    );
    check(
        "resourceVersionMatch=Exact&resourceVersion=5",
        "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]",
    );
    check(
        "resourceVersionMatch=NotOlderThan&sendInitialEvents=1&continue=x",
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
    );
}

#[test]
fn list_options_that_cannot_be_decoded_are_bad_requests() {
    let check = |query: &str, expected: &str| {
        let got = refused(list_options(&Query::parse(query), ListUse::List));
        assert_eq!(
            got,
            (StatusReason::BadRequest, expected.to_owned()),
            "{query}"
        );
    };
    check("limit=x", "strconv.ParseInt: parsing \"x\": invalid syntax");
    check(
        "timeoutSeconds=1.5&limit=x",
        "strconv.ParseInt: parsing \"1.5\": invalid syntax",
    );
    check(
        "labelSelector=a===b",
        "unable to parse requirement: found '=', expected: identifier",
    );
    check(
        "fieldSelector=a",
        "invalid selector: 'a'; can't understand 'a'",
    );
}

#[test]
fn a_watch_from_nowhere_begins_with_what_is_there() {
    let check = |query: &str, expected: (Option<bool>, Option<VersionMatch>)| {
        let got = list_options(&Query::parse(query), ListUse::Watch).expect(query);
        assert_eq!(
            (got.send_initial_events, got.version_match),
            expected,
            "{query}"
        );
    };
    let everything = (Some(true), Some(VersionMatch::NotOlderThan));
    check("", everything);
    check("resourceVersion=0", everything);
    check("resourceVersion=7", (None, None));
    check(
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        (Some(false), Some(VersionMatch::NotOlderThan)),
    );
    let list = list_options(&Query::default(), ListUse::List).expect("fine");
    assert_eq!((list.send_initial_events, list.version_match), (None, None));
}

#[test]
fn numbers_below_one_mean_no_limit() {
    let check = |query: &str, expected: (u64, Option<u64>)| {
        let got = list_options(&Query::parse(query), ListUse::List).expect(query);
        assert_eq!((got.limit, got.timeout_seconds), expected, "{query}");
    };
    check("limit=5&timeoutSeconds=7", (5, Some(7)));
    check("limit=-5&timeoutSeconds=-7", (0, None));
    check("limit=0&timeoutSeconds=0", (0, None));
}

#[test]
fn write_options_are_validated_together() {
    let check = |query: &str, write_use: WriteUse, expected: &str| {
        let got = refused(write_options(
            &Query::parse(query),
            &HeaderMap::new(),
            write_use,
        ));
        assert_eq!(got, (StatusReason::Invalid, expected.to_owned()), "{query}");
    };
    check(
        "dryRun=Foo",
        WriteUse::Create,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\"]: supported values: \"All\"",
    );
    check(
        "fieldValidation=Foo",
        WriteUse::Update,
        "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
    );
    check(
        "force=false",
        WriteUse::Patch,
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
    );
    check(
        &format!("fieldManager={}", "m".repeat(129)),
        WriteUse::Create,
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes",
    );
    check(
        "fieldManager=a%0Ab&dryRun=x",
        WriteUse::Create,
        "CreateOptions.meta.k8s.io \"\" is invalid: [fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1), dryRun: Unsupported value: [\"x\"]: supported values: \"All\"]",
    );
}

#[test]
fn options_without_a_name_are_about_a_meta_kind() {
    let error = write_options(
        &Query::parse("dryRun=x"),
        &HeaderMap::new(),
        WriteUse::Create,
    )
    .expect_err("refused");
    let details = error.details.expect("has details");
    assert_eq!(
        (
            details.group.as_str(),
            details.kind.as_str(),
            details.name.as_str()
        ),
        ("meta.k8s.io", "CreateOptions", "")
    );
}

#[test]
fn the_program_manages_fields_unless_the_request_says_who() {
    let check = |agent: &str, query: &str, expected: &str| {
        let headers = crate::testing::get("/x", &[("user-agent", agent)]).headers;
        let got = write_options(&Query::parse(query), &headers, WriteUse::Create).expect(query);
        assert_eq!(got.field_manager, expected, "{agent} {query}");
    };
    check("kubectl/v1.36.0 (linux)", "", "kubectl");
    check("kubectl/v1.36.0", "fieldManager=me", "me");
    check("", "", "unknown");
    check(&"m".repeat(200), "", &"m".repeat(128));
}

#[test]
fn delete_options_of_the_query() {
    let got = delete_options_of_query(&Query::parse(
        "gracePeriodSeconds=5&orphanDependents=false&dryRun=All",
    ))
    .expect("fine");
    assert_eq!(
        (got.grace_period_seconds, got.orphan_dependents, got.dry_run),
        (Some(5), Some(false), true)
    );
    assert_eq!(got.preconditions, Preconditions::default());
    let query = Query::parse("uid=a&resourceVersion=7&resourceVersion=8");
    let got = delete_options_of_query(&query).expect("fine");
    let expected = Preconditions {
        uid: Some("a".to_owned()),
        resource_version: Some("7".to_owned()),
    };
    assert_eq!(got.preconditions, expected);
    let check = |query: &str, expected: &str| {
        let got = refused(delete_options_of_query(&Query::parse(query)));
        let expected = format!("DeleteOptions.meta.k8s.io \"\" is invalid: {expected}");
        assert_eq!(got, (StatusReason::Invalid, expected), "{query}");
    };
    check(
        "propagationPolicy=Orphan&orphanDependents=true",
        "propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set",
    );
    check(
        "propagationPolicy=X",
        "propagationPolicy: Unsupported value: \"X\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
    );
}

#[test]
fn delete_options_of_the_body() {
    let read = |body: &str| delete_options_of_body(body.as_bytes(), Format::Json);
    for version in ["v1", "meta.k8s.io/v1", "g.io/v1", "other.io/v7"] {
        let body = format!(
            r#"{{"kind":"DeleteOptions","apiVersion":"{version}","propagationPolicy":"Foreground","preconditions":{{"uid":"u"}}}}"#
        );
        let got = read(&body).expect("fine");
        assert_eq!(
            got.propagation_policy,
            Some(PropagationPolicy::Foreground),
            "{version}"
        );
        assert_eq!(
            got.preconditions,
            Preconditions {
                uid: Some("u".to_owned()),
                resource_version: None
            }
        );
    }
    assert!(read("{}").is_ok());
    let check = |body: &str, expected: &str| {
        assert_eq!(
            refused(read(body)),
            (StatusReason::BadRequest, expected.to_owned()),
            "{body}"
        );
    };
    check(
        r#"{"kind":"Pod","apiVersion":"v1"}"#,
        "no kind \"Pod\" is registered for version \"v1\" in scheme \"apiloom\"",
    );
    check(
        r#"{"kind":"Status","apiVersion":"other.io/v7"}"#,
        "converting (v1.Status) to (v1.DeleteOptions): unknown conversion",
    );
    check(
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1"}"#,
        "converting (v1.Table) to (v1.DeleteOptions): unknown conversion",
    );
    check(
        r#"{"kind":"DeleteOptions","apiVersion":"a/b/c"}"#,
        "unexpected GroupVersion string: a/b/c",
    );
    check(
        r#"{"kind":"Pod"}"#,
        "no kind \"Pod\" is registered for version \"meta.k8s.io/v1\" in scheme \"apiloom\"",
    );
    check(
        "{",
        "couldn't get version/kind; json parse error: unexpected end of JSON input",
    );
    check(
        "[]",
        r#"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#,
    );
    check(
        r#"{"gracePeriodSeconds":"x"}"#,
        "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    );
}

#[test]
fn include_object_takes_four_words() {
    let check = |query: &str, expected: IncludeObject| {
        assert_eq!(
            include_object(&Query::parse(query)),
            Ok(expected),
            "{query}"
        );
    };
    check("", IncludeObject::Metadata);
    check("includeObject=", IncludeObject::Metadata);
    check("includeObject=Metadata", IncludeObject::Metadata);
    check("includeObject=Object", IncludeObject::Object);
    check("includeObject=None", IncludeObject::None);
    assert_eq!(
        refused(include_object(&Query::parse("includeObject=Bad"))),
        (
            StatusReason::BadRequest,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"Bad\": must be 'Metadata', 'Object', 'None', or empty".to_owned()
        )
    );
}

#[test]
fn the_parameter_export_is_refused_unless_it_is_false() {
    for (query, is_taken) in [
        ("", true),
        ("export=false", true),
        ("export=0", true),
        ("export=", false),
        ("export=x", false),
    ] {
        let options = get_options(&Query::parse(query));
        assert_eq!(options.is_ok(), is_taken, "{query}");
    }
}
