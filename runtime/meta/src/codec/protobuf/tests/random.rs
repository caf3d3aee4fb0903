//! Random documents come back as they were, and random bytes are never a panic.

use proptest::prelude::*;

use super::*;

/// A text that often needs escapes.
fn some_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,3}", ".{0,8}", "[\"\\\\\n<\u{2028}]{0,4}"]
}

fn node() -> impl Strategy<Value = Value> {
    let leaf = (any::<i64>(), prop::collection::vec(any::<u8>(), 0..5));
    let leaf = leaf.prop_map(|(size, data)| {
        let mut node = json!({"size": size});
        if !data.is_empty() {
            node["data"] = crate::bytes::encode(&data).into();
        }
        node
    });
    leaf.prop_recursive(4, 16, 1, |inner| {
        (
            inner,
            any::<bool>(),
            prop::collection::vec(any::<i64>(), 1..4),
        )
            .prop_map(|(child, flag, numbers)| {
                let mut node = json!({"size": 1, "child": child, "numbers": numbers});
                if flag {
                    node["flag"] = true.into();
                }
                node
            })
    })
}

fn wide() -> impl Strategy<Value = Value> {
    let map = prop::collection::btree_map(some_text(), "[1-9]{1,3}m", 1..4);
    let ports = prop_oneof![
        any::<i32>().prop_map(Value::from),
        some_text().prop_map(Value::from)
    ];
    let fields = (
        any::<i32>(),
        1..=u64::MAX,
        map,
        prop::collection::vec(ports, 1..4),
        prop::collection::vec(prop::collection::vec(any::<i32>(), 0..3), 1..3),
        -62_135_596_800i64..253_402_300_799,
        prop::option::of(node()),
    );
    fields.prop_map(|(int32, uint64, quantities, ports, lists, seconds, node)| {
        let time = crate::Time::from_unix_seconds(seconds);
        let mut wide = json!({
            "int32": int32, "uint64": uint64, "quantities": quantities, "ports": ports, "lists": lists,
            "times": [time.to_string()], "any": {"text": quantities},
            "duration": crate::Duration::from_nanos(seconds).to_string(),
        });
        if let Some(node) = node {
            wide["node"] = node;
        }
        wide
    })
}

/// Some of the JSON values that are no object of a kind.
fn any_json() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 13] = [
        "int32",
        "double",
        "micro",
        "quantities",
        "ports",
        "any",
        "lists",
        "maps",
        "node",
        "child",
        "data",
        "size",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        some_text().prop_map(Value::from),
        Just("1970-01-01T00:00:01Z".into()),
        Just("1970-01-01T00:00:01.000001Z".into()),
        Just("AP8=".into()),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let key = prop_oneof![
            prop::sample::select(&NAMES[..]).prop_map(str::to_owned),
            some_text()
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn documents_come_back_as_they_were(document in wide()) {
        let mut raw = Vec::new();
        let json = crate::codec::Encoder::json(&document);
        let is_exact = append_protobuf(&json, &WIDE, &mut raw).expect("is JSON");
        prop_assert!(is_exact, "{document}");
        prop_assert_eq!(to_json(&raw, &WIDE).expect("decodes"), document);
    }

    #[test]
    fn exact_documents_come_back(document in any_json().prop_filter("an object", Value::is_object)) {
        let mut raw = Vec::new();
        let json = crate::codec::Encoder::json(&document);
        let is_exact = append_protobuf(&json, &WIDE, &mut raw).expect("is JSON");
        let back = to_json(&raw, &WIDE).expect("decodes");
        if is_exact {
            // As JSON says it: 0.0 is 0.
            let document: Value = serde_json::from_slice(&json).expect("is JSON");
            prop_assert_eq!(&back, &document);
        }
        // What came back comes back again, except for what JSON always has.
        let mut again = Vec::new();
        append_protobuf(back.to_string().as_bytes(), &WIDE, &mut again).expect("is JSON");
        prop_assert_eq!(to_json(&again, &WIDE).expect("decodes"), back);
    }

    #[test]
    fn random_bytes_are_never_a_panic(raw in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = to_json(&raw, &WIDE);
        let _ = ProtobufBody::parse(&[PROTOBUF_PREFIX, &*raw].concat());
        let _ = append_protobuf(&raw, &WIDE, &mut Vec::new());
    }

    #[test]
    fn damaged_messages_are_never_a_panic(document in wide(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut raw = Vec::new();
        append_protobuf(document.to_string().as_bytes(), &WIDE, &mut raw).expect("is JSON");
        let at = at.index(raw.len());
        raw[at] = byte;
        let _ = to_json(&raw, &WIDE);
        let mut json = document.to_string().into_bytes();
        let at = at.min(json.len() - 1);
        json[at] = byte;
        let _ = append_protobuf(&json, &WIDE, &mut Vec::new());
    }
}
