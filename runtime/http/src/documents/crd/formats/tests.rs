//! The formats in CRDs are equivalent to those of the server.

use apiloom_meta::kind::Hooks;
use apiloom_meta::schema::Schema;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

#[track_caller]
fn check(schema: Value, expected: &Value) {
    let mut schema = schema;
    replace_unknown(&mut schema);
    assert_eq!(schema, *expected);
}

#[test]
fn integers_have_bounds() {
    for (format, expected) in [
        (
            "int8",
            json!({"type": "integer", "format": "int32", "minimum": -128, "maximum": 127}),
        ),
        (
            "int16",
            json!({"type": "integer", "format": "int32", "minimum": -32768, "maximum": 32767}),
        ),
        (
            "uint8",
            json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255}),
        ),
        (
            "uint16",
            json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}),
        ),
        (
            "uint32",
            json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 4_294_967_295_u32}),
        ),
        (
            "uint64",
            json!({"type": "integer", "format": "int64", "minimum": 0}),
        ),
        (
            "uint",
            json!({"type": "integer", "format": "int64", "minimum": 0}),
        ),
        ("int", json!({"type": "integer", "format": "int64"})),
        ("int32", json!({"type": "integer", "format": "int32"})),
        ("unix-time", json!({"type": "integer"})),
    ] {
        check(json!({"type": "integer", "format": format}), &expected);
    }
}

#[test]
fn bounds_that_are_tighter_stay() {
    check(
        json!({"type": "integer", "format": "uint16", "minimum": 0, "exclusiveMinimum": true, "maximum": 80}),
        &json!({"type": "integer", "format": "int32", "minimum": 0, "exclusiveMinimum": true, "maximum": 80}),
    );
    check(
        json!({"type": "integer", "format": "uint8", "minimum": -5, "exclusiveMinimum": true, "maximum": 1000}),
        &json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255}),
    );
    check(
        json!({"type": "string", "format": "dns-label", "maxLength": 10}),
        &json!({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 10}),
    );
}

#[test]
fn rules_beside_the_format_stay() {
    check(
        json!({"type": "string", "format": "dns-label", "pattern": "^a", "maxLength": 99}),
        &json!({"type": "string", "pattern": "^a", "maxLength": 63, "allOf": [
            {"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        ]}),
    );
    let ip = json!([{"format": "ipv4"}, {"format": "ipv6"}]);
    check(
        json!({"type": "string", "format": "ip", "anyOf": [{"maxLength": 3}]}),
        &json!({"type": "string", "anyOf": [{"maxLength": 3}], "allOf": [{"anyOf": ip}]}),
    );
    check(
        json!({"items": {"additionalProperties": {"properties": {"format": {"type": "string", "format": "ip"}}}}}),
        &json!({"items": {"additionalProperties": {"properties": {"format": {"type": "string", "anyOf": ip}}}}}),
    );
    check(
        json!({"type": "integer", "oneOf": [{"format": "uint8"}, {"not": {"format": "int16"}}]}),
        &json!({"type": "integer", "oneOf": [
            {"minimum": 0, "maximum": 255}, {"not": {"minimum": -32768, "maximum": 32767}},
        ]}),
    );
    check(
        json!({"type": "string", "format": "made-up"}),
        &json!({"type": "string"}),
    );
    check(
        json!({"type": "number", "format": "double"}),
        &json!({"type": "number", "format": "double"}),
    );
}

/// Formats that kube-apiserver does not know, or validates less strictly than this server.
const FORMATS: [&str; 11] = [
    "dns-label",
    "dns-subdomain",
    "label-key",
    "qualified-name",
    "label-value",
    "path-segment",
    "uuid",
    "ip",
    "uri",
    "email",
    "duration",
];

/// A format of the server, and its replacement in the CRD.
struct Pair {
    format: &'static str,
    by_format: Schema,
    /// All must match: a node has room for one pattern, so each part of `allOf` is a separate schema.
    by_rules: Vec<Schema>,
}

impl Pair {
    fn of(format: &'static str) -> Self {
        let schema = |rules: &Value| {
            let json = json!({"type": "object", "properties": {"p": rules}});
            Schema::from_json(&json, &Hooks::default()).expect("structural")
        };
        let by_format = json!({"type": "string", "format": format});
        let mut by_rules = by_format.clone();
        replace_unknown(&mut by_rules);
        let rules = by_rules.as_object_mut().expect("an object");
        // Formats that stay in the CRD are not tested here.
        rules.remove("format");
        let parts = rules.remove("allOf").unwrap_or_else(|| json!([]));
        let parts = parts.as_array().expect("a list").iter();
        Self {
            format,
            by_format: schema(&by_format),
            by_rules: std::iter::once(&by_rules)
                .chain(parts)
                .map(schema)
                .collect(),
        }
    }

    /// Whether the server accepts a text, and whether the CRD does.
    fn verdicts(&self, text: &str) -> (bool, bool) {
        let document = json!({ "p": text });
        let takes = |schema: &Schema| schema.validate(&document).is_empty();
        (takes(&self.by_format), self.by_rules.iter().all(takes))
    }
}

#[test]
fn the_rules_take_what_the_format_takes() {
    let (label, subdomain) = ("a".repeat(63), format!("{}a", "a.".repeat(126)));
    let texts = [
        String::new(),
        label.clone(),
        format!("{label}a"),
        subdomain.clone(),
        format!("{subdomain}a"),
        format!("{subdomain}/{label}"),
        format!("{subdomain}a/b"),
        format!("{subdomain}/{label}a"),
        "123e4567-e89b-12d3-a456-426614174000".to_owned(),
        "123E4567-e89b-12d3-a456-426614174000".to_owned(),
    ];
    let short = [
        "a",
        "A",
        "a.b",
        "a..b",
        "-a",
        "a-",
        "a/b",
        "a/b/c",
        "/b",
        "a/",
        "A/b",
        "a.b/C_d.e-f",
        ".",
        "..",
        "...",
        ".a",
        "..a",
        "a%",
        "10.0.0.1",
        "10.0.0.01",
        "256.0.0.1",
        "::",
        "::1",
        "1::2::3",
        "fe80::1%eth0",
        "::1.2.3.4",
        "http://a.b/c?d",
        "urn:x",
        "/path",
        "http:",
        "http://a b",
        "http://a\u{a0}b",
        "http://a\u{85}b",
        "é:x",
        "a@b",
        "a@b.c",
        "a@b..c",
        "a b@c",
        "a@b@c",
        "@b",
        "Name <a@b.c>",
        "a\u{3000}@b",
        "1h30m",
        "-1.5s",
        "+0",
        "0",
        "1",
        "5 days",
        ".5h",
        "1.h",
        "1.2.3s",
        "10µs",
        "10μs",
        "1d",
        "1h 2m",
        "a\n",
        "\n",
        "a\nb",
    ];
    for pair in FORMATS.map(Pair::of) {
        let texts = texts.iter().map(String::as_str).chain(short);
        let mut taken = 0;
        for text in texts {
            let (by_format, by_rules) = pair.verdicts(text);
            assert_eq!(by_format, by_rules, "{} {text:?}", pair.format);
            taken += usize::from(by_format);
        }
        assert!(taken > 0, "{} takes none", pair.format);
    }
}

#[test]
fn the_rules_take_what_the_format_takes_of_any_text() {
    let pairs = FORMATS.map(Pair::of);
    let texts = prop_oneof![
        "[a-cA-C0-2:./%@_ -]{0,10}",
        "([0-9a-f]{0,4}:){0,8}(1.2.3.4|[0-9a-f]{0,4})",
        "[-+]?([0-9.]{0,3}(ns|us|ms|s|m|h|d)?){0,3}",
        ".{0,6}",
    ];
    let judged = TestRunner::default().run(&texts, |text| {
        for pair in &pairs {
            let (by_format, by_rules) = pair.verdicts(&text);
            prop_assert_eq!(by_format, by_rules, "{} {:?}", pair.format, text);
        }
        Ok(())
    });
    judged.expect("they agree");
}
