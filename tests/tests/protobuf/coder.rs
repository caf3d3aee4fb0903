//! Random objects of every kind are written by our coder and read by the reference, and the other way round. Damaged bytes
//! are an error, or some object.

use apiloom::apis::{coordination, core, events};
use apiloom::meta::kind::Resource;
use apiloom_meta::codec::{InvalidText, ProtobufBody, ProtobufError, append_protobuf};
use apiloom_meta::kind::ProtobufMessage;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};

use super::kinds::WidgetType;
use super::{message_of, reference};

/// Number of random objects of each kind.
const SAMPLES: u64 = 300;

/// A kind, its JSON and its message by both readings.
struct Case {
    name: String,
    api_version: String,
    kind: String,
    ours: &'static ProtobufMessage,
    reference: MessageDescriptor,
    samples: Vec<Value>,
}

fn case<K: Resource>() -> Case {
    let def = K::definition();
    let reference = message_of(&def);
    let schema = def.schema.schema().unwrap();
    let samples = (0..SAMPLES).map(|seed| {
        let mut sample = schema.sample(seed);
        sample["metadata"] = metadata(seed);
        sample
    });
    Case {
        name: reference.full_name().to_owned(),
        reference,
        api_version: def.api_version(),
        kind: def.kind.to_string(),
        ours: def.protobuf.unwrap(),
        samples: samples.collect(),
    }
}

fn cases() -> Vec<Case> {
    vec![
        case::<core::v1::Namespace>(),
        case::<core::v1::ConfigMap>(),
        case::<core::v1::Secret>(),
        case::<core::v1::ServiceAccount>(),
        case::<core::v1::Event>(),
        case::<events::v1::Event>(),
        case::<coordination::v1::Lease>(),
        case::<wardle::v1alpha1::Flunder>(),
        case::<wardle::v1beta1::Flunder>(),
        case::<wardle::v1alpha1::Fischer>(),
        case::<WidgetType>(),
    ]
}

/// Metadata with some of its fields.
fn metadata(seed: u64) -> Value {
    let all = json!({
        "name": "n", "generateName": "n-", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 3,
        "creationTimestamp": "2023-11-14T22:13:20Z", "deletionTimestamp": "1969-12-31T23:59:59Z",
        "deletionGracePeriodSeconds": 0, "labels": {"a": "", "b": "c"}, "annotations": {"d": "\u{1f980}\n"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": false},
            {"apiVersion": "v1", "kind": "K", "name": "p", "uid": "v", "blockOwnerDeletion": true},
        ],
        "finalizers": ["x/y", ""],
        "managedFields": [{
            "manager": "m", "operation": "Apply", "apiVersion": "v1", "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {".": {}, "v:\"x\"": {}}}, "subresource": "status",
        }],
    });
    let all = all.as_object().unwrap().clone();
    let some = all.into_iter().enumerate();
    let some = some.filter(|(at, _)| (seed >> (at % 14)) & 1 == 0);
    some.map(|(_, field)| field).collect()
}

fn write(json: &Value, message: &ProtobufMessage) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let is_exact = append_protobuf(json.to_string().as_bytes(), message, &mut bytes).unwrap();
    (bytes, is_exact)
}

fn read(bytes: &[u8], case: &Case) -> Result<Value, ProtobufError> {
    let body = ProtobufBody {
        api_version: case.api_version.as_str().into(),
        kind: case.kind.as_str().into(),
        message: bytes,
    };
    let json = body.to_json(case.ours, InvalidText::Refuse, usize::MAX)?;
    Ok(serde_json::from_slice(&json).expect("what was read is JSON"))
}

#[test]
fn the_reference_reads_what_we_write() {
    for case in cases() {
        let mut compared = 0;
        for sample in &case.samples {
            let Some(expected) = reference::message(sample, &case.reference) else {
                continue;
            };
            let (bytes, _) = write(sample, case.ours);
            let found = DynamicMessage::decode(case.reference.clone(), &*bytes).unwrap();
            assert_eq!(found, expected, "{}: {sample}", case.name);
            compared += 1;
        }
        assert!(compared > SAMPLES / 2, "{}: {compared}", case.name);
    }
}

#[test]
fn we_read_what_the_reference_writes() {
    for case in cases() {
        let mut compared = 0;
        for sample in &case.samples {
            let Some(message) = reference::message(sample, &case.reference) else {
                continue;
            };
            // What Protobuf does not tell from absent ones is not compared, such as empty lists.
            let (_, is_exact) = write(sample, case.ours);
            let found = read(&message.encode_to_vec(), &case).unwrap();
            if is_exact {
                let mut expected = sample.clone();
                expected["apiVersion"] = case.api_version.as_str().into();
                expected["kind"] = case.kind.as_str().into();
                assert_eq!(found, expected, "{}", case.name);
                compared += 1;
            }
            // Read again, it is the same.
            let (bytes, _) = write(&found, case.ours);
            assert_eq!(read(&bytes, &case).unwrap(), found, "{}", case.name);
        }
        assert!(compared > SAMPLES / 10, "{}: {compared}", case.name);
    }
}

#[test]
fn damaged_bytes_are_an_error_or_an_object() {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    };
    let mut runner = TestRunner::new(config);
    for case in cases() {
        let samples = case.samples.iter().take(64);
        let samples: Vec<Vec<u8>> = samples
            .map(|sample| write(sample, case.ours).0)
            .filter(|bytes| !bytes.is_empty())
            .collect();
        let place = any::<prop::sample::Index>;
        let damages = (place(), place(), any::<u8>(), any::<bool>());
        let checked = runner.run(&damages, |(which, at, byte, is_cut)| {
            let mut bytes = which.get(&samples).clone();
            let at = at.index(bytes.len());
            if is_cut {
                bytes.truncate(at);
            } else {
                bytes[at] = byte;
            }
            let Ok(json) = read(&bytes, &case) else {
                return Ok(());
            };
            // What we take for an object is the same when it is written and read again, and the reference reads it.
            let (again, _) = write(&json, case.ours);
            let reference = DynamicMessage::decode(case.reference.clone(), &*again);
            prop_assert!(reference.is_ok(), "{}: {bytes:?}: {reference:?}", case.name);
            prop_assert_eq!(read(&again, &case), Ok(json), "{}", case.name);
            Ok(())
        });
        checked.unwrap();
    }
}
