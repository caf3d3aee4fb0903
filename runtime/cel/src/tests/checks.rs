//! Syntax, types, and estimated costs.

use std::sync::Arc;

use serde_json::json;

use super::{check_errors, schema};
use crate::program::Program;
use crate::schema::{Decl, escape};
use crate::scope::Scope;

#[test]
fn syntax() {
    check_errors(&[
        (
            "",
            "ERROR: <input>:1:1: Syntax error: mismatched input '<EOF>'",
        ),
        (
            "1 +",
            "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>'",
        ),
        ("1 = 2", "token recognition error at: '= '"),
        ("'open", "token recognition error"),
        (
            "self.name ==\n  )",
            "ERROR: <input>:2:3: Syntax error: mismatched input ')'",
        ),
        ("[1, 2", "expecting {']', ','}"),
        ("9223372036854775808", "invalid int literal"),
        ("'\\q'", "token recognition error at: ''\\q'"),
        (
            "'\\ud800'",
            "ERROR: <input>:1:1: invalid unicode code point",
        ),
        ("package", "reserved identifier: package"),
        ("self.name == 'ä' ? true", "expecting ':'"),
        ("ä", "token recognition error"),
    ]);
}

#[test]
fn types() {
    check_errors(&[
        (
            "self.bogus == 1",
            "ERROR: <input>:1:5: undefined field 'bogus'\n | self.bogus == 1\n | ....^",
        ),
        (
            "bogus == 1",
            "undeclared reference to 'bogus' (in container '')",
        ),
        (
            "bogus(1)",
            "undeclared reference to 'bogus' (in container '')",
        ),
        (
            "self.name == 1",
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        (
            "self.name + 1 == ''",
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (
            "self.size && true",
            "<input>:1:5: expected type 'bool' but found 'int'",
        ),
        (
            "self.name.size(1) == 1",
            "found no matching overload for 'size' applied to 'string.(int)'",
        ),
        (
            "self.name ? 1 : 2",
            "found no matching overload for '_?_:_' applied to '(string, int, int)'",
        ),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        (
            "{'a': 1, 'b': ''} == {}",
            "expected type 'int' but found 'string'",
        ),
        (
            "self.size.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension",
        ),
        (
            "self.name.first == ''",
            "type 'string' does not support field selection",
        ),
        (
            "self.numbers['a'] == 1",
            "found no matching overload for '_[_]' applied to '(list(int), string)'",
        ),
        (
            "[1].map(x, x + '') == []",
            "found no matching overload for '_+_' applied to '(int, string)'",
        ),
        (
            "[1].all(x, x)",
            "<input>:1:12: expected type 'bool' but found 'int'",
        ),
        (
            "!self.size",
            "found no matching overload for '!_' applied to '(int)'",
        ),
        (
            "self.numbers.sort() == ['a']",
            "applied to '(list(int), list(string))'",
        ),
        ("self.size == null", "applied to '(int, null)'"),
        ("Thing{a: 1} == 1", "undeclared reference to 'Thing'"),
        (
            "self in self.numbers",
            "found no matching overload for '@in' applied to '(object, list(int))'",
        ),
        (
            "self.ports[0] == self.pod",
            "found no matching overload for '_==_'",
        ),
        ("-self.name == ''", "found no matching overload for '-_'"),
        ("2.0 % 1.0 == 0.0", "found no matching overload for '_%_'"),
        (
            "self.labels.x == 1",
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
    ]);
}

#[test]
fn names_of_fields() {
    let pairs = [
        ("plain", Some("plain")),
        ("in", Some("__in__")),
        ("namespace", Some("__namespace__")),
        ("while", Some("__while__")),
        ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
        ("a__b", Some("a__underscores__b")),
        ("_x", Some("_x")),
        ("1a", None),
        ("a b", None),
        ("$ref", None),
        ("", None),
    ];
    for (name, escaped) in pairs {
        assert_eq!(escape(name).as_deref(), escaped, "{name}");
    }
}

/// Checks the least and the largest estimated cost, and that those of a run are between them.
#[track_caller]
fn check_cost(text: &str, min: u64, max: u64) {
    let decl = Arc::new(Decl::of(&schema(), false).unwrap());
    let program = Program::compile(text, &Scope::of_rule(&decl, false), &mut 0).unwrap();
    assert_eq!((program.cost.min, program.cost.max), (min, max), "{text}");
    let cost = super::evaluate(text, u64::MAX, |_, cost| cost).unwrap();
    // Lists of literals, and the empty one of a macro, cost nothing when the rule runs.
    let least = min.saturating_sub(2 * crate::meter::LIST_COST);
    assert!((least..=max).contains(&cost), "{text}: {cost}");
}

#[test]
fn costs() {
    // A name has at most 20 characters of 4 bytes.
    check_cost("true", 0, 0);
    check_cost("self.flag", 2, 2);
    check_cost("self.size + 1 == 2", 4, 4);
    check_cost("has(self.name)", 1, 1);
    check_cost("self.name == 'abc'", 3, 3);
    check_cost("self.name.startsWith('abc')", 3, 3);
    check_cost("self.name.contains('abc')", 2, 10);
    check_cost("self.name.matches('abcdefgh')", 4, 20);
    check_cost("[1, 2].all(x, x > 0)", 17, 21);
    check_cost("self.name + self.name == ''", 4, 20);
    check_cost("self.flag || self.flag", 2, 4);
    check_cost("self.flag ? 1 == 1 : self.size == 1", 3, 4);
    check_cost("size(self.name.lowerAscii()) > 0", 4, 12);
    check_cost("[1, 2].map(x, x).size() == 2", 49, 49);
    check_cost("[1, 2].exists_one(x, true)", 14, 16);
}

#[test]
fn sizes_follow_from_the_schema() {
    let decl = |schema| Decl::of(&schema, false).unwrap();
    let max = |schema| decl(schema).max_elements;
    assert_eq!(max(json!({"type": "string", "maxLength": 5})), 20);
    assert_eq!(max(json!({"type": "string", "enum": ["a", "abc"]})), 3);
    assert_eq!(max(json!({"type": "string"})), 3 * 1024 * 1024 - 2);
    assert_eq!(max(json!({"type": "string", "format": "date-time"})), 32);
    let items =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    assert_eq!(decl(items.clone()).min_size, 8);
    assert_eq!(
        max(json!({"type": "array", "items": items})),
        (3 * 1024 * 1024 - 2) / 9
    );
    assert_eq!(
        max(json!({"type": "array", "maxItems": 7, "items": items})),
        7
    );
}
