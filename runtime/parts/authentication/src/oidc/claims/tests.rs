//! Claims that are mapped to users.

use apiloom_meta::field::FieldPath;

use super::*;

fn user(config: Value, claims: Value) -> Result<UserInfo, String> {
    let config: IssuerConfig = serde_json::from_value(config).unwrap();
    let mut errors = Vec::new();
    let expressions = Expressions::compile(&config, &FieldPath::root(), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    let Value::Object(claims) = claims else {
        panic!("claims are an object");
    };
    Mapper {
        config: &config,
        expressions: &expressions,
    }
    .user(&claims)
}

/// Names by `sub`, groups by `groups`, both with a prefix.
fn by_claims() -> Value {
    json!({"claimMappings": {
        "username": {"claim": "sub", "prefix": "u:"},
        "groups": {"claim": "groups", "prefix": "g:"},
        "uid": {"claim": "id"},
    }})
}

#[test]
fn claims_are_names_groups_and_uids() {
    let found = user(
        by_claims(),
        json!({"sub": "ann", "groups": ["a", "b"], "id": "7", "jti": "j"}),
    );
    let found = found.unwrap();
    assert_eq!((&*found.name, &*found.uid), ("u:ann", "7"));
    assert_eq!(found.groups, ["g:a", "g:b"]);
    assert_eq!(found.extra[CREDENTIAL_ID], ["JTI=j"]);
    let one = user(by_claims(), json!({"sub": "ann", "groups": "a", "id": ""})).unwrap();
    assert_eq!(one.groups, ["g:a"]);
    assert!(one.extra.is_empty());
    assert!(
        user(by_claims(), json!({"sub": "ann", "id": ""}))
            .unwrap()
            .groups
            .is_empty()
    );
}

#[test]
fn claims_of_other_types_are_refused() {
    for (claims, why) in [
        (
            json!({"id": ""}),
            "oidc: parse username claims \"sub\": claim not present",
        ),
        (
            json!({"sub": 1, "id": ""}),
            "oidc: parse username claims \"sub\": json: cannot unmarshal number into Go value of type string",
        ),
        (
            json!({"sub": "a", "id": "", "groups": [1]}),
            "oidc: parse groups claim \"groups\": json: cannot unmarshal array into Go value of type string",
        ),
        (
            json!({"sub": "a", "id": "", "groups": {"a": "b"}}),
            "oidc: parse groups claim \"groups\": json: cannot unmarshal object into Go value of type string",
        ),
        (
            json!({"sub": "a"}),
            "oidc: parse uid claim \"id\": claim not present",
        ),
    ] {
        assert_eq!(user(by_claims(), claims).unwrap_err(), why);
    }
}

#[test]
fn an_address_must_be_verified() {
    let config = json!({"claimMappings": {"username": {"claim": "email", "prefix": ""}}});
    let name = |claims: Value| user(config.clone(), claims).map(|user| user.name);
    assert_eq!(name(json!({"email": "a@b.c"})).unwrap(), "a@b.c");
    assert_eq!(
        name(json!({"email": "a@b.c", "email_verified": true})).unwrap(),
        "a@b.c"
    );
    for (verified, why) in [
        (json!(false), "oidc: email not verified"),
        (
            json!("true"),
            "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool",
        ),
    ] {
        let claims = json!({"email": "a@b.c", "email_verified": verified});
        assert_eq!(name(claims).unwrap_err(), why);
    }
}

#[test]
fn expressions_are_names_groups_uids_and_more() {
    let config = json!({
        "claimMappings": {
            "username": {"expression": "'u:' + claims.sub"},
            "groups": {"expression": "claims.roles.filter(r, r != 'x').map(r, 'g:' + r) + ['']"},
            "uid": {"expression": "claims.a__dot__test.id"},
            "extra": [
                {"key": "a.test/one", "valueExpression": "claims.sub"},
                {"key": "a.test/many", "valueExpression": "claims.roles"},
                {"key": "a.test/none", "valueExpression": "claims.?none.orValue(null)"},
                {"key": "a.test/empty", "valueExpression": "''"},
            ],
        },
        "claimValidationRules": [
            {"expression": "claims.exp - claims.nbf <= 600.0", "message": "too long"},
            {"claim": "hd", "requiredValue": "a.test"},
        ],
        "userValidationRules": [
            {"expression": "!user.username.startsWith('system:')", "message": "reserved"},
            {"expression": "user.groups.all(g, g.startsWith('g:')) && user.extra.a__dot__test__slash__one == ['ann']"},
        ],
    });
    let claims = json!({"sub": "ann", "roles": ["x", "y"], "a.test": {"id": "7"}, "exp": 700, "nbf": 100, "hd": "a.test"});
    let found = user(config.clone(), claims.clone()).unwrap();
    assert_eq!((&*found.name, &*found.uid), ("u:ann", "7"));
    assert_eq!(found.groups, ["g:y"]);
    let extra: Vec<_> = found.extra.into_iter().collect();
    assert_eq!(
        extra,
        [
            (
                "a.test/many".to_owned(),
                vec!["x".to_owned(), "y".to_owned()]
            ),
            ("a.test/one".to_owned(), vec!["ann".to_owned()]),
        ]
    );
    let refused = |name: &str, value: Value, why: &str| {
        let mut claims = claims.clone();
        claims[name] = value;
        assert_eq!(user(config.clone(), claims).unwrap_err(), why);
    };
    refused(
        "exp",
        json!(701),
        "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.nbf <= 600.0' failed: too long",
    );
    refused(
        "hd",
        json!("b"),
        "oidc: required claim hd value does not match. Got = b, want = a.test",
    );
    refused(
        "hd",
        json!(null),
        "oidc: required claim hd value does not match. Got = , want = a.test",
    );
    refused(
        "a.test",
        json!({}),
        "oidc: error evaluating uid claim expression: expression 'claims.a__dot__test.id' resulted in error: no such key: id",
    );
    refused(
        "a.test",
        json!({"id": 1}),
        "oidc: error evaluating uid claim expression: uid claim expression must return a string",
    );
    refused(
        "roles",
        json!([1]),
        "oidc: error evaluating group claim expression: expression 'claims.roles.filter(r, r != 'x').map(r, 'g:' + r) + ['']' resulted in error: no such overload",
    );
}

#[test]
fn users_of_the_system_can_be_refused() {
    let config = json!({
        "claimMappings": {"username": {"expression": "claims.sub"}},
        "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}],
    });
    let error = user(config.clone(), json!({"sub": "system:admin"})).unwrap_err();
    assert_eq!(
        error,
        "oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('system:')' failed: reserved"
    );
    let error = user(config.clone(), json!({"sub": ""})).unwrap_err();
    assert_eq!(
        error,
        "oidc: empty username via CEL expression is not allowed"
    );
    let error = user(config, json!({"sub": ["a"]})).unwrap_err();
    assert_eq!(
        error,
        "oidc: error evaluating username claim expression: username claim expression must return a string"
    );
}

/// A claim of ten thousand items and an expression that looks at each for each.
#[test]
fn expressions_have_a_budget() {
    let config = json!({"claimMappings": {
        "username": {"expression": "claims.l.all(a, claims.l.all(b, a == b)) ? 'a' : 'b'"},
    }});
    let error = user(config, json!({"l": vec!["x"; 10_000]})).unwrap_err();
    assert!(
        error.ends_with("operation cancelled: actual cost limit exceeded"),
        "{error}"
    );
}
