//! Memory for the conversion of hostile Protobuf bodies to JSON. One test, alone in its process: the allocator counts what
//! all threads have, and ends the process when a limit is exceeded.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::alloc::System;

use apiloom::apis::core::v1::{ConfigMap, ServiceAccount};
use apiloom::meta::kind::Resource as _;
use apiloom_meta::codec::{InvalidText, ProtobufBody, ProtobufError, append_protobuf};
use apiloom_meta::kind::ProtobufMessage;
use cap::Cap;
use serde_json::{Map, json};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Memory for the texts of errors, and for the threads of the test itself.
const BESIDE: usize = 64 * 1024;

/// Converts a message with at most this memory, in bytes, and this length of its JSON.
fn convert(
    message: &[u8],
    of: &ProtobufMessage,
    memory: usize,
    max_json: usize,
) -> Result<usize, ProtobufError> {
    let body = ProtobufBody {
        message,
        ..ProtobufBody::default()
    };
    ALLOCATOR
        .set_limit(ALLOCATOR.allocated() + memory + BESIDE)
        .unwrap();
    let json = body.to_json(of, InvalidText::Refuse, max_json);
    ALLOCATOR.set_limit(usize::MAX).unwrap();
    json.map(|json| json.len())
}

#[test]
fn the_memory_for_damaged_and_hostile_bodies_is_limited() {
    let config_map = ConfigMap::definition().protobuf.unwrap();
    let account = ServiceAccount::definition().protobuf.unwrap();

    // Damaged bytes of an object need at most four times their length.
    let entries =
        (0..500).map(|number| (format!("key-{number:03}"), json!("some text ".repeat(40))));
    let object = json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "data": entries.collect::<Map<_, _>>()});
    let mut sound = Vec::new();
    append_protobuf(object.to_string().as_bytes(), config_map, &mut sound).unwrap();
    assert!(convert(&sound, config_map, 4 * sound.len(), usize::MAX).is_ok());
    let mut refused = 0;
    let mut random = 1u64;
    for _ in 0..2000 {
        let mut damaged = sound.clone();
        for _ in 0..3 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 33) as usize % damaged.len();
            damaged[at] = (random >> 24) as u8;
        }
        let converted = convert(&damaged, config_map, 4 * damaged.len(), usize::MAX);
        refused += usize::from(converted.is_err());
    }
    assert!(refused > 20, "{refused}");

    // Shapes that are much longer as JSON stop at the limit of the JSON. A buffer of that length which grows is copied to one
    // of twice the length.
    let field =
        |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let nested = (0..60).fold(Vec::new(), |inner, _| field(1, &inner));
    for (message, of, why) in [
        // Entries of `data` without key and value; references to objects without fields; a field of one text again and again.
        (field(2, b"").repeat(1_000_000), config_map, "entries"),
        (field(2, b"").repeat(1_000_000), account, "items"),
        (
            field(1, &field(1, b"n")).repeat(400_000),
            config_map,
            "metadata",
        ),
        // In turn, so that they are not in order.
        (
            [field(2, b""), field(3, b"")].concat().repeat(500_000),
            config_map,
            "out of order",
        ),
        (
            field(2, &field(1, b"same")).repeat(250_000),
            config_map,
            "equal keys",
        ),
        (
            field(2, &field(2, &[1; 100])).repeat(20_000),
            config_map,
            "escapes",
        ),
        (
            field(15, b"unknown").repeat(200_000),
            config_map,
            "unknown fields",
        ),
        ([0x7b, 0x7c].repeat(1_000_000), config_map, "unknown groups"),
        (vec![0x7b; 2_000_000], config_map, "nested groups"),
        (nested, config_map, "nested messages"),
        (
            [&[0x12][..], &[0xff; 8], &[0x7f]].concat(),
            config_map,
            "a huge length",
        ),
        (
            field(2, b"\x0a\x01\xff").repeat(200_000),
            config_map,
            "text that is not UTF-8",
        ),
    ] {
        let max_json = 3 * message.len();
        let json = convert(&message, of, 4 * message.len() + 3 * max_json, max_json);
        assert!(
            json.as_ref().is_ok_and(|len| *len <= max_json) || json.is_err(),
            "{why}: {json:?}"
        );
    }
}
