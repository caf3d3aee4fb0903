//! YAML encoding, byte for byte, and decoded again.

use serde_json::{Value, json};

use super::super::{Decoder, Encoder, Format};
use super::*;

fn yaml(text: &str) -> Value {
    Decoder::new(Format::Yaml)
        .value(text.as_bytes())
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn yaml_is_printed_with_quotes_where_a_reader_would_stumble() {
    for (text, expected) in [
        ("plain", "plain"),
        ("two words", "two words"),
        ("apps/v1", "apps/v1"),
        ("metadata.k8s.io", "metadata.k8s.io"),
        ("3rd", "3rd"),
        ("yes", "\"yes\""),
        ("Off", "\"Off\""),
        ("null", "\"null\""),
        ("~", "\"~\""),
        ("", "\"\""),
        ("1e3", "\"1e3\""),
        ("0644", "\"0644\""),
        ("1_000", "\"1_000\""),
        ("0x1F", "\"0x1F\""),
        ("12:30:45", "\"12:30:45\""),
        ("2026-11-21T09:28:46Z", "\"2026-11-21T09:28:46Z\""),
        (".inf", "\".inf\""),
        ("=", "\"=\""),
        ("<<", "\"<<\""),
        ("a: b", "\"a: b\""),
        ("a #b", "\"a #b\""),
        ("- a", "\"- a\""),
        ("[a", "\"[a\""),
        (" a", "\" a\""),
        ("tab\t", "\"tab\\t\""),
        ("\u{1}", "\"\\x01\""),
        ("a\nb", "|-\n    a\n    b"),
        ("a\nb\n", "|\n    a\n    b"),
    ] {
        let document = json!({"a":{"b":text}});
        let encoded = Encoder::yaml(&document);
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            format!("a:\n  b: {expected}\n"),
            "{text:?}"
        );
        assert_eq!(
            Decoder::new(Format::Yaml).value(&encoded).expect("YAML"),
            document
        );
    }
}

#[test]
fn yaml_has_its_keys_sorted_and_lists_at_their_key() {
    let document = json!({"b":[1,{"z":{},"x":[]},[2,[3]]],"a":{"c":true,"d":1.5}});
    let expected = "a:\n  c: true\n  d: 1.5\nb:\n- 1\n- x: []\n  z: {}\n- - 2\n  - - 3\n";
    assert_eq!(Encoder::yaml(&document), expected);
    assert_eq!(yaml(expected), document);
    assert_eq!(Encoder::yaml(&json!({})), "{}\n");
}

/// JSON converted to the YAML of responses.
fn as_yaml(json: &str) -> String {
    let mut out = Vec::new();
    let mut writer = YamlWriter::document(&mut out);
    writer.json(json.as_bytes());
    assert_eq!(writer.finish(), Ok(None), "{json}");
    String::from_utf8(out).expect("text")
}

#[test]
fn every_value_has_its_yaml() {
    for (json, expected) in [
        ("null", "null\n"),
        ("true", "true\n"),
        ("-7", "-7\n"),
        ("18446744073709551615", "18446744073709551615\n"),
        ("1.50", "1.5\n"),
        ("2.0", "2\n"),
        ("1e21", "1e+21\n"),
        ("1e-7", "1e-7\n"),
        ("-0", "-0.0\n"),
        ("-0.0", "-0.0\n"),
        ("\"a\"", "a\n"),
        ("\"a\\nb\"", "|-\na\nb\n"),
        ("[]", "[]\n"),
        ("{}", "{}\n"),
        ("[[]]", "- []\n"),
        ("[{}]", "- {}\n"),
        ("[[[1],2],[]]", "- - - 1\n  - 2\n- []\n"),
        ("[[{\"b\":1,\"a\":2}]]", "- - a: 2\n    b: 1\n"),
        ("{\"b\":{},\"a\":[]}", "a: []\nb: {}\n"),
        (
            "{\"b\":[{\"d\":[1],\"c\":{\"z\":null,\"y\":false}}],\"a\":\"\"}",
            "a: \"\"\nb:\n- c:\n    \"y\": false\n    z: null\n  d:\n  - 1\n",
        ),
        (
            "{\"\":1,\"yes\":2,\"a b\":3,\"a\\nb\":4,\"\u{e9}\":5,\"1\":6}",
            "\"\": 1\n\"1\": 6\n\"a\\nb\": 4\na b: 3\n\"yes\": 2\n\u{e9}: 5\n",
        ),
        (
            "{\"a\":[\"x\\ny\\n\\n\",\"\\nx\",\"x \\ny\"],\"b\":\"\u{1F600} \\u2028\\ufeff\\u007f\"}",
            "a:\n- |+\n  x\n  y\n\n- \"\\nx\"\n- \"x \\ny\"\nb: \"\u{1F600} \\u2028\\ufeff\\x7f\"\n",
        ),
        // The last of fields with the same name is used.
        ("{\"a\":1,\"b\":2,\"a\":{\"c\":3}}", "a:\n  c: 3\nb: 2\n"),
    ] {
        assert_eq!(as_yaml(json), expected, "{json}");
        let value: Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(Encoder::yaml(&value), expected, "{json}");
    }
}

#[test]
fn a_document_of_yaml_may_be_written_in_parts() {
    let mut out = b"before\n".to_vec();
    let mut writer = YamlWriter::document(&mut out);
    writer.begin_map();
    writer.key("z");
    writer.json(b"1");
    writer.key("items");
    writer.gap();
    writer.key("meta");
    writer.json_without(br#"{"b":1,"a":{"b":2},"c":[]}"#, &["b", "c"]);
    writer.end_map();
    let gap = writer.finish().expect("JSON").expect("a gap");
    assert_eq!(out, b"before\nitems:meta:\n  a:\n    b: 2\nz: 1\n");
    assert_eq!(&out[gap..][..4], b"meta");
    let mut out = Vec::new();
    for json in [r#"{"b":1,"a":2}"#, "[[1],2]", "{}", "\"x\\ny\""] {
        let mut writer = YamlWriter::item(&mut out);
        writer.json(json.as_bytes());
        assert_eq!(writer.finish(), Ok(None));
    }
    let expected = "- a: 2\n  b: 1\n- - - 1\n  - 2\n- {}\n- |-\n  x\n  y\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn what_is_too_deep_or_no_json_is_not_written_as_yaml() {
    let nest = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let check = |json: &str, expected: Result<Option<usize>, YamlError>| {
        let mut out = b"before".to_vec();
        let mut writer = YamlWriter::document(&mut out);
        writer.begin_list();
        writer.json(json.as_bytes());
        writer.json(b"{\"a\":[2]}");
        writer.end_list();
        assert_eq!(writer.finish(), expected, "{json:.20}");
        assert_eq!(out == b"before", expected.is_err(), "{json:.20}");
    };
    check(&nest(126), Ok(None));
    for refused in [
        &nest(127),
        &nest(128),
        &nest(200),
        "{\"a\":{",
        "1 2",
        "",
        "{\"a\":1e999}",
    ] {
        check(refused, Err(YamlError));
    }
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    assert_eq!(
        Encoder::yaml(&deep),
        [&Encoder::json(&deep)[..], b"\n"].concat()
    );
}

#[test]
fn yaml_of_any_json_is_read_back_as_it_was() {
    // A deterministic sequence of numbers.
    let mut state = 1_u64;
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    const TEXTS: [&str; 12] = [
        "a",
        "b: c",
        "no",
        "",
        "x\ny",
        "x\n\n y\n\n",
        " z",
        "1e3",
        "\u{1F600}",
        "- a",
        "a #b",
        "q\t",
    ];
    fn any(next: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
        let kinds = if depth > 4 { 4 } else { 8 };
        match next(kinds) {
            0 => next(1000).to_string(),
            1 => "null".to_owned(),
            2 => format!("-{}.5", next(100)),
            3 => json!(TEXTS[next(TEXTS.len())]).to_string(),
            4 | 5 => {
                let items: Vec<String> = (0..next(4)).map(|_| any(next, depth + 1)).collect();
                format!("[{}]", items.join(","))
            }
            _ => {
                let field = |next: &mut _, at: usize| {
                    let (one, other) = (TEXTS[(at * 5) % TEXTS.len()], TEXTS[at]);
                    format!(
                        "{}:{}",
                        json!(format!("{one}{other}")),
                        any(next, depth + 1)
                    )
                };
                let mut fields: Vec<String> = (0..next(5)).map(|at| field(next, at)).collect();
                fields.reverse();
                format!("{{{}}}", fields.join(","))
            }
        }
    }
    for _ in 0..2000 {
        let json = any(&mut next, 0);
        let value: Value = serde_json::from_str(&json).expect("JSON");
        let text = as_yaml(&json);
        assert_eq!(
            text,
            String::from_utf8_lossy(&Encoder::yaml(&value)),
            "{json}"
        );
        assert_eq!(yaml(&text), value, "{json}\n{text}");
    }
}
