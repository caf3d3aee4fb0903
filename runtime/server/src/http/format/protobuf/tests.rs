//! What Protobuf bodies become, and which are refused.

use apiloom_meta::kind::ResourceDef;
use serde_json::json;

use super::*;
use crate::http::testing;

/// A field of a message, as it stands on the wire.
fn text(number: u32, text: &str) -> Vec<u8> {
    bytes(number, text.as_bytes())
}

fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    encoding::bytes::encode(number, &content.to_vec(), &mut field);
    field
}

fn integer(number: u32, value: i64) -> Vec<u8> {
    let mut field = Vec::new();
    encoding::int64::encode(number, &value, &mut field);
    field
}

fn message<const N: usize>(number: u32, fields: [Vec<u8>; N]) -> Vec<u8> {
    bytes(number, &fields.concat())
}

fn key(number: u32, wire_type: WireType) -> Vec<u8> {
    let mut field = Vec::new();
    encoding::encode_key(number, wire_type, &mut field);
    field
}

/// A body as a client writes it.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = message(1, [text(1, api_version), text(2, kind)]);
    [MAGIC.to_vec(), type_meta, bytes(2, raw)].concat()
}

fn namespace(raw: &[u8]) -> Vec<u8> {
    body("v1", "Namespace", raw)
}

/// Decodes a body where only this kind is registered.
fn read(body: &[u8], def: &ResourceDef) -> Result<Option<Bytes>, ApiError> {
    to_json(body, |api_version, kind| {
        let is_known = kind == def.kind && api_version == def.api_version();
        def.protobuf.filter(|_| is_known)
    })
}

#[track_caller]
fn check(body: &[u8], def: &ResourceDef, expected: Value) {
    let got = read(body, def).expect("decodes").expect("has a form");
    assert_eq!(
        serde_json::from_slice::<Value>(&got).expect("is JSON"),
        expected
    );
}

#[track_caller]
fn check_namespace(raw: &[u8], mut expected: Value) {
    expected["apiVersion"] = "v1".into();
    expected["kind"] = "Namespace".into();
    check(&namespace(raw), &testing::namespace(), expected);
}

/// The error of the message of a namespace, behind what all have in common.
#[track_caller]
fn check_refused(raw: &[u8], expected: &str) {
    let error = read(&namespace(raw), &testing::namespace()).expect_err("refused");
    let common = "the protobuf body cannot be decoded: failed to decode Protobuf message: ";
    assert_eq!(error.message.strip_prefix(common), Some(expected));
    assert_eq!(error.reason, Some(apiloom_meta::StatusReason::BadRequest));
}

#[test]
fn what_kubectl_create_namespace_sends() {
    const SENT: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1b\x0a\x13\x0a\x03foo\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0\x12\0\x1a\x02\x0a\0\x1a\0\x22\0";
    check(
        SENT,
        &testing::namespace(),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}, "spec": {}, "status": {}}),
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
    check_namespace(
        &namespace.concat(),
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
    ];
    check_namespace(
        &metadata.concat(),
        json!({"metadata": {"name": "b", "uid": "u", "finalizers": ["x/y", "x/z"]}, "spec": {}}),
    );
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
    let sent = integer(3, 0);
    check(
        &body("", "DeleteOptions", &sent),
        &testing::flunder(),
        json!({"apiVersion": "", "kind": "DeleteOptions", "orphanDependents": false}),
    );
}

#[test]
fn what_is_no_protobuf_is_a_bad_request() {
    let def = testing::namespace();
    let error = read(b"{}", &def).expect_err("refused");
    assert_eq!(
        error.message,
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert!(read(b"k8s\0\xff\xff\xff", &def).is_err());
}

#[test]
fn only_kinds_that_are_described_have_a_protobuf_form() {
    let (namespace, flunder) = (testing::namespace(), testing::flunder());
    let none = |api_version, kind, def| {
        let body = body(api_version, kind, b"");
        assert_eq!(read(&body, def), Ok(None), "{api_version} {kind}");
    };
    none("wardle.example.com/v1alpha1", "Flunder", &flunder);
    none("v2", "Namespace", &namespace);
    none("v1", "Pod", &namespace);
    none("", "", &namespace);
    assert_eq!(read(b"k8s\0", &namespace), Ok(None));
}

/// Every form that the description of a kind can have.
#[test]
fn a_kind_of_a_program_has_the_form_that_it_describes() {
    use ProtobufType::{Boolean, Bytes, Int64, List, Message};
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
    let def = ResourceDef {
        protobuf: Some(&NODE),
        ..testing::flunder()
    };
    let flunder = |raw: &[u8]| body("wardle.example.com/v1alpha1", "Flunder", raw);
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
        &flunder(&raw.concat()),
        &def,
        json!({
            "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
            "child": {"flag": true, "count": -1, "size": 2},
            "data": "AP8=",
            "numbers": [1, 2, 3],
            "flags": [false, true, true],
            "size": 0,
            "dataList": [""],
        }),
    );
    let nested = |depth| {
        let inner = integer(6, 1);
        flunder(&(0..depth).fold(inner, |inner, _| bytes(1, &inner)))
    };
    assert!(read(&nested(100), &def).is_ok());
    for depth in [101, 100_000] {
        let error = read(&nested(depth), &def).expect_err("refused");
        assert!(
            error.message.ends_with(": recursion limit reached"),
            "{depth}"
        );
    }
}

#[test]
fn every_type_of_a_field_has_its_json() {
    use ProtobufType::{
        Double, Duration, Float, Int32, IntOrString, List, Map, MicroTime, Quantity, RawExtension,
        Uint32, Uint64,
    };
    static WIDE: ProtobufMessage = ProtobufMessage::new("Wide").fields(&[
        ProtobufField::new(1, "int32", Int32).sent(),
        ProtobufField::new(2, "uint32", Uint32),
        ProtobufField::new(3, "uint64", Uint64),
        ProtobufField::new(4, "float", Float),
        ProtobufField::new(5, "double", Double),
        ProtobufField::new(6, "micro", MicroTime),
        ProtobufField::new(7, "duration", Duration).sent(),
        ProtobufField::new(8, "quantities", Map(&Quantity)),
        ProtobufField::new(9, "ports", List(&IntOrString)),
        ProtobufField::new(10, "any", RawExtension),
        ProtobufField::new(11, "lists", List(&List(&Int32))),
        ProtobufField::new(12, "maps", Map(&Map(&List(&Double)))),
        ProtobufField::new(13, "times", List(&ProtobufType::Time)),
    ]);
    let def = ResourceDef {
        protobuf: Some(&WIDE),
        ..testing::flunder()
    };
    let double = |number, value: f64| {
        let mut field = Vec::new();
        encoding::double::encode(number, &value, &mut field);
        field
    };
    let mut float = Vec::new();
    encoding::float::encode(4, &0.25, &mut float);
    let raw = [
        integer(1, 0),
        integer(2, 4_294_967_295),
        integer(3, -1),
        float,
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
    let raw = raw.concat();
    check(
        &body("wardle.example.com/v1alpha1", "Flunder", &raw),
        &def,
        json!({
            "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
            "int32": 0, "uint32": 4_294_967_295_u32, "uint64": u64::MAX, "float": 0.25, "double": 1e300,
            "micro": "1970-01-01T00:00:01.000002Z", "duration": "1.5s", "quantities": {"cpu": "100m"},
            "ports": [80, "http"], "any": [1], "lists": [[1, 2, 3], []], "maps": {"a": {"b": [0.5]}},
            "times": ["1970-01-01T00:00:01Z"],
        }),
    );
}

#[test]
fn unknown_fields_are_skipped() {
    let [group, end] = [WireType::StartGroup, WireType::EndGroup].map(|of| key(99, of));
    let deep = [group.repeat(90), end.repeat(90)].concat();
    let unknown = [
        integer(99, -1),
        bytes(99, b"\xff\xff"),
        [key(99, WireType::ThirtyTwoBit), vec![0xff; 4]].concat(),
        [key(99, WireType::SixtyFourBit), vec![0xff; 8]].concat(),
        [&*group, &integer(1, 1), &end].concat(),
        deep,
    ]
    .concat();
    let metadata = [&*unknown, &text(1, "n"), &unknown].concat();
    let raw = [&*unknown, &bytes(1, &metadata), &unknown].concat();
    check_namespace(&raw, json!({"metadata": {"name": "n"}}));
}

#[test]
fn malformed_messages_are_refused() {
    let metadata = |field: Vec<u8>| bytes(1, &field);
    check_refused(
        &integer(1, 5),
        "Namespace.metadata: invalid wire type: Varint (expected LengthDelimited)",
    );
    for (field, expected) in [
        (
            integer(1, 1),
            "ObjectMeta.name: Namespace.metadata: invalid wire type: Varint (expected LengthDelimited)",
        ),
        (
            text(7, "1"),
            "ObjectMeta.generation: Namespace.metadata: invalid wire type: LengthDelimited (expected Varint)",
        ),
        (
            integer(11, 1),
            "ObjectMeta.labels: Namespace.metadata: invalid wire type: Varint (expected LengthDelimited)",
        ),
        (
            message(8, [text(1, "")]),
            "Time.seconds: ObjectMeta.creationTimestamp: Namespace.metadata: \
             invalid wire type: LengthDelimited (expected Varint)",
        ),
        (
            integer(8, 1),
            "ObjectMeta.creationTimestamp: Namespace.metadata: invalid wire type: Varint (expected LengthDelimited)",
        ),
        (
            key(1, WireType::StartGroup),
            "ObjectMeta.name: Namespace.metadata: invalid wire type: StartGroup (expected LengthDelimited)",
        ),
        (
            key(99, WireType::EndGroup),
            "Namespace.metadata: unexpected end group tag",
        ),
        (
            [99, 98]
                .map(|number| {
                    let kind = if number == 99 {
                        WireType::StartGroup
                    } else {
                        WireType::EndGroup
                    };
                    key(number, kind)
                })
                .concat(),
            "Namespace.metadata: unexpected end group tag",
        ),
        (
            key(99, WireType::StartGroup).repeat(1_000_000),
            "Namespace.metadata: recursion limit reached",
        ),
        (
            bytes(1, b"\xff"),
            "ObjectMeta.name: Namespace.metadata: invalid string value: data is not UTF-8 encoded",
        ),
        (
            message(11, [bytes(2, b"\xff")]),
            "ObjectMeta.labels: Namespace.metadata: invalid string value: data is not UTF-8 encoded",
        ),
        (vec![0x06], "Namespace.metadata: invalid wire type value: 6"),
        (vec![0x00], "Namespace.metadata: invalid tag value: 0"),
        (vec![0xff; 11], "Namespace.metadata: invalid varint"),
        (
            // A length near the largest number.
            [vec![0x0a], vec![0xff; 9], vec![0x01]].concat(),
            "ObjectMeta.name: Namespace.metadata: buffer underflow",
        ),
        (
            [vec![0x0a], vec![0xff; 4], vec![0x7f]].concat(),
            "ObjectMeta.name: Namespace.metadata: buffer underflow",
        ),
        (
            [
                key(99, WireType::LengthDelimited),
                vec![0xff; 9],
                vec![0x01],
            ]
            .concat(),
            "Namespace.metadata: buffer underflow",
        ),
    ] {
        check_refused(&metadata(field), expected);
    }
    // A field that is longer than the message that it is in.
    check_refused(
        &[vec![0x0a, 0x02, 0x0a, 0x05], vec![b'x'; 5]].concat(),
        "Namespace.metadata: delimited length exceeded",
    );
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
        let got = read(&namespace(&raw[..cut]), &testing::namespace());
        assert_eq!(got.is_ok(), is_whole(cut), "{cut}");
    }
    let whole = namespace(&raw);
    for cut in 0..whole.len() {
        // Without its raw bytes, a body has a type or none.
        let got = read(&whole[..cut], &testing::namespace());
        assert!(
            got.is_err() || cut < whole.len() - raw.len(),
            "{cut}: {got:?}"
        );
    }
}
