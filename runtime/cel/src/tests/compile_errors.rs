//! Places and texts of compile errors, and what a definition may not use.

use std::sync::Arc;

use super::schema;
use crate::program::{Program, Refusal};
use crate::schema::Decl;
use crate::scope::Scope;

/// The errors of an expression, each with its column and text.
fn errors(text: &str) -> Vec<String> {
    let decl = Arc::new(Decl::of(&schema(), false).unwrap());
    match Program::compile(text, &Scope::of_rule(&decl, false), &mut 0) {
        Ok(_) => Vec::new(),
        Err(Refusal::Instantiation(text)) => vec![format!("instantiation: {text}")],
        Err(Refusal::Compilation(text)) => {
            let lines = text
                .lines()
                .filter_map(|line| line.strip_prefix("ERROR: <input>:1:"));
            lines.map(str::to_owned).collect()
        }
    }
}

#[track_caller]
fn check(all: &[(&str, &[&str])]) {
    for (text, expected) in all {
        assert_eq!(errors(text), *expected, "{text}");
    }
}

#[test]
fn a_field_is_at_its_dot_and_a_call_at_its_bracket() {
    check(&[
        ("self.bogus == 1", &["5: undefined field 'bogus'"]),
        (
            "self.size.x == 1",
            &["10: type 'int' does not support field selection"],
        ),
        (
            "bogus(1)",
            &["6: undeclared reference to 'bogus' (in container '')"],
        ),
        (
            "self.size.bogus()",
            &["16: undeclared reference to 'bogus' (in container '')"],
        ),
        (
            "size(self.size) == 1",
            &["5: found no matching overload for 'size' applied to '(int)'"],
        ),
        (
            "self.wait.getFullYear() == 1",
            &["22: found no matching overload for 'getFullYear' applied to 'duration.()'"],
        ),
        ("has(self)", &["5: invalid argument to has() macro"]),
        ("has(self.?size)", &["9: invalid argument to has() macro"]),
        (
            "self.tags.exists_one(x, x)",
            &["21: found no matching overload for '_?_:_' applied to '(string, int, int)'"],
        ),
        (
            "self.tags.filter(x, x) == []",
            &[
                "17: found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'",
            ],
        ),
        ("1 || true", &["1: expected type 'bool' but found 'int'"]),
        (
            "self.flag && self.size",
            &["18: expected type 'bool' but found 'int'"],
        ),
    ]);
}

#[test]
fn errors_are_in_the_order_of_their_places() {
    check(&[
        (
            "bogus(x)",
            &[
                "6: undeclared reference to 'bogus' (in container '')",
                "7: undeclared reference to 'x' (in container '')",
            ],
        ),
        (
            "cel.bind(x, 1, true)",
            &[
                "1: undeclared reference to 'cel' (in container '')",
                "9: undeclared reference to 'bind' (in container '')",
                "10: undeclared reference to 'x' (in container '')",
            ],
        ),
        (
            "authorizer.path('/').check('get').allowed()",
            &["1: undeclared reference to 'authorizer' (in container '')"],
        ),
        (
            "self.name.path('/')",
            &["15: found no matching overload for 'path' applied to 'string.(string)'"],
        ),
    ]);
}

#[test]
fn syntax_errors_name_what_is_expected() {
    const ANY: &str =
        "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
    let any = |text: &str, at: usize, kind: &str, starts: &str| {
        let expected = format!("{at}: Syntax error: {kind} expecting {{{starts}, {ANY}");
        assert_eq!(errors(text), [expected], "{text}");
    };
    let plain = "'[', '{', '(', '.', '-', '!'";
    any("1 +", 4, "mismatched input '<EOF>'", plain);
    any("()", 2, "mismatched input ')'", plain);
    any("1 == == 2", 6, "extraneous input '=='", plain);
    any(
        "self.tags[",
        11,
        "mismatched input '<EOF>'",
        "'[', '{', '(', '.', '-', '!', '?'",
    );
    any(
        "[",
        2,
        "mismatched input '<EOF>'",
        "'[', ']', '{', '(', '.', ',', '-', '!', '?'",
    );
    any(
        "{",
        2,
        "mismatched input '<EOF>'",
        "'[', '{', '}', '(', '.', ',', '-', '!', '?'",
    );
    check(&[
        ("(1", &["3: Syntax error: missing ')' at '<EOF>'"]),
        (
            "f(1 2)",
            &["5: Syntax error: extraneous input '2' expecting ')'"],
        ),
        ("self.tags[0", &["12: Syntax error: missing ']' at '<EOF>'"]),
        (
            "self.tags[0)",
            &["12: Syntax error: mismatched input ')' expecting ']'"],
        ),
        (
            "[1",
            &["3: Syntax error: mismatched input '<EOF>' expecting {']', ','}"],
        ),
        ("{1 2}", &["4: Syntax error: missing ':' at '2'"]),
        (
            "{1",
            &["3: Syntax error: mismatched input '<EOF>' expecting ':'"],
        ),
        (
            "1 2",
            &["3: Syntax error: extraneous input '2' expecting <EOF>"],
        ),
        (
            "1 2)",
            &["3: Syntax error: mismatched input '2' expecting <EOF>"],
        ),
        (
            "self.",
            &["6: Syntax error: no viable alternative at input '.'"],
        ),
        (
            "self..a",
            &["6: Syntax error: no viable alternative at input '..'"],
        ),
        (
            "self.?",
            &["7: Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}"],
        ),
        ("9223372036854775808 == 1", &["1: invalid int literal"]),
        ("1e400 == 1.0", &["1: invalid double literal"]),
        ("for", &["1: reserved identifier: for"]),
        ("while", &["1: reserved identifier: while"]),
    ]);
}

#[test]
fn literals_are_checked_once_the_types_are_right() {
    check(&[
        ("'a'.matches('a{1001}')", &["13: invalid matches argument"]),
        (
            "'a'.matches('(a{500}){3}')",
            &["13: invalid matches argument"],
        ),
        ("'a'.matches(r'a{,5}\\_\\z')", &[]),
        (
            "'a'.matches('[') && self.bogus",
            &["25: undefined field 'bogus'"],
        ),
        (
            "'%d'.format(['a']) == ''",
            &[
                "14: error during formatting: decimal clause can only be used on integers, was given string",
            ],
        ),
        (
            "'%f'.format([1]) == ''",
            &[
                "14: error during formatting: fixed-point clause can only be used on doubles, was given int",
            ],
        ),
        (
            "'%.2f'.format([self.name]) == '' && '%s %d'.format([self.any, self.any]) == ''",
            &[],
        ),
        (
            "'%s'.format([[ip('1.1.1.1')]]) == ''",
            &[
                "17: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, \
               maps, lists, types, durations, and timestamps, was given net.IP",
            ],
        ),
        ("'%s %s'.format([1]) == ''", &["15: index 1 out of range"]),
        (
            "'%s'.format([1, 2]) == ''",
            &["12: too many arguments supplied to string.format (expected 1, got 2)"],
        ),
        (
            "'%z'.format([1]) == ''",
            &["12: could not parse formatting clause: unrecognized formatting clause \"z\""],
        ),
        ("'%'.format([]) == ''", &["11: unexpected end of string"]),
    ]);
}

#[test]
fn constants_are_evaluated_at_once() {
    check(&[
        (
            "int('a') == 1",
            &["instantiation: type conversion error from 'string' to 'int'"],
        ),
        (
            "self.flag || uint(-1) == 1u",
            &["instantiation: unsigned integer overflow"],
        ),
        (
            "'a'.find('[') == ''",
            &["instantiation: error parsing regexp: missing closing ]: `[`"],
        ),
        ("int('1') == 1 && int(self.name) == 1", &[]),
    ]);
}

#[test]
fn a_reserved_word_names_a_field_too() {
    check(&[
        ("self.namespace == 1 && self.__namespace__ == 1", &[]),
        ("self.as == 1", &["5: undefined field 'as'"]),
    ]);
}

#[test]
fn functions_of_other_environments_are_unknown() {
    for text in [
        "math.abs(1) == 1",
        "base64.encode(b'a') == ''",
        "[1].includes(1)",
        "'a'.reverse() == 'a'",
        "duration(1) == duration('1s')",
        "quantity('1').sign() == 1",
        "self.tags.existsOne(x, true)",
        "type(quantity('1')) == kubernetes.Quantity",
    ] {
        assert!(!errors(text).is_empty(), "{text}");
    }
}

#[test]
fn what_is_no_token_is_skipped() {
    const EXPECTED: &str = "mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', \
                            NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
    let unknown = |column: usize, text: &str| {
        format!("{column}: Syntax error: token recognition error at: '{text}'")
    };
    let missing = |column: usize| format!("{column}: Syntax error: {EXPECTED}");
    let extra =
        |column: usize, text: &str| format!("{column}: Syntax error: {text} expecting <EOF>");
    for (text, expected) in [
        ("'open", vec![unknown(1, "'open"), missing(6)]),
        ("1 + \"x", vec![unknown(5, "\"x"), missing(7)]),
        ("@@", vec![unknown(1, "@"), unknown(2, "@"), missing(3)]),
        (
            "1 # 2",
            vec![unknown(3, "#"), extra(5, "extraneous input '2'")],
        ),
        (
            "1 = 2",
            vec![unknown(3, "= "), extra(5, "extraneous input '2'")],
        ),
        (
            r"'\q' ",
            vec![unknown(1, r"'\q"), unknown(4, "' "), missing(6)],
        ),
        ("'''long", vec![unknown(3, "'long")]),
        ("r'raw", vec![unknown(2, "'raw")]),
        ("0x == 0", vec![extra(2, "mismatched input 'x'")]),
        (
            r"'\ud800'",
            vec!["1: invalid unicode code point".to_owned()],
        ),
        (
            r"b'\u0041'",
            vec!["1: unable to unescape string".to_owned()],
        ),
        (
            "9223372036854775808 +",
            vec!["1: invalid int literal".to_owned(), missing(22)],
        ),
        (r"'\x4a\112\u004A' == 'JJJ'", vec![]),
    ] {
        assert_eq!(errors(text), expected, "{text}");
    }
}

#[test]
fn texts_that_are_no_tokens_are_told_up_to_a_number() {
    assert_eq!(errors(&"@".repeat(50_000)).len(), 101);
}
