//! Tokens that are not what they should be.

use serde_json::json;

use super::*;

fn token(header: Value, claims: Value) -> Vec<u8> {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2ln", part(header), part(claims)).into_bytes()
}

#[track_caller]
fn check(claims: Value, expected: Result<(), &str>) {
    let token = token(json!({"alg": "RS256"}), claims);
    let unverified = UnverifiedToken::read(&token).unwrap();
    let found = unverified.check("https://a.test", &["x".to_owned()], 1000.0);
    assert_eq!(found.as_ref().map_err(|why| &**why).copied(), expected);
}

#[test]
fn what_a_token_says_is_checked() {
    let claims = |name: &str, value: Value| {
        let mut claims = json!({"iss": "https://a.test", "aud": "x", "exp": 2000});
        claims[name] = value;
        claims
    };
    check(claims("sub", json!("s")), Ok(()));
    check(claims("aud", json!(["y", "x"])), Ok(()));
    check(claims("exp", json!(1000)), Ok(()));
    check(claims("exp", json!(1e300)), Ok(()));
    check(claims("nbf", json!(1060)), Ok(()));
    check(
        claims("iss", json!("https://b.test")),
        Err(
            "oidc: id token issued by a different provider, expected \"https://a.test\" got \"https://b.test\"",
        ),
    );
    check(
        claims("aud", json!("y")),
        Err("oidc: expected audience \"x\" got [\"y\"]"),
    );
    check(
        claims("aud", json!(7)),
        Err("oidc: expected audience \"x\" got []"),
    );
    let expired =
        |at: &str| format!("oidc: token is expired (Token Expiry: {at} seconds since 1970)");
    check(claims("exp", json!(999)), Err(&expired("999")));
    check(claims("exp", json!(null)), Err(&expired("0")));
    check(
        claims("exp", json!("2000")),
        Err("oidc: failed to unmarshal claims: exp is no number"),
    );
    check(
        claims("nbf", json!(1061)),
        Err(
            "oidc: current time 1000 before the nbf (not before) time: 1061, in seconds since 1970",
        ),
    );
}

#[test]
fn algorithms_are_those_that_are_allowed() {
    let signature = |header: Value, allowed: &[&str]| {
        let token = token(header, json!({}));
        UnverifiedToken::read(&token).unwrap().signature(allowed)
    };
    let found = signature(json!({"alg": "ES256", "kid": "k"}), &["ES256", "RS256"]).unwrap();
    assert_eq!(
        (found.algorithm, found.key.as_deref()),
        (Algorithm::ES256, Some("k"))
    );
    assert_eq!(
        signature(json!({"alg": "RS256", "kid": ""}), &["RS256"])
            .unwrap()
            .key,
        None
    );
    for other in ["none", "HS256", "ES256", "", "rs256"] {
        let error = signature(json!({"alg": other}), &["RS256"]).unwrap_err();
        let expected = format!(
            "oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got {other:?}"
        );
        assert_eq!(error, expected);
    }
    assert!(
        signature(json!("RS256"), &["RS256"])
            .unwrap_err()
            .starts_with("oidc: malformed jwt")
    );
    // Names of symmetric algorithms are never known.
    assert!(signature(json!({"alg": "HS256"}), &["HS256"]).is_err());
}

#[test]
fn other_tokens_are_none_of_ours() {
    for other in [
        "",
        "a",
        "a.b",
        "a.b.c",
        "a.e30.c.d",
        "a.bnVsbA.c",
        "..",
        "{\"a\": \"b.c.d\"}",
    ] {
        assert!(UnverifiedToken::read(other.as_bytes()).is_none(), "{other}");
    }
    let google = token(json!({}), json!({"iss": "accounts.google.com"}));
    assert_eq!(
        UnverifiedToken::read(&google).unwrap().issuer(),
        "https://accounts.google.com"
    );
    let nameless = token(json!({}), json!({"iss": ["a"]}));
    assert_eq!(UnverifiedToken::read(&nameless).unwrap().issuer(), "");
}

#[test]
fn one_of_several_audiences_is_enough() {
    let token = token(json!({}), json!({"aud": ["b", "z"]}));
    let unverified = UnverifiedToken::read(&token).unwrap();
    let all = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(unverified.check_audiences(&all(&["a", "b"])), Ok(()));
    assert_eq!(
        unverified.check_audiences(&all(&["d", "c"])),
        Err("oidc: expected audience in [\"c\" \"d\"] got [\"b\" \"z\"]".to_owned())
    );
}
