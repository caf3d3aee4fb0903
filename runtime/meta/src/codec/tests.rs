use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::json;

use super::*;
use crate::kind::ApiType;
use crate::types::ObjectMeta;

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-apiloom-order" = ["metadata", "spec", "data"]))]
struct ConfigMap {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
    spec: Option<Spec>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[serde(rename_all = "camelCase")]
struct Spec {
    replicas: Option<i32>,
    ratio: Option<f64>,
    on: Option<bool>,
    #[serde(default)]
    ports: Vec<Port>,
    #[serde(default)]
    names: Vec<String>,
    free: Option<serde_json::Map<String, Value>>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
struct Port {
    name: String,
    port: Option<u16>,
}

impl ApiType for ConfigMap {}

fn schema() -> Schema {
    Schema::for_resource::<ConfigMap>().expect("structural")
}

fn decoded(body: &str) -> Decoded {
    decode(body.as_bytes(), Format::Json, &schema()).expect("decodes")
}

fn refused(body: &str) -> String {
    decode(body.as_bytes(), Format::Json, &schema())
        .expect_err("does not decode")
        .to_string()
}

#[test]
fn unknown_and_duplicate_fields_are_told_in_document_order() {
    let body = r#"{"metadata":{"foo":1,"annotations":{"a.b/c":"x","a.b/c":"y"}},"data":{"k":"1","k":"2"},"bogus":{"x":[1]},
        "spec":{"ports":[{"name":"a"},{"name":"b","nme":1}],"free":{"x":{"y":1,"y":2}}},"bogus":1}"#;
    let Decoded { value, strict } = decoded(body);
    assert_eq!(
        strict,
        [
            r#"unknown field "metadata.foo""#,
            r#"duplicate field "metadata.annotations.a.b/c""#,
            r#"duplicate field "data.k""#,
            r#"unknown field "bogus""#,
            r#"unknown field "spec.ports[1].nme""#,
            r#"duplicate field "spec.free.x.y""#,
        ]
    );
    let expected = json!({"metadata":{"annotations":{"a.b/c":"y"}},"data":{"k":"2"},"spec":{"ports":[{"name":"a"},{"name":"b"}],"free":{"x":{"y":2}}}});
    assert_eq!(value, expected);
}

#[test]
fn null_is_absent_in_a_field_and_zero_in_a_list_or_map() {
    let body = r#"{"spec":{"replicas":null,"names":["a",null],"ports":[null],"free":{"x":null}},"data":{"k":null}}"#;
    assert_eq!(
        decoded(body).value,
        json!({"spec":{"names":["a",""],"ports":[{}],"free":{"x":null}},"data":{"k":""}})
    );
}

#[test]
fn values_of_another_type_name_field_and_types() {
    for (body, expected) in [
        (
            r#"{"data":1}"#,
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            r#"{"data":{"a":1}}"#,
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            r#"{"spec":{"replicas":"x"}}"#,
            "json: cannot unmarshal string into Go struct field ConfigMap.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":3000000000}}"#,
            "json: cannot unmarshal number 3000000000 into Go struct field ConfigMap.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field ConfigMap.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1e400}}"#,
            "json: number out of range",
        ),
        (
            r#"{"spec":{"ports":[{"port":-1}]}}"#,
            "json: cannot unmarshal number -1 into Go struct field ConfigMap.spec.ports.port of type uint16",
        ),
        (
            r#"{"spec":{"ports":{}}}"#,
            "json: cannot unmarshal object into Go struct field ConfigMap.spec.ports of type []Port",
        ),
        (
            r#"{"spec":{"on":[[]]}}"#,
            "json: cannot unmarshal array into Go struct field ConfigMap.spec.on of type bool",
        ),
        (
            r#"[]"#,
            "json: cannot unmarshal array into Go value of type ConfigMap",
        ),
        (
            r#"{"metadata":{"name":5}}"#,
            "json: cannot unmarshal number into Go struct field ConfigMap.metadata.name of type string",
        ),
    ] {
        assert_eq!(refused(body), expected, "{body}");
    }
}

#[test]
fn syntax_errors_speak_go() {
    for (body, expected) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        (r#"{"data":1"#, "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        (
            r#"{"data":x}"#,
            "invalid character 'x' looking for beginning of value",
        ),
        ("{} x", "invalid character 'x' after top-level value"),
        (r#"{"a" 1}"#, "invalid character '1' after object key"),
        (
            r#"{"data":{} "b"}"#,
            "invalid character '\"' after object key:value pair",
        ),
        (
            r#"{"data":{},}"#,
            "invalid character '}' looking for beginning of object key string",
        ),
        (
            "{a:1}",
            "invalid character 'a' looking for beginning of object key string",
        ),
        (r#"[1 2]"#, "invalid character '2' after array element"),
        (
            "{\"a\":\"\n\"}",
            "invalid character '\\n' in string literal",
        ),
        (
            r#"{"data":1, "spec": tru}"#,
            "invalid character '}' in literal",
        ),
    ] {
        assert_eq!(refused(body), expected, "{body}");
    }
}

#[test]
fn objects_come_out_in_declared_order_with_the_escapes_of_go() {
    let value = json!({"spec":{"ratio":1e21,"replicas":1},"data":{"b":"<&>\u{2028}\n\u{1}\u{7f}","a":""},"kind":"ConfigMap","apiVersion":"v1",
        "metadata":{"uid":"u","labels":{},"name":"n","creationTimestamp":"2026-11-21T09:28:46Z"}});
    let object = Object::from_value(value).expect("an object");
    let text = String::from_utf8(encode_object(&object, &schema()).to_vec()).expect("UTF-8");
    assert_eq!(
        text,
        concat!(
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u","creationTimestamp":"2026-11-21T09:28:46Z","labels":{}},"#,
            r#""spec":{"ratio":1e+21,"replicas":1},"data":{"a":"","b":"\u003c\u0026\u003e\u2028\n\u0001"#,
            "\u{7f}\"}}"
        )
    );
}
