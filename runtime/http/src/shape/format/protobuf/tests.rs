//! Which bodies are read, and what documents, lists and events are in Protobuf.

use apiloom_meta::codec::PROTOBUF_PREFIX;
use apiloom_meta::kind::ResourceDef;
use apiloom_meta::kind::protobuf::{OBJECT_META, PARTIAL_OBJECT_METADATA};
use serde_json::json;

use super::*;
use crate::testing;

/// A field of a message, as it stands on the wire.
fn text(number: u32, text: &str) -> Vec<u8> {
    bytes(number, text.as_bytes())
}

fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    [
        &varint(number << 3 | 2),
        &varint(content.len() as u32),
        content,
    ]
    .concat()
}

fn integer(number: u32, value: u32) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn varint(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn message<const N: usize>(number: u32, fields: [Vec<u8>; N]) -> Vec<u8> {
    bytes(number, &fields.concat())
}

/// A body as a client writes it.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = message(1, [text(1, api_version), text(2, kind)]);
    let end = [text(3, ""), text(4, "")].concat();
    [PROTOBUF_PREFIX, &*type_meta, &bytes(2, raw), &end].concat()
}

/// Reads a body of a request for this kind, the only one that is registered.
fn read(body: &[u8], def: &ResourceDef) -> Result<Option<Value>, ApiError> {
    let find = |api_version: &str, kind: &str| {
        let is_known = kind == def.kind && api_version == def.api_version();
        def.protobuf.filter(|_| is_known)
    };
    let json = to_json(body, find, def.protobuf)?;
    Ok(json.map(|json| serde_json::from_slice(&json).expect("is JSON")))
}

#[track_caller]
fn check(body: &[u8], def: &ResourceDef, expected: Value) {
    assert_eq!(read(body, def), Ok(Some(expected)));
}

#[test]
fn a_body_is_the_json_that_the_client_would_send() {
    let raw = message(1, [text(1, "n")]);
    check(
        &body("v1", "Namespace", &raw),
        &testing::namespace(),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
    );
    // Without a type it is of the kind of the request.
    check(
        &[PROTOBUF_PREFIX, &*bytes(2, &raw)].concat(),
        &testing::namespace(),
        json!({"apiVersion": "", "kind": "", "metadata": {"name": "n"}}),
    );
    // Of another kind only the type is read, for the error.
    for (api_version, kind) in [("v2", "Namespace"), ("v1", "Pod")] {
        check(
            &body(api_version, kind, &raw),
            &testing::namespace(),
            json!({"apiVersion": api_version, "kind": kind}),
        );
    }
}

#[test]
fn delete_options_of_any_version() {
    let options = [
        integer(1, 0),
        message(2, [text(1, "u")]),
        text(4, "Background"),
        text(5, "All"),
    ];
    let options = body("meta.k8s.io/v1", "DeleteOptions", &options.concat());
    for def in [testing::namespace(), testing::flunder()] {
        check(
            &options,
            &def,
            json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u"}, "propagationPolicy": "Background", "dryRun": ["All"],
            }),
        );
    }
    check(
        &body("", "DeleteOptions", &integer(3, 0)),
        &testing::flunder(),
        json!({"apiVersion": "", "kind": "DeleteOptions", "orphanDependents": false}),
    );
}

#[test]
fn malformed_bodies_are_bad_requests() {
    for def in [testing::namespace(), testing::flunder()] {
        let error = read(b"{}", &def).expect_err("refused");
        assert_eq!(
            error.message,
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        );
        assert_eq!(error.reason, Some(apiloom_meta::StatusReason::BadRequest));
    }
    let def = testing::namespace();
    assert!(read(b"k8s\0\xff\xff\xff", &def).is_err());
    let error = read(&body("v1", "Namespace", &integer(1, 5)), &def).expect_err("refused");
    assert_eq!(
        error.message,
        "the protobuf body cannot be decoded: Namespace.metadata: expected bytes with a length, found a number"
    );
}

#[test]
fn kinds_without_a_description_are_not_read() {
    let flunder = testing::flunder();
    for (api_version, kind) in [
        ("wardle.example.com/v1alpha1", "Flunder"),
        ("v1", "Pod"),
        ("", ""),
    ] {
        let body = body(api_version, kind, b"");
        assert_eq!(read(&body, &flunder), Ok(None), "{api_version} {kind}");
    }
    assert_eq!(read(PROTOBUF_PREFIX, &flunder), Ok(None));
}

/// Two bytes of Protobuf would be fifty of JSON.
#[test]
fn a_body_that_would_be_much_larger_as_json_is_refused() {
    let owners = |count| {
        let metadata = bytes(1, &message(13, []).repeat(count));
        body("v1", "Namespace", &metadata)
    };
    let def = testing::namespace();
    assert!(read(&owners(4000), &def).is_ok());
    let error = read(&owners(1_500_000), &def).expect_err("refused");
    assert_eq!(
        error.reason,
        Some(apiloom_meta::StatusReason::RequestEntityTooLarge)
    );
    assert_eq!(error.message, "Request entity too large: limit is 6291456");
    // A text of which every character is escaped is not.
    let label = message(11, [text(1, "a"), text(2, &"<".repeat(500_000))]);
    let escaped = body("v1", "Namespace", &bytes(1, &label));
    assert!(read(&escaped, &def).is_ok());
}

const PARTIAL: &str =
    r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"n"}}"#;

fn show_whole(out: &mut dyn Sink) {
    out.describe(&PARTIAL_OBJECT_METADATA);
    out.json(PARTIAL.as_bytes());
}

/// The same document as several events.
fn show_events(out: &mut dyn Sink) {
    out.describe(&PARTIAL_OBJECT_METADATA);
    out.begin_map();
    out.text_field("kind", "PartialObjectMetadata");
    out.text_field("apiVersion", "meta.k8s.io/v1");
    out.key("metadata");
    out.begin_map();
    out.text_field("name", "n");
    out.end_map();
    out.end_map();
}

#[test]
fn a_document_is_a_body() {
    let expected = body(
        "meta.k8s.io/v1",
        "PartialObjectMetadata",
        &message(1, [text(1, "n")]),
    );
    for show in [show_whole, show_events] {
        assert_eq!(Protobuf.document(&show, 0), expected);
    }
}

#[test]
fn an_event_has_its_length_and_an_object_with_the_prefix() {
    let mut out = b"before".to_vec();
    for show in [show_whole, show_events] {
        Protobuf.event("ADDED", &show, 100, &mut out);
    }
    let object = body(
        "meta.k8s.io/v1",
        "PartialObjectMetadata",
        &message(1, [text(1, "n")]),
    );
    let event = [text(1, "ADDED"), message(2, [bytes(1, &object)])].concat();
    let length = u32::try_from(event.len()).expect("short").to_be_bytes();
    let frame = [&length[..], &event].concat();
    assert_eq!(out, [b"before", &*frame, &frame].concat());
}

#[test]
fn a_list_is_one_body_in_pieces() {
    let shows = [show_whole, show_events];
    let sizes = shows.map(|show| Protobuf.item_bytes(&show).expect("known"));
    let mut list = Protobuf.list(sizes.iter().sum());
    let mut out = Vec::new();
    let head = |out: &mut dyn Sink| {
        out.begin_map();
        out.text_field("kind", "PartialObjectMetadataList");
        out.text_field("apiVersion", "meta.k8s.io/v1");
        out.key("metadata");
        out.begin_map();
        out.text_field("resourceVersion", "5");
        out.key("remainingItemCount");
        out.integer(0);
        out.end_map();
        out.items("items");
    };
    list.begin(&head, &mut out);
    for show in shows {
        list.item(&show, &mut out);
    }
    list.end(&mut out);
    let item = message(2, [message(1, [text(1, "n")])]);
    let raw = [
        message(1, [text(2, "5"), integer(4, 0)]),
        item.clone(),
        item,
    ];
    let expected = body("meta.k8s.io/v1", "PartialObjectMetadataList", &raw.concat());
    assert_eq!(out, expected);
}

/// Numbers of ObjectMeta that no field may get: those of fields that Kubernetes had.
#[test]
fn the_numbers_of_the_metadata_are_those_of_kubernetes() {
    let numbers = OBJECT_META.fields.iter().map(|field| field.number);
    assert_eq!(
        numbers.collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17]
    );
}
