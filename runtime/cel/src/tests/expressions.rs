//! The language: literals, operators, macros, optionals, and conversions.

use super::{check_errors, check_true};

#[test]
fn literals_and_operators() {
    check_true(&[
        "1 + 2 * 3 == 7",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "-9223372036854775808 < 0",
        "0xff == 255 && 7u + 1u == 8u",
        "1.5e3 == 1500.0 && .5 < 1.0",
        "1 < 1.5 && 2u > 1 && 2.0 >= 2u",
        "dyn(9007199254740993) == 9007199254740992.0 && 9223372036854775807 >= 9223372036854775808.0",
        "{'a': 1, 'a': 2}.a == 2 && {1: 'x', 1: 'y'}[1] == 'y'",
        "'a' + \"b\" == 'ab' && 'a' < 'b'",
        "b'abc' == bytes('abc') && b'a' + b'b' == b'ab' && b'a' < b'b'",
        r"'\x41\u00fc\101\U0001F600' == 'AüA😀' && '\?\`' == '?`' && b'\xff\101'.size() == 2",
        "'a\\nb' == '''a\nb'''",
        r"r'\n'.size() == 2",
        "[1, 2] + [3] == [1, 2, 3]",
        "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
        "{'a': 1}.a == 1 && {'a': 1}['a'] == 1 && {1: 'x'}[1] == 'x'",
        "[1, 2, 3][1] == 2",
        "2 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}",
        "true ? 1 == 1 : false",
        "!false && !!true",
        "-(3) == -3 && --3 == 3",
        "null == null",
        "dyn(1) == dyn(1.0) && dyn(1) == dyn(1u) && dyn(1) != dyn('1')",
        "[dyn(1), dyn(2u), dyn(3.0)] == [dyn(1.0), dyn(2), dyn(3u)]",
        "// a comment\n 1 == 1",
        "type(1) == int && type('a') == string && type([]) == list && type({}) == map && type(null) == null_type",
        "type(type(1)) == type && type(duration('1s')) == google.protobuf.Duration",
    ]);
    check_errors(&[
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("-9223372036854775807 - 2 > 0", "integer overflow"),
        ("0u - 1u > 0u", "unsigned integer overflow"),
        ("[1][1] == 1", "index out of bounds: 1"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
        ("dyn(1) + dyn('a') == 1", "no such overload"),
    ]);
}

#[test]
fn errors_count_only_if_no_term_decides() {
    check_true(&[
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 2].all(x, 1 / x == 1)",
        "true || 1 / 0 == 1",
    ]);
    check_errors(&[
        ("1 / 0 == 1 || false", "division by zero"),
        ("[0, 1].all(x, 1 / x == 1)", "division by zero"),
        ("[0].map(x, 1 / x) == [1]", "division by zero"),
    ]);
}

#[test]
fn macros() {
    check_true(&[
        "[1, 2].all(x, x > 0) && [].all(x, false)",
        "[1, 2].exists(x, x == 2) && ![].exists(x, true)",
        "[1, 2, 2].exists_one(x, x == 1) && ![1, 1].existsOne(i, x, x == 1)",
        "[1, 2].map(x, x * 2) == [2, 4]",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
        "[1, 2, 3].filter(x, x != 2) == [1, 3]",
        "{'a': 1, 'b': 2}.all(k, k in ['a', 'b']) && {'a': 1}.map(k, k) == ['a']",
        "[1, 2].map(x, [3, 4].map(y, x * y)) == [[3, 4], [6, 8]]",
        "[5, 6].all(i, v, v == i + 5) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "[5, 6].existsOne(i, v, i == 1)",
        "[5, 6].transformList(i, v, i + v) == [5, 7]",
        "[5, 6].transformList(i, v, i > 0, v) == [6]",
        "{'a': 1, 'b': 2}.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}",
        "[5, 6].transformMap(i, v, v) == {0: 5, 1: 6}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
        "['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']",
        "[1].all(x, [2].all(x, x == 2) && x == 1)",
        "has({'a': 1}.a) && !has({'a': 1}.b)",
    ]);
    check_errors(&[
        (
            "['a', 'b'].transformMapEntry(i, v, {'k': v}) == {}",
            "key k already exists",
        ),
        ("[1].all(x.y, true)", "argument must be a simple name"),
        ("has(self)", "invalid argument to has() macro"),
    ]);
}

#[test]
fn optionals() {
    check_true(&[
        "optional.of(1).hasValue() && !optional.none().hasValue()",
        "optional.of(1).value() == 1",
        "optional.none().orValue(2) == 2 && optional.of(1).orValue(2) == 1",
        "optional.of(1).or(optional.of(2)) == optional.of(1)",
        "optional.none().or(optional.of(2)).value() == 2",
        "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').hasValue()",
        "{'a': 1}.?a == optional.of(1) && !{'a': 1}.?b.hasValue()",
        "{'a': {'b': 1}}.?a.b.orValue(0) == 1 && {'a': {'c': 1}}.?a.?b.orValue(0) == 0",
        "[1, 2][?1].value() == 2 && ![1, 2][?5].hasValue()",
        "{'a': 1}[?'b'].orValue(3) == 3",
        "[?optional.of(1), ?optional.none(), 3] == [1, 3]",
        "{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}",
        "optional.of(2).optMap(x, x * 2).value() == 4 && !optional.none().optMap(x, 1).hasValue()",
        "optional.of(2).optFlatMap(x, optional.of(x + 1)).value() == 3",
        "self.?gone.orValue('none') == 'none' && self.?name.hasValue()",
        "self.labels[?'x'].orValue('') == '1'",
    ]);
    check_errors(&[(
        "optional.none().value() == 1",
        "optional.none() dereference",
    )]);
}

#[test]
fn conversions() {
    check_true(&[
        "int('12') == 12 && int(3.9) == 3 && int(-3.9) == -3 && int(7u) == 7",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60",
        "uint('12') == 12u && uint(3) == 3u && uint(3.9) == 3u",
        "double('1_000.5') == 1000.5 && double('inf') > 1.0 && double('-Infinity') < 1.0 && double('1e-400') == 0.0",
        "double('1.5') == 1.5 && double(2) == 2.0 && double(2u) == 2.0",
        "string(1) == '1' && string(2u) == '2' && string(true) == 'true' && string(b'ab') == 'ab'",
        "string(1.5) == '1.5' && string(1e21) == '1e+21' && string(100000.0) == '100000' && string(1e6) == '1e+06'",
        "string(0.0001) == '0.0001' && string(0.00001) == '1e-05'",
        "string(duration('90m')) == '5400s' && string(duration('1500ms')) == '1.5s'",
        "string(timestamp('2024-01-02T03:04:05.60Z')) == '2024-01-02T03:04:05.6Z'",
        "bool('true') && !bool('0')",
        "bytes('ä').size() == 2 && 'ä'.size() == 1",
        "size([1, 2]) == 2 && size({'a': 1}) == 1 && size('abc') == 3 && [1].size() == 1",
    ]);
    check_errors(&[
        (
            "int('a') == 1",
            "type conversion error from 'string' to 'int'",
        ),
        ("int(1e30) == 1", "integer overflow"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        (
            "bool('yes')",
            "type conversion error from 'string' to 'bool'",
        ),
        ("string(b'\\xff') == ''", "invalid UTF-8"),
        (
            "double('1e400') == 1.0",
            "type conversion error from 'string' to 'double'",
        ),
        (
            "double('1__0') == 1.0 || double('_1') == 1.0",
            "type conversion error from 'string' to 'double'",
        ),
    ]);
}

#[test]
fn times() {
    check_true(&[
        "timestamp('2024-02-29T12:30:45.5Z') == timestamp('2024-02-29T14:30:45.5+02:00')",
        "timestamp('2024-02-29T00:00:00Z') + duration('24h') == timestamp('2024-03-01T00:00:00Z')",
        "duration('24h') + timestamp('2024-02-29T00:00:00Z') > timestamp('2024-02-29T00:00:00Z')",
        "timestamp('2024-03-01T00:00:00Z') - timestamp('2024-02-29T00:00:00Z') == duration('24h')",
        "timestamp('2024-03-01T00:00:00Z') - duration('1s') < timestamp('2024-03-01T00:00:00Z')",
        "duration('1h') - duration('30m') == duration('30m') && duration('1h') > duration('59m')",
        "self.time.getFullYear() == 2024 && self.time.getMonth() == 1 && self.time.getDate() == 29",
        "self.time.getDayOfMonth() == 28 && self.time.getDayOfYear() == 59 && self.time.getDayOfWeek() == 4",
        "self.time.getHours() == 12 && self.time.getMinutes() == 30 && self.time.getSeconds() == 45",
        "self.time.getMilliseconds() == 500 && self.time.getHours('+02:00') == 14 && self.time.getHours('-13:30') == 23",
        "self.time.getHours('UTC') == 12",
        "self.wait.getHours() == 1 && self.wait.getMinutes() == 90 && self.wait.getSeconds() == 5400",
        "self.day == timestamp('2024-02-29T00:00:00Z') && self.wait == duration('90m')",
    ]);
    check_errors(&[
        (
            "timestamp('9999-12-31T23:59:59Z') + duration('1s') == self.time",
            "timestamp overflow",
        ),
        (
            "duration('2562047h') + duration('2562047h') == self.wait",
            "integer overflow",
        ),
        (
            "timestamp(self.name) == self.time",
            "invalid RFC 3339 timestamp \"grün\"",
        ),
        (
            "self.time.getHours('Middle/Earth') == 1",
            "unknown time zone Middle/Earth",
        ),
        (
            "timestamp('2024-02-30T00:00:00Z') == self.time",
            "invalid timestamp argument",
        ),
        (
            "duration('1 day') == self.wait",
            "invalid duration argument",
        ),
    ]);
}

#[test]
fn documents() {
    check_true(&[
        "self.name == 'grün' && self.name.size() == 4 && self.size == 3 && self.ratio == 2.0 && self.flag",
        "type(self.any) == int && self.any == 8080 && type(self.word) == string && self.word.endsWith('%')",
        "self.data == b'abc' && size(self.data) == 3",
        "!has(self.gone) && has(self.name)",
        "self.a__dash__b__dot__c__slash__d == 1 && self.a__underscores__b == 2 && self.__namespace__ == 3",
        "self.tags == self.more && self.tags + self.more == self.tags && size(self.tags + ['c']) == 3",
        "self.numbers != [1, 2, 3] && self.numbers == [3, 1, 2] && size(self.numbers + self.numbers) == 6",
        "self.ports == dyn(self.other) && size(self.ports + dyn(self.other)) == 2",
        "self.ports.all(p, self.other.exists(q, p == dyn(q)))",
        "self.ports.exists(p, p.name == 'http' && p.port == 80)",
        "self.labels == {'x': '1', 'y': '2'} && self.labels.x == '1' && 'y' in self.labels && !('z' in self.labels)",
        "self.labels.map(k, k) == ['x', 'y'] && self.labels.all(k, v, int(v) > 0)",
        "self.pod.metadata.name == 'p' && self.pod.kind == 'Pod'",
        "self == self && dyn(self) != dyn(1)",
    ]);
    check_errors(&[
        ("self.gone == ''", "no such key: gone"),
        ("self.word > 3", "no such overload"),
        ("self.pod.spec.a == [1]", "undefined field 'spec'"),
        ("self.free.any == 1", "undefined field 'free'"),
    ]);
}
