//! Protobuf bodies in JSON, refused bodies, and JSON in Protobuf.

mod back;
mod flattened;
mod random;

use serde_json::{Value, json};

use super::wire::{FIXED32, FIXED64, VARINT, append_bytes, append_key, append_varint};
use super::*;
use crate::kind::ProtobufField;
use crate::kind::ProtobufType::{self, Boolean, Bytes, Int64, List, Message};
use crate::kind::protobuf::OBJECT_META;

/// Wire types of groups.
const GROUP: u8 = 3;
const GROUP_END: u8 = 4;

/// A field of a message, as it stands on the wire.
fn text(number: u32, text: &str) -> Vec<u8> {
    bytes(number, text.as_bytes())
}

fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    append_bytes(number, content, &mut field);
    field
}

fn integer(number: u32, value: i64) -> Vec<u8> {
    let mut field = key(number, VARINT);
    append_varint(value as u64, &mut field);
    field
}

fn message<const N: usize>(number: u32, fields: [Vec<u8>; N]) -> Vec<u8> {
    bytes(number, &fields.concat())
}

fn key(number: u32, wire_type: u8) -> Vec<u8> {
    let mut field = Vec::new();
    append_key(number, wire_type, &mut field);
    field
}

fn double(number: u32, value: f64) -> Vec<u8> {
    [key(number, FIXED64), value.to_le_bytes().to_vec()].concat()
}

static NAMESPACE: ProtobufMessage = ProtobufMessage::new("Namespace").fields(&[
    ProtobufField::new(1, "metadata", Message(|| &OBJECT_META)),
    ProtobufField::new(2, "spec", Message(|| &SPEC)),
    ProtobufField::new(3, "status", Message(|| &STATUS)),
]);
static SPEC: ProtobufMessage = ProtobufMessage::new("NamespaceSpec").fields(&[ProtobufField::new(
    1,
    "finalizers",
    List(&ProtobufType::Text),
)]);
static STATUS: ProtobufMessage = ProtobufMessage::new("NamespaceStatus").fields(&[
    ProtobufField::new(1, "phase", ProtobufType::Text),
    ProtobufField::new(2, "conditions", List(&Message(|| &CONDITION))),
]);
static CONDITION: ProtobufMessage = ProtobufMessage::new("NamespaceCondition").fields(&[
    ProtobufField::new(1, "type", ProtobufType::Text),
    ProtobufField::new(2, "status", ProtobufType::Text),
    ProtobufField::new(4, "lastTransitionTime", ProtobufType::Time),
    ProtobufField::new(5, "reason", ProtobufType::Text),
    ProtobufField::new(6, "message", ProtobufType::Text),
]);

/// Every form that a description can have.
static NODE: ProtobufMessage = ProtobufMessage::new("Node").fields(&[
    ProtobufField::new(1, "child", Message(|| &NODE)),
    ProtobufField::new(2, "data", Bytes),
    ProtobufField::new(3, "numbers", List(&Int64)),
    ProtobufField::new(4, "flags", List(&Boolean)),
    ProtobufField::new(5, "flag", Boolean),
    ProtobufField::new(6, "count", Int64),
    ProtobufField::new(7, "size", Int64).always(),
    ProtobufField::new(8, "dataList", List(&Bytes)),
]);

/// Every type that a field can have.
static WIDE: ProtobufMessage = ProtobufMessage::new("Wide").fields(&[
    ProtobufField::new(1, "int32", ProtobufType::Int32).sent(),
    ProtobufField::new(2, "uint32", ProtobufType::Uint32),
    ProtobufField::new(3, "uint64", ProtobufType::Uint64),
    ProtobufField::new(4, "float", ProtobufType::Float),
    ProtobufField::new(5, "double", ProtobufType::Double),
    ProtobufField::new(6, "micro", ProtobufType::MicroTime),
    ProtobufField::new(7, "duration", ProtobufType::Duration).sent(),
    ProtobufField::new(8, "quantities", ProtobufType::Map(&ProtobufType::Quantity)),
    ProtobufField::new(9, "ports", List(&ProtobufType::IntOrString)),
    ProtobufField::new(10, "any", ProtobufType::RawExtension),
    ProtobufField::new(11, "lists", List(&List(&ProtobufType::Int32))),
    ProtobufField::new(
        12,
        "maps",
        ProtobufType::Map(&ProtobufType::Map(&List(&ProtobufType::Double))),
    ),
    ProtobufField::new(13, "times", List(&ProtobufType::Time)),
    ProtobufField::new(14, "node", Message(|| &NODE)).sent(),
]);

/// The JSON of a message, of which the type is empty.
fn to_json(raw: &[u8], message: &ProtobufMessage) -> Result<Value, ProtobufError> {
    let body = ProtobufBody {
        message: raw,
        ..ProtobufBody::default()
    };
    let json = body.to_json(message, InvalidText::Refuse, 1024 * 1024)?;
    let mut json: Value = serde_json::from_slice(&json).expect("it is JSON");
    let fields = json.as_object_mut().expect("an object");
    assert_eq!(fields.remove("kind"), Some("".into()));
    assert_eq!(fields.remove("apiVersion"), Some("".into()));
    Ok(json)
}

#[track_caller]
fn check(raw: &[u8], message: &ProtobufMessage, expected: Value) {
    assert_eq!(to_json(raw, message), Ok(expected));
}

#[track_caller]
fn check_refused(raw: &[u8], expected: &str) {
    let error = to_json(raw, &NAMESPACE).expect_err("refused");
    let expected = format!("the protobuf body cannot be decoded: {expected}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_body_that_kubectl_sends() {
    const SENT: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1b\x0a\x13\x0a\x03foo\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0\x12\0\x1a\x02\x0a\0\x1a\0\x22\0";
    let body = ProtobufBody::parse(SENT).expect("parses");
    let json = body.to_json(&NAMESPACE, InvalidText::Refuse, 1024);
    assert_eq!(
        json.expect("fits"),
        br#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"foo"}}"#
    );
}

#[test]
fn every_field_of_a_namespace() {
    let time = |number, seconds| message(number, [integer(1, seconds), integer(2, 5)]);
    let label = |number, key, value| message(number, [text(1, key), text(2, value)]);
    let metadata = [
        text(1, "n"),
        text(2, "n-"),
        text(3, "ns"),
        text(4, "/n"),
        text(5, "u"),
        text(6, "7"),
        integer(7, 3),
        time(8, 1_700_000_000),
        time(9, -1),
        integer(10, 0),
        label(11, "a", ""),
        label(11, "b", "c"),
        label(12, "d", "e"),
        message(13, [text(4, "u"), integer(6, 0), integer(7, 1)]),
        message(13, [text(1, "K"), text(3, "o"), text(5, "v1")]),
        text(14, "x/y"),
        text(14, ""),
        message(
            17,
            [
                text(1, "m"),
                text(2, "Update"),
                text(3, "v1"),
                time(4, 1),
                text(6, "FieldsV1"),
                message(7, [text(1, "{\"f:a\":{}}")]),
                text(8, "status"),
            ],
        ),
        message(17, [message(7, [text(1, "no JSON")])]),
    ];
    let condition = [
        text(1, "T"),
        text(2, "True"),
        message(4, []),
        text(5, "R"),
        text(6, "M"),
    ];
    let namespace = [
        bytes(1, &metadata.concat()),
        message(2, [text(1, "kubernetes")]),
        message(3, [text(1, "Active"), message(2, condition)]),
    ];
    check(
        &namespace.concat(),
        &NAMESPACE,
        json!({
            "metadata": {
                "name": "n",
                "generateName": "n-",
                "namespace": "ns",
                "selfLink": "/n",
                "uid": "u",
                "resourceVersion": "7",
                "generation": 3,
                "creationTimestamp": "2023-11-14T22:13:20Z",
                "deletionTimestamp": "1969-12-31T23:59:59Z",
                "deletionGracePeriodSeconds": 0,
                "labels": {"a": "", "b": "c"},
                "annotations": {"d": "e"},
                "ownerReferences": [
                    {"apiVersion": "", "kind": "", "name": "", "uid": "u", "controller": false, "blockOwnerDeletion": true},
                    {"apiVersion": "v1", "kind": "K", "name": "o", "uid": ""},
                ],
                "finalizers": ["x/y", ""],
                "managedFields": [
                    {
                        "manager": "m", "operation": "Update", "apiVersion": "v1", "time": "1970-01-01T00:00:01Z",
                        "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}, "subresource": "status",
                    },
                    {},
                ],
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {
                "phase": "Active",
                "conditions": [{"type": "T", "status": "True", "reason": "R", "message": "M"}],
            },
        }),
    );
}

#[test]
fn fields_that_are_sent_again_are_merged() {
    let metadata = [
        message(1, [text(1, "a"), text(5, "u"), text(14, "x/y")]),
        message(1, [text(1, "b"), text(14, "x/z")]),
        message(2, []),
        message(1, [text(14, "x/0"), text(5, "w")]),
    ];
    check(
        &metadata.concat(),
        &NAMESPACE,
        json!({"metadata": {"name": "b", "uid": "w", "finalizers": ["x/y", "x/z", "x/0"]}}),
    );
}

#[test]
fn fields_may_come_in_any_order() {
    let metadata = [text(14, "x/y"), text(5, "u"), text(14, "x/z"), text(1, "n")];
    let raw = [
        message(3, [text(1, "Active")]),
        bytes(1, &metadata.concat()),
    ];
    let body = raw.concat();
    let json = ProtobufBody {
        message: &body,
        ..ProtobufBody::default()
    };
    let json = json.to_json(&NAMESPACE, InvalidText::Refuse, 1024);
    assert_eq!(
        json.expect("fits"),
        br#"{"kind":"","apiVersion":"","metadata":{"name":"n","uid":"u","finalizers":["x/y","x/z"]},"status":{"phase":"Active"}}"#
    );
}

#[test]
fn a_body_has_a_prefix_and_a_type_or_none() {
    assert_eq!(ProtobufBody::parse(b"{}"), Err(ProtobufError::NoPrefix));
    assert_eq!(
        ProtobufError::NoPrefix.to_string(),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(ProtobufBody::parse(b"k8s\0"), Ok(ProtobufBody::default()));
    let error = ProtobufBody::parse(b"k8s\0\xff\xff\xff").expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the protobuf body cannot be decoded: Unknown: the message ends within a field"
    );
}

#[test]
fn every_form_of_a_description() {
    let raw = [
        message(1, [integer(5, 1), integer(6, -1), integer(7, 2)]),
        bytes(2, b"\x00\xff"),
        integer(3, 1),
        // Packed.
        bytes(3, &[2, 3]),
        bytes(4, &[0, 1]),
        integer(4, 1),
        integer(5, 0),
        integer(6, 0),
        bytes(8, b""),
    ];
    check(
        &raw.concat(),
        &NODE,
        json!({
            "child": {"flag": true, "count": -1, "size": 2},
            "data": "AP8=",
            "numbers": [1, 2, 3],
            "flags": [false, true, true],
            "size": 0,
            "dataList": [""],
        }),
    );
}

#[test]
fn the_depth_of_messages_is_limited() {
    let nested = |depth| (0..depth).fold(integer(6, 1), |inner, _| bytes(1, &inner));
    assert!(to_json(&nested(60), &NODE).is_ok());
    for depth in [200, 100_000] {
        let error = to_json(&nested(depth), &NODE).expect_err("refused");
        let text = error.to_string();
        assert!(
            text.ends_with(": the messages are nested too deeply"),
            "{depth}"
        );
    }
}

#[test]
fn every_type_of_a_field_has_its_json() {
    let raw = [
        integer(1, 0),
        integer(2, 4_294_967_295),
        integer(3, -1),
        [key(4, FIXED32), 0.25f32.to_le_bytes().to_vec()].concat(),
        double(5, 1e300),
        message(6, [integer(1, 1), integer(2, 2_999)]),
        message(7, [integer(1, 1_500_000_000)]),
        message(8, [text(1, "cpu"), message(2, [text(1, "100m")])]),
        message(9, [integer(1, 0), integer(2, 80), text(3, "")]),
        message(9, [integer(1, 1), integer(2, 0), text(3, "http")]),
        message(10, [text(1, "[1]")]),
        message(11, [integer(1, 1), bytes(1, &[2, 3])]),
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
        message(13, [integer(1, 1)]),
    ];
    check(
        &raw.concat(),
        &WIDE,
        json!({
            "int32": 0, "uint32": 4_294_967_295_u32, "uint64": u64::MAX, "float": 0.25, "double": 1e300,
            "micro": "1970-01-01T00:00:01.000002Z", "duration": "1.5s", "quantities": {"cpu": "100m"},
            "ports": [80, "http"], "any": [1], "lists": [[1, 2, 3], []], "maps": {"a": {"b": [0.5]}},
            "times": ["1970-01-01T00:00:01Z"],
        }),
    );
}

#[test]
fn unknown_fields_are_skipped() {
    let [group, end] = [GROUP, GROUP_END].map(|of| key(99, of));
    let deep = [group.repeat(90), end.repeat(90)].concat();
    let unknown = [
        integer(99, -1),
        bytes(99, b"\xff\xff"),
        [key(99, FIXED32), vec![0xff; 4]].concat(),
        [key(99, FIXED64), vec![0xff; 8]].concat(),
        [&*group, &integer(1, 1), &end].concat(),
        deep,
    ]
    .concat();
    let metadata = [&*unknown, &text(1, "n"), &unknown].concat();
    let raw = [&*unknown, &bytes(1, &metadata), &unknown].concat();
    check(&raw, &NAMESPACE, json!({"metadata": {"name": "n"}}));
}

#[test]
fn the_first_unknown_field_with_a_value_is_named() {
    let unknown = |raw: &[u8]| {
        let body = ProtobufBody {
            message: raw,
            ..ProtobufBody::default()
        };
        body.unknown_field(&NAMESPACE, 1024).unwrap()
    };
    let metadata = |field: &[u8]| bytes(1, &[&*text(1, "n"), field].concat());
    assert_eq!(unknown(&metadata(&[])), None);
    let empty = [integer(99, 0), text(98, "")].concat();
    assert_eq!(unknown(&[&*metadata(&empty), &empty].concat()), None);
    let deep = metadata(&text(99, "a"));
    assert_eq!(unknown(&deep).as_deref(), Some("number 99 of ObjectMeta"));
    assert_eq!(
        unknown(&[&*integer(98, 1), &deep].concat()).as_deref(),
        Some("number 98 of Namespace")
    );
}

#[test]
fn malformed_messages_are_refused() {
    check_refused(
        &integer(1, 5),
        "Namespace.metadata: expected bytes with a length, found a number",
    );
    for (field, expected) in [
        (
            integer(1, 1),
            "ObjectMeta.name: expected bytes with a length, found a number",
        ),
        (
            text(7, "1"),
            "ObjectMeta.generation: expected a number, found bytes with a length",
        ),
        (
            integer(11, 1),
            "ObjectMeta.labels: expected bytes with a length, found a number",
        ),
        (
            message(8, [text(1, "")]),
            "ObjectMeta.creationTimestamp: expected a number, found bytes with a length",
        ),
        (
            [key(1, GROUP), key(1, GROUP_END)].concat(),
            "ObjectMeta.name: expected bytes with a length, found a group",
        ),
        (key(99, GROUP_END), "unexpected end of a group"),
        (
            [key(99, GROUP), key(98, GROUP_END)].concat(),
            "unexpected end of a group",
        ),
        (
            key(99, GROUP).repeat(1_000_000),
            "the groups are nested too deeply",
        ),
        (bytes(1, b"\xff"), "ObjectMeta.name: the text is not UTF-8"),
        (
            message(11, [bytes(2, b"\xff")]),
            "ObjectMeta.labels: the text is not UTF-8",
        ),
        (vec![0x0e], "invalid wire type 6"),
        (vec![0x00], "invalid field number 0"),
        (vec![0xff; 11], "a number has more than 64 bits"),
        (
            // A length near the largest number.
            [vec![0x0a], vec![0xff; 9], vec![0x01]].concat(),
            "the message ends within a field",
        ),
        (
            [vec![0x0a], vec![0xff; 4], vec![0x7f]].concat(),
            "the message ends within a field",
        ),
    ] {
        let expected = format!("Namespace.metadata: {expected}");
        check_refused(&bytes(1, &field), &expected);
    }
    // A field that is longer than the message that it is in.
    check_refused(
        &[vec![0x0a, 0x02, 0x0a, 0x05], vec![b'x'; 6]].concat(),
        "Namespace.metadata: the message ends within a field",
    );
}

#[test]
fn a_wrong_wire_type_is_refused_also_if_a_right_one_follows() {
    for (wrong, right, expected) in [
        (
            integer(1, 1),
            text(1, "n"),
            "ObjectMeta.name: expected bytes with a length, found a number",
        ),
        (
            text(7, "1"),
            integer(7, 1),
            "ObjectMeta.generation: expected a number, found bytes with a length",
        ),
        (
            double(8, 1.0),
            message(8, [integer(1, 1)]),
            "ObjectMeta.creationTimestamp: expected bytes with a length, found 64 bits",
        ),
        (
            message(11, [text(1, "a"), integer(2, 1), text(2, "b")]),
            message(11, [text(1, "a"), text(2, "b")]),
            "ObjectMeta.labels: expected bytes with a length, found a number",
        ),
        (
            integer(14, 1),
            text(14, "f"),
            "ObjectMeta.finalizers: expected bytes with a length, found a number",
        ),
    ] {
        let expected = format!("Namespace.metadata: {expected}");
        for fields in [[wrong.clone(), right.clone()], [right, wrong]] {
            check_refused(&message(1, fields), &expected);
        }
    }
    check_refused(
        &[integer(2, 1), message(2, [text(1, "f")])].concat(),
        "Namespace.spec: expected bytes with a length, found a number",
    );
}

#[test]
fn text_that_is_not_utf_8_is_replaced_in_stored_values() {
    let raw = bytes(1, &[text(1, "n"), bytes(2, b"a\xffb")].concat());
    let body = ProtobufBody {
        message: &raw,
        ..ProtobufBody::default()
    };
    let json = body.to_json(&NAMESPACE, InvalidText::Replace, 1024);
    let json: Value = serde_json::from_slice(&json.expect("fits")).expect("is JSON");
    assert_eq!(json["metadata"]["generateName"], "a\u{fffd}b");
}

#[test]
fn a_body_that_is_cut_is_never_a_panic() {
    let owner = message(13, [text(1, "K"), integer(6, 1)]);
    let metadata = [
        text(1, "name"),
        message(8, [integer(1, 1_700_000_000)]),
        message(11, [text(1, "a"), text(2, "b")]),
        owner,
        message(17, [message(7, [text(1, "{}")])]),
    ];
    let raw = [
        bytes(1, &metadata.concat()),
        message(2, [text(1, "kubernetes")]),
    ]
    .concat();
    let is_whole = |cut: usize| cut == 0 || cut == raw.len() - 14;
    for cut in 0..raw.len() {
        let got = to_json(&raw[..cut], &NAMESPACE);
        assert_eq!(got.is_ok(), is_whole(cut), "{cut}");
    }
}

/// What is small on the wire may be large in JSON: an empty message of a list is two bytes, and gets all fields that JSON
/// always has.
#[test]
fn the_json_and_the_memory_of_a_body_are_limited() {
    let convert = |raw: &[u8], max_bytes| {
        let body = ProtobufBody {
            message: raw,
            ..ProtobufBody::default()
        };
        body.to_json(&NAMESPACE, InvalidText::Refuse, max_bytes)
    };
    let owners = bytes(1, &message(13, []).repeat(100_000));
    let error = convert(&owners, 1_000_000).expect_err("refused");
    assert_eq!(error, ProtobufError::TooLarge(1_000_000));
    assert_eq!(
        error.to_string(),
        "Request entity too large: limit is 1000000"
    );
    assert!(convert(&owners, 5_000_000).is_ok());
    let entries = bytes(1, &message(11, []).repeat(100_000));
    assert!(convert(&entries, 100_000).is_err());
    // Fields out of order need an index.
    let unsorted = bytes(1, &[text(14, ""), text(1, "n")].concat().repeat(10_000));
    assert!(convert(&unsorted, 100_000).is_err());
    assert!(convert(&unsorted, 1_000_000).is_ok());
    // A message that is sent again needs a copy.
    let again = message(1, [text(1, &"x".repeat(1000))]).repeat(1000);
    assert!(convert(&again, 500_000).is_err());
    assert!(convert(&again, 2_000_000).is_ok());
}
