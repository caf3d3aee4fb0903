//! Compares what is decoded here with what serde_json decodes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::types::{IntOrString, ObjectMeta};

/// Decodes JSON both ways. What is decoded here is the same; `known` says whether it is.
fn check<T: DeserializeOwned + Debug>(json: &str, known: bool) {
    let by_serde_json: Option<T> = serde_json::from_str(json).ok();
    let found = decode::<T>(json);
    assert_eq!(found.is_some(), known, "{json}");
    if found.is_some() {
        // Floats, raw JSON and all else are told apart by their text.
        assert_eq!(format!("{found:?}"), format!("{by_serde_json:?}"), "{json}");
    }
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "they are printed")]
struct Fields {
    text: String,
    #[serde(default)]
    number: Option<i32>,
    #[serde(default)]
    list: Vec<Fields>,
    #[serde(default)]
    map: BTreeMap<String, Value>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "they are printed")]
enum Variants {
    Unit,
    New(Box<Variants>),
    Tuple(u8, String),
    Fields { a: bool },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(dead_code, reason = "they are printed")]
enum Tagged {
    A { a: u64 },
    B(BTreeMap<String, u8>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "they are printed")]
enum Untagged {
    Number(u8),
    Text(String),
    List(Vec<Untagged>),
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Wrapped(String);

#[test]
fn scalars_are_as_in_serde_json() {
    for json in ["0", "1", "-1", "7", "255", "123456789012345678"] {
        check::<Value>(json, true);
        check::<f64>(json, true);
        check::<i64>(json, true);
    }
    check::<u8>("256", false);
    check::<u8>("-1", false);
    for json in [
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
    ] {
        check::<Value>(json, true);
    }
    for json in [
        "-0",
        "1.5",
        "1e3",
        "-2.5E-7",
        "0.1",
        "1e300",
        "18446744073709551616",
    ] {
        check::<Value>(json, true);
        check::<f64>(json, true);
        check::<i64>(json, false);
    }
    for json in [
        "01", "-01", "-", "1.", "1e", "+1", "1x", "", "x", "nul", "truex", "NaN", "1e999",
    ] {
        check::<Value>(json, false);
    }
    for json in ["true", "false", "null"] {
        check::<Value>(json, true);
        check::<Option<bool>>(json, true);
    }
    check::<()>("null", true);
    check::<bool>("null", false);
    check::<bool>("1", false);
    check::<String>("1", false);
    check::<char>(r#""a""#, true);
    check::<char>(r#""ab""#, false);
    check::<Option<Option<u8>>>("1", true);
}

#[test]
fn strings_are_as_in_serde_json() {
    let texts = [
        "",
        "a",
        "name",
        "12345678",
        "123456789",
        "<>&",
        "é",
        "日本",
        "\u{2028}",
        "😀",
        "a<b\u{2029}c",
        "\u{7f}",
    ];
    for text in texts {
        let plain = format!("\"{text}\"");
        check::<String>(&plain, true);
        check::<Value>(&plain, true);
        check::<Wrapped>(&plain, true);
    }
    let escaped = [
        r#""\"""#,
        r#""a\\""#,
        r#""\u003c\u2028""#,
        r#""\n\t\b\f\r\/""#,
        r#""\ud83d\ude00""#,
        r#""é\u00e9""#,
    ];
    for json in escaped {
        check::<String>(json, true);
        check::<BTreeMap<String, u8>>(&format!("{{{json}:1}}"), true);
    }
    for json in [
        "\"",
        "\"a",
        "\"\u{1}\"",
        "\"a\n\"",
        r#""\x""#,
        r#""\ud83d""#,
        r#""\"#,
        r#""\u12""#,
    ] {
        check::<String>(json, false);
    }
}

#[test]
fn lists_and_maps_are_as_in_serde_json() {
    for json in ["[]", "[1]", "[1,2,3]"] {
        check::<Vec<u8>>(json, true);
        check::<Value>(json, true);
    }
    check::<(u8, String)>(r#"[1,"a"]"#, true);
    check::<(u8, String)>(r#"[1,"a",2]"#, false);
    check::<[u8; 2]>("[1]", false);
    for json in ["{}", r#"{"a":1}"#, r#"{"a":1,"b":2}"#, r#"{"a":1,"a":2}"#] {
        check::<BTreeMap<String, u8>>(json, true);
        check::<BTreeMap<Wrapped, u8>>(json, true);
        check::<Value>(json, true);
    }
    for json in [
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[ 1]",
        "[1] ",
        " [1]",
        "[1}",
        "{",
        "{]",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"a": 1}"#,
        r#"{"a" :1}"#,
        r#"{a:1}"#,
        "{1:1}",
        "[]]",
        "{}{}",
    ] {
        check::<Value>(json, false);
        check::<BTreeMap<String, Value>>(json, false);
    }
    // Keys of other types are left to serde_json.
    check::<BTreeMap<u8, u8>>(r#"{"1":1}"#, false);
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    check::<Value>(&deep(MAX_DEPTH), true);
    check::<Value>(&deep(MAX_DEPTH + 1), false);
}

#[test]
fn types_are_as_in_serde_json() {
    check::<Fields>(r#"{"text":"a"}"#, true);
    check::<Fields>(
        r#"{"text":"a","number":null,"list":[{"text":"b","number":3}],"map":{"x":[1,{"y":null}]},"more":1.5}"#,
        true,
    );
    for json in [
        r#"{"number":1}"#,
        r#"{"text":1}"#,
        r#"{"text":"a","text":"b"}"#,
        r#"["a"]"#,
    ] {
        check::<Fields>(json, false);
    }
    for json in [
        r#""Unit""#,
        r#"{"Unit":null}"#,
        r#"{"New":"Unit"}"#,
        r#"{"New":{"New":{"Tuple":[1,"a"]}}}"#,
        r#"{"Fields":{"a":true}}"#,
    ] {
        check::<Variants>(json, true);
    }
    for json in [
        r#""Other""#,
        r#""New""#,
        r#"{"Tuple":[1]}"#,
        r#"{"New":"Unit","Unit":null}"#,
        "{}",
        "1",
    ] {
        check::<Variants>(json, false);
    }
    check::<BTreeMap<Wrapped, Variants>>(r#"{"a":"Unit"}"#, true);
    check::<Tagged>(r#"{"type":"a","a":1}"#, true);
    check::<Tagged>(r#"{"a":1,"type":"a"}"#, true);
    check::<Tagged>(r#"{"type":"b","x":1}"#, true);
    check::<Untagged>(r#"[1,"a",["b",2]]"#, true);
    check::<IntOrString>("1", true);
    check::<IntOrString>(r#""50%""#, true);
    for json in [r#"{"a":[1,"\u003c",null]}"#, "1.50", r#""a""#] {
        check::<Box<RawValue>>(json, true);
        check::<Vec<Box<RawValue>>>(&format!("[{json},1]"), true);
    }
}

#[test]
fn metadata_is_as_in_serde_json() {
    check::<ObjectMeta>(
        r#"{"name":"a","namespace":"b","uid":"c","resourceVersion":"12","generation":3,"creationTimestamp":"2023-11-14T22:08:20Z","labels":{"a":"b"},"annotations":{"x/y":"\u003cz\u003e"},"finalizers":["f/g"],"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true}],"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2023-11-14T22:08:20Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:size":{},"k:{\"a\":\"b\"}":{}}}}],"unknown":[{"a":{}}]}"#,
        true,
    );
    check::<ObjectMeta>(r#"{"generation":"a"}"#, false);
    check::<ObjectMeta>(r#"{"name":"a","name":"b"}"#, false);
}
