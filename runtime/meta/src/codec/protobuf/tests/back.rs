//! What JSON becomes in Protobuf.

use super::*;
use crate::codec::limits::MAX_DEPTH;

/// The message of a JSON document, and whether the conversion back gives an equal one.
fn written(json: &str, message: &ProtobufMessage) -> (Vec<u8>, bool) {
    let mut out = b"before".to_vec();
    let is_exact = append_protobuf(json.as_bytes(), message, &mut out).expect("it is JSON");
    (out.split_off(6), is_exact)
}

/// Checks the message of a document, and that it is converted back to the same document.
#[track_caller]
fn check_exact(json: &Value, message: &ProtobufMessage, expected: &[Vec<u8>]) {
    assert_eq!(
        written(&json.to_string(), message),
        (expected.concat(), true)
    );
    check(&expected.concat(), message, json.clone());
}

/// Checks a document that does not come back: what it becomes.
#[track_caller]
fn check_changed(json: &str, message: &ProtobufMessage, back: Value) {
    let (raw, is_exact) = written(json, message);
    assert!(!is_exact, "{json}");
    check(&raw, message, back);
}

#[test]
fn fields_are_in_the_order_of_their_numbers() {
    let time = message(8, [integer(1, 1_700_000_000), integer(2, 0)]);
    // The JSON of Value is sorted by name.
    check_exact(
        &json!({
            "metadata": {
                "annotations": {"b": "", "a": "\u{1f600}\n<\"\\"},
                "creationTimestamp": "2023-11-14T22:13:20Z",
                "finalizers": ["x/y", "x/z"],
                "generation": 300,
                "name": "n",
                "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": false}],
            },
            "status": {"phase": "Active"},
        }),
        &NAMESPACE,
        &[
            message(
                1,
                [
                    text(1, "n"),
                    integer(7, 300),
                    time,
                    message(12, [text(1, "a"), text(2, "\u{1f600}\n<\"\\")]),
                    message(12, [text(1, "b"), text(2, "")]),
                    message(
                        13,
                        [
                            text(1, "K"),
                            text(3, "o"),
                            text(4, "u"),
                            text(5, "v1"),
                            integer(6, 0),
                        ],
                    ),
                    text(14, "x/y"),
                    text(14, "x/z"),
                ],
            ),
            message(3, [text(1, "Active")]),
        ],
    );
}

#[test]
fn every_type_is_written() {
    check_exact(
        &json!({
            "int32": -5, "uint32": 4_294_967_295_u32, "uint64": u64::MAX, "float": 0.25, "double": -1.5e300,
            "micro": "1969-12-31T23:59:59.999998Z", "duration": "1m30s", "quantities": {"cpu": "100m"},
            "ports": [80, -1, "http"], "any": {"a": [1, "}"]}, "lists": [[1, 2, 3], []],
            "maps": {"a": {"b": [0.5]}, "c": {}}, "times": ["1970-01-01T00:00:01Z"],
            "node": {
                "child": {"size": 0}, "data": "AP8=", "numbers": [0, -1], "flags": [true, false], "size": 1,
                "dataList": ["", "/w=="],
            },
        }),
        &WIDE,
        &[
            integer(1, -5),
            integer(2, 4_294_967_295),
            integer(3, -1),
            [key(4, FIXED32), 0.25f32.to_le_bytes().to_vec()].concat(),
            double(5, -1.5e300),
            message(6, [integer(1, -1), integer(2, 999_998_000)]),
            message(7, [integer(1, 90_000_000_000)]),
            message(8, [text(1, "cpu"), message(2, [text(1, "100m")])]),
            message(9, [integer(1, 0), integer(2, 80), text(3, "")]),
            message(9, [integer(1, 0), integer(2, -1), text(3, "")]),
            message(9, [integer(1, 1), integer(2, 0), text(3, "http")]),
            message(10, [text(1, "{\"a\":[1,\"}\"]}")]),
            message(11, [integer(1, 1), integer(1, 2), integer(1, 3)]),
            message(11, []),
            message(
                12,
                [
                    text(1, "a"),
                    message(
                        2,
                        [message(1, [text(1, "b"), message(2, [double(1, 0.5)])])],
                    ),
                ],
            ),
            message(12, [text(1, "c"), message(2, [])]),
            message(13, [integer(1, 1), integer(2, 0)]),
            message(
                14,
                [
                    message(1, [integer(7, 0)]),
                    bytes(2, b"\x00\xff"),
                    integer(3, 0),
                    integer(3, -1),
                    integer(4, 1),
                    integer(4, 0),
                    integer(7, 1),
                    bytes(8, b""),
                    bytes(8, b"\xff"),
                ],
            ),
        ],
    );
}

#[test]
fn long_values_have_their_lengths_written_back() {
    for len in [
        0, 1, 127, 128, 129, 16_383, 16_384, 16_385, 2_097_151, 2_097_152, 3_000_000,
    ] {
        // With an escape, whose length is not known before.
        let name = format!("\n{}", "x".repeat(len));
        let json = json!({"metadata": {"name": name, "labels": {"k": "v"}}});
        let metadata = [text(1, &name), message(11, [text(1, "k"), text(2, "v")])];
        let expected = bytes(1, &metadata.concat());
        assert!(
            written(&json.to_string(), &NAMESPACE) == (expected, true),
            "{len}"
        );
    }
}

#[test]
fn equal_documents_are_equal_bytes() {
    let (sorted, _) = written(
        r#"{"metadata":{"name":"n","labels":{"a":"1","b":"2"}},"status":{"phase":"p"}}"#,
        &NAMESPACE,
    );
    for other in [
        r#"{"status":{"phase":"p"},"metadata":{"labels":{"b":"2","a":"1"},"name":"n"}}"#,
        " { \"kind\" : \"K\" , \"metadata\" : { \"name\" : \"n\" , \"labels\" :\n{ \"a\" : \"1\" ,\t\"b\" : \"2\" } } , \
          \"status\" : { \"phase\" : \"p\" } } ",
        // The last of duplicates replaces those before.
        r#"{"metadata":{"name":"x","labels":{"b":"3","a":"1","b":"2"},"name":"n"},"status":{"phase":"p"}}"#,
        r#"{"apiVersion":"v1","\u006detadata":{"name":"\u006E","labels":{"\u0061":"1","b":"2"}},"status":{"phase":"p"}}"#,
    ] {
        assert_eq!(
            written(other, &NAMESPACE),
            (sorted.clone(), true),
            "{other}"
        );
    }
}

#[test]
fn what_does_not_come_back_is_told() {
    // Unknown fields, and values of another type.
    check_changed(
        r#"{"metadata":{"name":"n","new":{"a":[1,"]"]}},"kindly":1}"#,
        &NAMESPACE,
        json!({"metadata": {"name": "n"}}),
    );
    check_changed(
        r#"{"metadata":{"name":5,"labels":["a"],"generation":"7"}}"#,
        &NAMESPACE,
        json!({}),
    );
    check_changed(
        r#"{"metadata":{"labels":{"a":null,"b":"c"},"name":null}}"#,
        &NAMESPACE,
        json!({"metadata": {"labels": {"b": "c"}}}),
    );
    check_changed(
        r#"{"int32":3000000000,"uint32":-1,"lists":[[1],"x"],"any":null}"#,
        &WIDE,
        json!({"lists": [[1]]}),
    );
    // Empty values.
    for empty in [
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"name":""}}"#,
        r#"{"metadata":{"generation":0}}"#,
        r#"{"metadata":{"labels":{}}}"#,
        r#"{"spec":{"finalizers":[]}}"#,
        r#"{"spec":{"finalizers":null}}"#,
    ] {
        check_changed(empty, &NAMESPACE, json!({}));
    }
    // Fields that JSON always has.
    check_changed("{}", &NODE, json!({"size": 0}));
    // Other spellings of the same value.
    let same = |json: &str, back: Value| check_changed(json, &WIDE, back);
    same(
        r#"{"times":["1970-01-01T01:00:01+01:00"]}"#,
        json!({"times": ["1970-01-01T00:00:01Z"]}),
    );
    same(
        r#"{"micro":"1970-01-01T00:00:01Z"}"#,
        json!({"micro": "1970-01-01T00:00:01.000000Z"}),
    );
    same(r#"{"duration":"90s"}"#, json!({"duration": "1m30s"}));
    same(r#"{"int32":1e3}"#, json!({"int32": 1000}));
    same(r#"{"double":0.50}"#, json!({"double": 0.5}));
    same(
        r#"{"quantities":{"a":""}}"#,
        json!({"quantities": {"a": "0"}}),
    );
    same(
        r#"{"node":{"data":"/x==","size":1}}"#,
        json!({"node": {"data": "/w==", "size": 1}}),
    );
    same(
        r#"{"node":{"data":"*","size":1}}"#,
        json!({"node": {"size": 1}}),
    );
}

#[test]
fn documents_that_are_too_deep_are_cut() {
    let depth = 1000;
    let json = "{\"size\":1,\"child\":".repeat(depth) + "{}" + &"}".repeat(depth);
    let (raw, is_exact) = written(&json, &NODE);
    assert!(!is_exact && raw.len() < 1000);
}

/// What is stored must be readable, however deep a document is that was accepted.
#[test]
fn documents_as_deep_as_json_may_be_are_read_back() {
    for depth in [1, 62, 63, 64, 100, MAX_DEPTH - 1] {
        let json = "{\"size\":1,\"child\":".repeat(depth) + "{\"size\":2}" + &"}".repeat(depth);
        let document =
            crate::codec::Decoder::new(crate::codec::Format::Json).value(json.as_bytes());
        let document = document.unwrap();
        let (raw, is_exact) = written(&json, &NODE);
        assert!(is_exact, "{depth}");
        check(&raw, &NODE, document);
    }
}

#[test]
fn malformed_json_is_an_error_and_never_a_panic() {
    let json = r#"{"metadata":{"name":"a\u00e4\"","labels":{"a":"b"},"generation":7,"finalizers":["x"]},"x":[{}]}"#;
    for end in 0..json.len() {
        let mut out = Vec::new();
        let got = append_protobuf(&json.as_bytes()[..end], &NAMESPACE, &mut out);
        assert_eq!(got, Err(MalformedJson), "{end}");
    }
    for malformed in [
        "",
        "[]",
        "1",
        "{\"",
        "{\"\\",
        "{\"metadata\"}",
        "{\"metadata\":}",
        "{}x",
        "{\"metadata\":{},}x",
        "{1:2}",
        "{\"metadata\":{\"name\":\"\\ud800\\",
    ] {
        let mut out = Vec::new();
        let got = append_protobuf(malformed.as_bytes(), &NAMESPACE, &mut out);
        assert_eq!(got, Err(MalformedJson), "{malformed}");
    }
}

#[test]
fn halves_of_surrogate_pairs_are_replaced() {
    for (escaped, expected) in [
        (r"\ud83d\ude00", "\u{1f600}"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ud83dx", "\u{fffd}x"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\/\b\f\n\r\t\\\u2028", "/\u{8}\u{c}\n\r\t\\\u{2028}"),
    ] {
        let (raw, _) = written(&format!("{{\"phase\":\"{escaped}\"}}"), &super::STATUS);
        assert_eq!(raw, text(1, expected), "{escaped}");
    }
}

#[test]
fn a_body_has_the_type_of_the_document() {
    let json = br#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"foo"}}"#;
    let mut body = Vec::new();
    assert_eq!(append_protobuf_body(json, &NAMESPACE, &mut body), Ok(true));
    assert_eq!(
        body,
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x07\x0a\x05\x0a\x03foo\x1a\0\x22\0"
    );
    let parsed = ProtobufBody::parse(&body).expect("parses");
    let back = parsed.to_json(&NAMESPACE, InvalidText::Refuse, 1024);
    assert_eq!(back.expect("fits"), json);
}

#[test]
fn a_list_in_pieces_is_the_list_as_a_whole() {
    let items: Vec<Vec<u8>> = (0..200)
        .map(|number| {
            let json = format!("{{\"metadata\":{{\"name\":\"n{}\"}}}}", "x".repeat(number));
            written(&json, &NAMESPACE).0
        })
        .collect();
    let sum = items
        .iter()
        .map(|item| protobuf_item_bytes(item.len() as u64));
    let head = br#"{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"5"}}"#;
    let mut list = Vec::new();
    begin_protobuf_list(head, sum.sum(), &mut list).expect("is JSON");
    for item in &items {
        append_protobuf_item(&mut list, |out| out.extend_from_slice(item));
    }
    end_protobuf_body(&mut list);
    let parsed = ProtobufBody::parse(&list).expect("parses");
    assert_eq!(
        (&*parsed.kind, &*parsed.api_version),
        ("NamespaceList", "v1")
    );
    let whole = [
        message(1, [text(2, "5")]),
        items.iter().flat_map(|item| bytes(2, item)).collect(),
    ];
    assert_eq!(parsed.message, whole.concat());
}

#[test]
fn an_event_has_its_object_with_the_prefix() {
    let mut event = Vec::new();
    let json = br#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"foo"}}"#;
    append_protobuf_event("ADDED", &mut event, |out| {
        append_protobuf_body(json, &NAMESPACE, out).map(|_| ())
    })
    .expect("is JSON");
    let mut body = Vec::new();
    append_protobuf_body(json, &NAMESPACE, &mut body).expect("is JSON");
    assert_eq!(
        event,
        [text(1, "ADDED"), message(2, [bytes(1, &body)])].concat()
    );
}
