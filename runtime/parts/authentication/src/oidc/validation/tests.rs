//! Configurations and what is wrong with them.

use serde_json::{Value, json};

use super::super::config::{Configuration, IssuerConfig};
use super::*;

fn valid() -> Value {
    json!({
        "issuer": {"url": "https://a.test", "audiences": ["x"]},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
    })
}

/// The problems of an issuer that is valid but for these fields.
#[track_caller]
fn problems(changes: &[(&str, Value)]) -> Vec<String> {
    let mut issuer = valid();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        issuer.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    let issuer: IssuerConfig = serde_json::from_value(issuer).unwrap();
    let configuration = Configuration {
        jwt: vec![issuer],
        ..Configuration::default()
    };
    let found = check(&configuration, &["https://own.test".to_owned()]);
    let errors = found.err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refused(changes: &[(&str, Value)], expected: &[&str]) {
    assert_eq!(problems(changes), expected, "{changes:?}");
}

#[test]
fn addresses_are_checked() {
    assert!(problems(&[]).is_empty());
    let url = |url: &str| [("/issuer/url", json!(url))];
    refused(&url(""), &["jwt[0].issuer.url: Required value"]);
    for (given, why) in [
        ("http://a.test", "URL scheme must be https"),
        ("a.test", "URL scheme must be https"),
        (
            "https://me:secret@a.test",
            "URL must not contain a username or password",
        ),
        ("https://a.test?b=c", "URL must not contain a query"),
        ("https://a.test#b", "URL must not contain a fragment"),
        (
            "https://own.test",
            "URL must not overlap with disallowed issuers: [https://own.test]",
        ),
    ] {
        let expected = format!("jwt[0].issuer.url: Invalid value: {given:?}: {why}");
        refused(&url(given), &[&expected]);
    }
    let discovery = |url: &str| [("/issuer/discoveryURL", json!(url))];
    assert!(
        problems(&discovery(
            "https://b.test/x/.well-known/openid-configuration"
        ))
        .is_empty()
    );
    refused(
        &discovery("https://a.test/"),
        &[
            "jwt[0].issuer.discoveryURL: Invalid value: \"https://a.test/\": discoveryURL must be different from URL",
        ],
    );
    // The issuer of the server itself may be discovered elsewhere.
    assert!(problems(&discovery("https://own.test")).is_empty());
}

#[test]
fn audiences_and_authorities_are_checked() {
    let audiences = |all: Value, policy: &str| {
        [
            ("/issuer/audiences", all),
            ("/issuer/audienceMatchPolicy", json!(policy)),
        ]
    };
    assert!(problems(&audiences(json!(["a"]), "MatchAny")).is_empty());
    assert!(problems(&audiences(json!(["a", "b"]), "MatchAny")).is_empty());
    refused(
        &audiences(json!([]), ""),
        &[
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ],
    );
    refused(
        &audiences(json!(["a", "", "a"]), "MatchAny"),
        &[
            "jwt[0].issuer.audiences[1]: Required value",
            "jwt[0].issuer.audiences[2]: Duplicate value: \"a\"",
        ],
    );
    refused(
        &audiences(json!(["a", "b"]), ""),
        &[
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
        ],
    );
    refused(
        &audiences(json!(["a"]), "All"),
        &[
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"All\": audienceMatchPolicy must be empty or MatchAny for single audience",
        ],
    );
    refused(
        &[("/issuer/certificateAuthority", json!("secret"))],
        &[
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA certificates",
        ],
    );
}

#[test]
fn mappings_are_checked() {
    let username = |mapping: Value| [("/claimMappings/username", mapping)];
    refused(
        &username(json!({})),
        &["jwt[0].claimMappings.username: Required value: claim or expression is required"],
    );
    refused(
        &username(json!({"claim": "sub"})),
        &[
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing",
        ],
    );
    refused(
        &username(json!({"claim": "sub", "prefix": "", "expression": "claims.sub"})),
        &[
            "jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set",
        ],
    );
    refused(
        &username(json!({"prefix": "p", "expression": "claims.sub"})),
        &[
            "jwt[0].claimMappings.username.prefix: Invalid value: \"p\": may not be specified when expression is set",
        ],
    );
    refused(
        &username(json!({"expression": "claims.sub +"})),
        &[
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.sub +\": compilation failed: ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | claims.sub +\n | ............^",
        ],
    );
    refused(
        &[(
            "/claimMappings/uid",
            json!({"claim": "a", "expression": "b"}),
        )],
        &["jwt[0].claimMappings.uid: Invalid value: \"\": claim and expression can't both be set"],
    );
    let extra = |key: &str, value: &str| json!({"key": key, "valueExpression": value});
    let extras = |all: Value| [("/claimMappings/extra", all)];
    assert!(problems(&extras(json!([extra("a.test/b", "claims.sub")]))).is_empty());
    refused(
        &extras(json!([
            extra("b", "'x'"),
            extra("a.test/B", "'x'"),
            extra("a.test/b", "")
        ])),
        &[
            "jwt[0].claimMappings.extra[0].key: Invalid value: \"b\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            "jwt[0].claimMappings.extra[1].key: Invalid value: \"a.test/B\": must be lowercase",
            "jwt[0].claimMappings.extra[2].valueExpression: Required value",
        ],
    );
    for reserved in ["k8s.io/a", "x.kubernetes.io/a"] {
        let expected = format!(
            "jwt[0].claimMappings.extra[0].key: Invalid value: {reserved:?}: k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
        );
        refused(&extras(json!([extra(reserved, "'x'")])), &[&expected]);
    }
    assert!(problems(&extras(json!([extra("notk8s.io/a", "'x'")]))).is_empty());
    refused(
        &extras(json!([extra("a.test/b", "'x'"), extra("a.test/b", "'y'")])),
        &["jwt[0].claimMappings.extra[1].key: Duplicate value: \"a.test/b\""],
    );
}

#[test]
fn a_name_that_is_an_address_must_be_verified() {
    let name = |more: Vec<(&'static str, Value)>| {
        let mut changes = vec![(
            "/claimMappings/username",
            json!({"expression": "claims.email"}),
        )];
        changes.extend(more);
        problems(&changes)
    };
    let [problem] = &*name(vec![]) else {
        panic!("it has no problem, or several");
    };
    assert!(problem.starts_with("jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used in "), "{problem}");
    let rule = json!([{"expression": "claims.?email_verified.orValue(true) == true"}]);
    assert!(name(vec![("/claimValidationRules", rule)]).is_empty());
    let extra = json!([{"key": "a.test/v", "valueExpression": "string(claims.email_verified)"}]);
    assert!(name(vec![("/claimMappings/extra", extra)]).is_empty());
}

#[test]
fn rules_are_checked() {
    let claims = |rules: Value| [("/claimValidationRules", rules)];
    refused(
        &claims(json!([
            {},
            {"claim": "a", "expression": "true"},
            {"claim": "a", "message": "m"},
            {"claim": "a"},
            {"expression": "true", "requiredValue": "v"},
            {"expression": "true"},
            {"expression": "1"},
        ])),
        &[
            "jwt[0].claimValidationRules[0]: Required value: claim or expression is required",
            "jwt[0].claimValidationRules[1]: Invalid value: \"a\": claim and expression can't both be set",
            "jwt[0].claimValidationRules[2].message: Invalid value: \"m\": may not be specified when claim is set",
            "jwt[0].claimValidationRules[3].claim: Duplicate value: \"a\"",
            "jwt[0].claimValidationRules[4].requiredValue: Invalid value: \"v\": may not be specified when expression is set",
            "jwt[0].claimValidationRules[5].expression: Duplicate value: \"true\"",
            "jwt[0].claimValidationRules[6].expression: Invalid value: \"1\": must evaluate to bool",
        ],
    );
    refused(
        &[(
            "/userValidationRules",
            json!([{}, {"expression": "user.nothing == 'a'"}, {"expression": "user.username"}]),
        )],
        &[
            "jwt[0].userValidationRules[0].expression: Required value",
            "jwt[0].userValidationRules[1].expression: Invalid value: \"user.nothing == 'a'\": compilation failed: ERROR: <input>:1:5: undefined field 'nothing'\n | user.nothing == 'a'\n | ....^",
            "jwt[0].userValidationRules[2].expression: Invalid value: \"user.username\": must evaluate to bool",
        ],
    );
}

#[test]
fn a_configuration_is_checked_as_a_whole() {
    let check = |configuration: Value| {
        let configuration: Configuration = serde_json::from_value(configuration).unwrap();
        let errors = super::check(&configuration, &[]).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        check(json!({"jwt": [valid(), valid()]})),
        ["jwt[1].issuer.url: Duplicate value: \"https://a.test\""]
    );
    assert_eq!(
        check(json!({"jwt": vec![valid(); 65]})),
        ["jwt: Too many: 65: must have at most 64 items"]
    );
    assert_eq!(
        check(json!({"anonymous": {"enabled": false, "conditions": [{"path": "/livez"}]}})),
        [
            "anonymous.conditions: Invalid value: [\"/livez\"]: enabled should be set to true when conditions are defined"
        ]
    );
    assert!(
        check(json!({"anonymous": {"enabled": true, "conditions": [{"path": "/livez"}]}}))
            .is_empty()
    );
    assert!(check(json!({})).is_empty());
}
