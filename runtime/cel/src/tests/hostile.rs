//! Expressions that would take all time or memory: each ends soon, with a small result or an error.

use std::time::Duration;

use super::{cpu_time, evaluate};
use crate::rules::MAX_CALL_COST;

/// Evaluates an expression in a thread with the stack of a server's thread.
fn outcome(text: String) -> Result<u64, String> {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let evaluation = move || {
        let found = evaluate(&text, MAX_CALL_COST, |_, cost| cost);
        (found, cpu_time())
    };
    let (found, took) = thread.spawn(evaluation).unwrap().join().unwrap();
    assert!(took < Duration::from_secs(20), "{took:?}");
    found
}

/// An expression around another, many times.
fn nested(times: usize, inner: &str, around: impl Fn(usize, &str) -> String) -> String {
    (0..times).fold(inner.to_owned(), |inner, index| around(index, &inner))
}

fn check_cost(text: String) {
    assert_eq!(outcome(text), Err("cost".to_owned()));
}

#[test]
fn nested_loops() {
    check_cost(nested(8, "true", |index, inner| {
        format!("[1,2,3,4,5,6,7,8,9,10].all(x{index}, {inner})")
    }));
    check_cost(nested(8, "[1]", |index, inner| {
        format!("[1,2,3,4,5,6,7,8,9,10].map(x{index}, {inner})")
    }));
    check_cost("lists.range(1000000000).all(x, true)".to_owned());
    check_cost("lists.range(30000).all(x, lists.range(30000).all(y, true))".to_owned());
    check_cost(
        "lists.range(1000).map(x, lists.range(1000)).flatten().distinct().size() > 0".to_owned(),
    );
}

#[test]
fn values_that_double() {
    let doubled = |inner: &str| {
        nested(32, inner, |index, inner| {
            format!("[{inner}].map(s{index}, s{index} + s{index})[0]")
        })
    };
    check_cost(format!("size({}) > 0", doubled("'0123456789'")));
    // Lists are not copied, so only their elements would cost.
    assert!(outcome(format!("size({}) > 0", doubled("[0, 1, 2]"))).is_ok());
    check_cost(format!("{}.all(x, true)", doubled("[0, 1, 2]")));
    check_cost(format!("9 in {}", doubled("[0, 1, 2]")));
    check_cost(format!("{}.sum() > 0", doubled("[0, 1, 2]")));
    check_cost(format!("{}.reverse().size() > 0", doubled("[0, 1, 2]")));
    let shared = |inner: &str| {
        nested(32, inner, |index, inner| {
            format!("[{inner}].map(s{index}, [s{index}, s{index}])[0]")
        })
    };
    check_cost(format!("dyn({0}) == dyn({0})", shared("[1]")));
    check_cost(format!("'%s'.format([{}]) == ''", shared("'x'")));
    check_cost(format!("{}.flatten(100).size() > 0", shared("[[1]]")));
    check_cost(nested(12, "'ab'", |_, inner| {
        format!("[{inner}].map(s, s.replace('', s))[0]")
    }));
    check_cost(nested(12, "'aaaaaaaa'", |_, inner| {
        format!("[{inner}].map(s, s.replace('a', s))[0]")
    }));
    check_cost(nested(25, "'x'", |_, inner| {
        format!("[{inner}].map(s, '%s%s%s'.format([s, s, s]))[0]")
    }));
    check_cost(nested(25, "'x'", |_, inner| {
        format!("[{inner}].map(s, [s, s, s].join())[0]")
    }));
}

#[test]
fn deep_expressions() {
    let refused = |text: String| {
        let error = outcome(text).unwrap_err();
        assert!(
            error.contains("recursion limit") && error.len() < 1_000,
            "{error}"
        );
    };
    for (open, close) in [("(", ")"), ("[", "]"), ("!(", ")"), ("{1: ", "}")] {
        refused(format!(
            "{}1{} == 1",
            open.repeat(10_000),
            close.repeat(10_000)
        ));
    }
    refused(format!("{}1 > 0", "1+".repeat(40_000)));
    refused(format!("self{}", ".a".repeat(40_000)));
    refused(format!("self{}", "[0]".repeat(30_000)));
    refused(format!(
        "{}1{}",
        "true ? (".repeat(5_000),
        ") : 1".repeat(5_000)
    ));
    refused(nested(300, "true", |_, inner| {
        format!("[1].all(x, {inner})")
    }));
    let error = outcome("1".repeat(200_000)).unwrap_err();
    assert!(error.contains("exceeds limit"), "{error}");
}

#[test]
fn the_deepest_expressions_fit_into_the_stack() {
    let fits = |text: String| {
        if let Err(error) = outcome(text) {
            assert_eq!(error, "cost");
        }
    };
    fits(format!("{}true{}", "(".repeat(98), ")".repeat(98)));
    fits(format!("{}1 > 0", "1+".repeat(240)));
    fits(format!("size({}1{}) > 0", "[".repeat(97), "]".repeat(97)));
    fits(format!("{}1{} > 0", "int(".repeat(98), ")".repeat(98)));
    fits(format!("{}true", "!".repeat(90_000)));
    fits(format!("{}true{}", "!(".repeat(98), ")".repeat(98)));
    fits(format!("{}true", "true && ".repeat(12_000)));
    fits(format!(
        "({}1{}) > 0",
        "true ? (".repeat(48),
        ") : 1".repeat(48)
    ));
    fits(format!("dyn(self){}.hasValue()", ".?a".repeat(240)));
    fits(nested(40, "true", |index, inner| {
        format!("[1].all(x{index}, {inner})")
    }));
    fits(nested(33, "'a'", |_, inner| {
        format!("[{inner}].map(s, s + 'a')[0]")
    }));
    fits(nested(40, "optional.of(1)", |_, inner| {
        format!("{inner}.optMap(s, s)")
    }));
}

#[test]
fn patterns() {
    // The time is linear for all patterns.
    assert!(
        outcome("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('^(a+)+b$')".to_owned())
            .is_ok()
    );
    for (repeated, expected) in [
        ("{900}", "expression too large"),
        ("{90}", "bytes, more than 1048576"),
    ] {
        let large = format!(r"'a'.matches('\\pL' + '{repeated}')");
        let large = outcome(large).unwrap_err();
        assert!(large.contains(expected), "{large}");
    }
    check_cost(
        "lists.range(10000).all(x, 'a'.matches('^(a|[^' + string(x) + 'b]){500}$') || true)"
            .to_owned(),
    );
    check_cost("lists.range(100000).map(x, 'aaaaaaaaaa').join().matches('a*a*a*a*a*b')".to_owned());
}

#[test]
fn types_do_not_grow() {
    // Types whose size would double with every level.
    let text = nested(33, "1", |index, inner| {
        format!("[{inner}].map(s{index}, {{s{index}: s{index}}})[0]")
    });
    assert!(outcome(format!("size({text}) > 0")).is_err());
    let text = nested(33, "optional.none()", |index, inner| {
        format!("[{inner}].map(s{index}, {{'a': s{index}, 'b': s{index}}})[0]")
    });
    assert!(outcome(format!("size({text}) > 0")).is_ok());
}
