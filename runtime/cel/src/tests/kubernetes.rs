//! The libraries of extensions, and those of Kubernetes.

use super::{check_errors, check_true};
use crate::library;

#[test]
fn every_signature_is_read() {
    for (name, read, written) in library::table() {
        assert_eq!(read, written, "{name}");
    }
}

#[test]
fn strings() {
    check_true(&[
        "'abc'.contains('b') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc')",
        "'tacocat'.charAt(3) == 'o' && 'abc'.charAt(3) == ''",
        "'hello mellow'.indexOf('ello') == 1 && 'hello mellow'.indexOf('jello') == -1",
        "'hello mellow'.indexOf('ello', 2) == 7 && 'hello mellow'.indexOf('') == 0",
        "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
        "'hello mellow'.lastIndexOf('') == 12 && 'äöä'.lastIndexOf('ä') == 2",
        "'abc'.indexOf('a', 9) == -1 && 'abc'.indexOf('', 9) == 9 && 'abc'.lastIndexOf('a', 3) == -1",
        "'abc'.lastIndexOf('', 9) == 9 && 'abc'.lastIndexOf('', -1) == -1 && ''.indexOf('a', 0) == -1 && ''.lastIndexOf('a') == -1 && 'abc'.indexOf('', 3) == 3",
        "'TacoCat'.lowerAscii() == 'tacocat' && 'TacoCÆt'.upperAscii() == 'TACOCÆT'",
        "'hello hello'.replace('he', 'we') == 'wello wello' && 'hello hello'.replace('he', 'we', 1) == 'wello hello'",
        "'hello hello'.replace('he', 'we', 0) == 'hello hello' && 'ab'.replace('', '-') == '-a-b-'",
        "'hello hello hello'.split(' ') == ['hello', 'hello', 'hello'] && 'a b c'.split(' ', 2) == ['a', 'b c']",
        "'a b'.split(' ', 0) == [] && 'a b'.split(' ', 1) == ['a b'] && 'abc'.split('') == ['a', 'b', 'c']",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && 'abc'.substring(3) == ''",
        "'  \\ttrim\\n '.trim() == 'trim' && self.name.substring(2) == 'ün'",
        "['hello', 'mellow'].join() == 'hellomellow' && ['a', 'b'].join('-') == 'a-b' && [].join('/') == ''",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
        "'%s is %d'.format(['x', 3]) == 'x is 3' && '%%'.format([]) == '%'",
        "'%.2f %e'.format([2.5, 1234.5]) == '2.50 1.234500×10⁰³' && '%f'.format([-1234567.5]) == '-1,234,567.500000' && '%e'.format(['Infinity']) == '     ∞'",
        "'%x %X %o %b'.format([255, 255, 8, 5]) == 'ff FF 10 101' && '%x'.format(['ab']) == '6162'",
        "'%s'.format([[dyn(1), dyn('a'), dyn({'k': 1.5})]]) == '[1, \"a\", {\"k\":1.500000}]' && '%s'.format([null]) == 'null'",
        "'%s %s'.format([duration('1m'), timestamp('2024-01-01T00:00:00Z')]) == '60s 2024-01-01T00:00:00Z'",
        "'abc123'.matches('^[a-z]+[0-9]+$') && matches('abc', 'b') && !'abc'.matches('^b')",
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'1 22 333'.findAll('[0-9]+') == ['1', '22', '333'] && '1 22 333'.findAll('[0-9]+', 2) == ['1', '22']",
        r"!'٣'.matches(r'\d') && '3'.matches(r'^\d$') && !'ä'.matches(r'\w')",
    ]);
    check_errors(&[
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        (
            "'abc'.substring(2, 1) == ''",
            "invalid substring range. start: 2, end: 1",
        ),
        ("'abc'.substring(-1) == ''", "index out of range: -1"),
        ("'abc'.substring(4) == ''", "index out of range: 4"),
        ("'abc'.indexOf('a', -1) == 0", "index out of range: -1"),
        (
            "'%d'.format(['a']) == ''",
            "decimal clause can only be used on integers",
        ),
        ("'%s'.format([]) == ''", "index 0 out of range"),
        ("'%q'.format([1]) == ''", "unrecognized formatting clause"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("'a'.matches(self.word + '(')", "error parsing regexp"),
    ]);
}

#[test]
fn lists_and_sets() {
    check_true(&[
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()",
        "[1, 3].sum() == 4 && [1.5, 2.0].sum() == 3.5 && [duration('1m'), duration('1s')].sum() == duration('61s')",
        "[1, 3].min() == 1 && ['a', 'b'].max() == 'b'",
        "[1, 2, 2, 3].indexOf(2) == 1 && [1, 2, 2, 3].lastIndexOf(2) == 2 && [1].indexOf(4) == -1",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue() && ![].last().hasValue()",
        "[optional.of(1), optional.none()].unwrapOpt() == [1] && optional.unwrap([optional.of('a')]) == ['a']",
        "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [1].slice(1, 1) == []",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [dyn(1), dyn([dyn(2), dyn([dyn(3), dyn([4])])])].flatten(2) == [dyn(1), dyn(2), dyn(3), dyn([4])]",
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [1, 2].reverse() == [2, 1]",
        "[1, 2, 2, 1].distinct() == [1, 2] && lists.range(3) == [0, 1, 2] && lists.range(-1) == []",
        "self.ports.sortBy(p, -p.port).map(p, p.name) == ['https', 'http']",
        "sets.contains([1, 2], [2]) && !sets.contains([1], [1, 2]) && sets.contains([], [])",
        "sets.equivalent([1, 1], [1]) && !sets.equivalent([1], [2])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
    ]);
    check_errors(&[
        ("[].max() == 1", "max called on empty list"),
        (
            "[1].slice(0, 2) == []",
            "cannot slice(0, 2), list is length 1",
        ),
        ("[1].slice(-1, 0) == []", "negative indexes not supported"),
        (
            "[[1]].sort() == []",
            "found no matching overload for 'sort' applied to 'list(list(int)).()'",
        ),
    ]);
}

#[test]
fn addresses_and_urls() {
    check_true(&[
        "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP('010.0.0.1') && !isIP('::ffff:1.2.3.4')",
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6 && string(ip('::1')) == '::1'",
        "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('224.0.0.1').isLinkLocalMulticast()",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast() && ip('::1') == ip('0:0::1')",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && !ip.isCanonical('2001:DB8::1')",
        "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && !isCIDR('10.0.0.0')",
        "cidr('192.168.0.0/24').containsIP('192.168.0.9') && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.0'))",
        "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('192.168.0.0/24').containsCIDR('192.168.0.0/16')",
        "cidr('192.168.1.9/24').ip() == ip('192.168.1.9') && cidr('192.168.1.9/24').masked() == cidr('192.168.1.0/24')",
        "cidr('::1/128').prefixLength() == 128 && string(cidr('192.168.0.0/24')) == '192.168.0.0/24'",
        "!cidr('0.0.0.0/0').containsIP('::1') && cidr('0.0.0.0/0').containsIP('9.9.9.9')",
        "url('https://u:p@example.com:8080/a/b?x=1&x=2&y=%20#').getHost() == 'example.com:8080'",
        "url('https://example.com:80/').getHostname() == 'example.com' && url('https://example.com:80/').getPort() == '80'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]/').getPort() == ''",
        "url('https://example.com/a%20b/ü').getEscapedPath() == '/a%20b/%C3%BC' && url('/path').getScheme() == ''",
        "url('HTTPS://example.com/?k=a&k=b').getQuery() == {'k': ['a', 'b']} && url('HTTPS://example.com').getScheme() == 'https'",
        "isURL('https://example.com') && isURL('/absolute') && !isURL('relative') && !isURL('https://a b/') && !isURL(':x')",
        "!isURL('http://[::1') && !isURL('http://a:port/') && isURL('mailto:a@b.c')",
    ]);
    check_errors(&[
        ("ip('x') == ip('y')", "IP Address \"x\" parse error"),
        ("cidr('x') == cidr('y')", "network address parse error"),
        ("url('relative') == url('/')", "URL parse error"),
    ]);
}

#[test]
fn quantities_versions_and_formats() {
    check_true(&[
        "isQuantity('1.3Gi') && !isQuantity('1.3GI') && quantity('1k') == quantity('1000')",
        "quantity('50M').isGreaterThan(quantity('50k')) && quantity('1').isLessThan(quantity('2'))",
        "quantity('1').compareTo(quantity('2')) == -1 && quantity('2').compareTo(quantity('2')) == 0",
        "quantity('50k').add('20k' == '' ? quantity('0') : quantity('20k')) == quantity('70k')",
        "quantity('50k').add(20) == quantity('50020') && quantity('50k').sub(50000) == quantity('0')",
        "quantity('2').isInteger() && !quantity('1m').isInteger() && quantity('2k').asInteger() == 2000",
        "quantity('500m').asApproximateFloat() == 0.5 && sign(quantity('-5')) == -1",
        "isSemver('1.2.3') && !isSemver('1.2') && !isSemver('v1.2.3') && isSemver('v1.2', true) && !isSemver('01.2.3')",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "semver('1.0.0-alpha.9').isLessThan(semver('1.0.0-alpha.10')) && semver('1.0.0-1').isLessThan(semver('1.0.0-a'))",
        "semver('v1', true) == semver('1.0.0+build') && semver('2.0.0').compareTo(semver('1.9.9')) == 1",
        "!format.named('dns1123Label').value().validate('good-name').hasValue()",
        "format.dns1123Label().validate('Bad').value().size() == 1 && !format.named('nothing').hasValue()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "!format.dns1123LabelPrefix().validate('a-').hasValue() && format.dns1123Label().validate('a-').hasValue()",
        "format.date().validate('2024-13-01').hasValue() && !format.datetime().validate('2024-01-01T00:00:00Z').hasValue()",
        "!format.byte().validate('YQ==').hasValue() && format.uri().validate('a b').hasValue()",
        "format.dns1035Label() == format.named('dns1035Label').value()",
        "!format.qualifiedName().validate('example.com/name').hasValue() && !format.labelValue().validate('').hasValue()",
        "!format.dns1123Subdomain().validate('a.b').hasValue() && !format.dns1123SubdomainPrefix().validate('a.b-').hasValue()",
        "!format.dns1035LabelPrefix().validate('a-').hasValue()",
    ]);
    check_errors(&[
        ("quantity('x') == quantity('1')", "quantities must match"),
        (
            "quantity('1m').asInteger() == 1",
            "cannot convert value to integer",
        ),
        (
            "semver('x') == semver('1.0.0')",
            "No Major.Minor.Patch elements found",
        ),
    ]);
}
