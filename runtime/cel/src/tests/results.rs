//! The results of expressions as JSON, and the names of keys.

use serde_json::{Value as Json, json};

use crate::{Expression, Failure, Variables};

fn claims() -> Json {
    json!({"sub": "ann", "n": 3.0, "groups": ["a", "b"], "a.b": {"c/d": "deep"}, "x__y": 1.0, "if": true, "e": "x"})
}

#[track_caller]
fn evaluate(text: &str) -> Result<Option<Json>, Failure> {
    let variables = Variables::default().map("claims").unescaped();
    let expression = Expression::compile(text, &variables).unwrap();
    assert_eq!(expression.text(), text);
    expression.evaluate(&[&claims()], &mut { u64::MAX })
}

#[test]
fn results_are_json() {
    for (text, expected) in [
        ("claims.sub", json!("ann")),
        ("'x:' + claims.sub", json!("x:ann")),
        ("claims.groups", json!(["a", "b"])),
        (
            "claims.groups.map(g, 'p:' + g) + ['c']",
            json!(["p:a", "p:b", "c"]),
        ),
        ("claims.?none.orValue('no')", json!("no")),
        (
            "{'a': [dyn(1), dyn(2u), dyn(1.5), dyn(null), dyn(true)]}",
            json!({"a": [1, 2, 1.5, null, true]}),
        ),
        ("claims.n + 1.0", json!(4.0)),
        ("claims.a__dot__b.c__slash__d", json!("deep")),
        ("claims['a.b']['c/d']", json!("deep")),
        ("claims.x__underscores__y == 1", json!(true)),
        ("claims.x__y == 1", json!(true)),
        (
            "has(claims.a__dot__b) && !has(claims.a__dot__c)",
            json!(true),
        ),
        ("claims.__if__", json!(true)),
        ("claims", claims()),
    ] {
        assert_eq!(evaluate(text), Ok(Some(expected)), "{text}");
    }
    for text in [
        "duration('1s')",
        "[type(1)]",
        "{1: 'a'}",
        "claims.?sub",
        "b'a'",
        "1.0 / 0.0",
    ] {
        assert_eq!(evaluate(text), Ok(None), "{text}");
    }
}

#[test]
fn a_result_without_a_value_says_why() {
    let Err(Failure::Evaluation(text)) = evaluate("claims.none") else {
        panic!("it has a value");
    };
    assert_eq!(
        text,
        "expression 'claims.none' resulted in error: no such key: none"
    );
}

/// Each level names its list eight times: 50 million texts in JSON, and few steps.
#[test]
fn a_result_that_shares_its_parts_has_a_bound() {
    let mut text = "['0123456789']".to_owned();
    for _ in 0..8 {
        text = format!("[{text}].map(x, [x, x, x, x, x, x, x, x])");
    }
    let Err(Failure::Cost(_)) = evaluate(&text) else {
        panic!("it has a value");
    };
}

#[test]
fn the_fields_that_an_expression_names_are_known() {
    let names = |text: &str| {
        let variables = Variables::default().map("claims").unescaped();
        Expression::compile(text, &variables)
            .unwrap()
            .names_field("claims", "email")
    };
    for text in [
        "claims.email",
        "claims['email']",
        "has(claims.email) ? claims.sub : 'x'",
        "claims.groups.map(g, claims.email + g)[0]",
        "claims.?email.orValue('')",
    ] {
        assert!(names(text), "{text}");
    }
    for text in [
        "claims.sub",
        "claims.email_verified",
        "claims.sub.email",
        "{'email': claims.sub}.email",
    ] {
        assert!(!names(text), "{text}");
    }
}

#[test]
fn names_are_unescaped_as_they_are_escaped() {
    use crate::schema::{escape, unescape};
    for name in ["a.b", "a-b/c", "a__b", "if", "_._", "a___b", "__a"] {
        let escaped = escape(name).unwrap();
        assert_eq!(unescape(&escaped).as_deref(), Some(name), "{escaped}");
    }
    for name in ["a", "a_b", "a__", "__", "a__b", "__unknown__", "a__if__"] {
        assert_eq!(unescape(name), None, "{name}");
    }
}
