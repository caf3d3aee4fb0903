//! Decoding and encoding of JSON and YAML.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::*;
use crate::kind::ApiType;
use crate::object::Object;
use crate::schema::Schema;
use crate::types::{IntOrString, MicroTime, ObjectMeta, Time};

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
    single: Option<f32>,
    on: Option<bool>,
    #[serde(default)]
    ports: Vec<Port>,
    #[serde(default)]
    names: Vec<String>,
    free: Option<serde_json::Map<String, Value>>,
    at: Option<Time>,
    precisely: Option<MicroTime>,
    target: Option<IntOrString>,
    written: Option<String>,
}

/// The form of names in the crates of Kubernetes' types.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[schemars(rename = "io.k8s.api.core.v1.Port")]
struct Port {
    name: String,
    port: Option<u16>,
}

impl ApiType for ConfigMap {}

fn schema() -> Schema {
    Schema::for_resource::<ConfigMap>().expect("structural")
}

fn decoded(body: &str) -> DecodedDocument {
    Decoder::of(&schema())
        .decode(body.as_bytes())
        .expect("decodes")
}

fn refused(body: &str) -> String {
    Decoder::of(&schema())
        .decode(body.as_bytes())
        .expect_err("does not decode")
        .to_string()
}

#[test]
fn unknown_and_duplicate_fields_are_told_in_document_order() {
    let body = r#"{"metadata":{"foo":1,"annotations":{"a.b/c":"x","a.b/c":"y"}},"data":{"k":"1","k":"2"},"bogus":{"x":[1]},
        "spec":{"ports":[{"name":"a"},{"name":"b","nme":1}],"free":{"x":{"y":1,"y":2}}},"bogus":1}"#;
    let DecodedDocument { value, strict } = decoded(body);
    assert_eq!(
        strict,
        [
            r#"unknown field "metadata.foo""#,
            r#"duplicate field "metadata.annotations.a.b/c""#,
            r#"duplicate field "data.k""#,
            r#"unknown field "bogus""#,
            r#"unknown field "spec.ports[1].nme""#,
        ]
    );
    let expected = json!({"metadata":{"annotations":{"a.b/c":"y"}},"data":{"k":"2"},"spec":{"ports":[{"name":"a"},{"name":"b"}],"free":{"x":{"y":2}}}});
    assert_eq!(value, expected);
}

#[test]
fn duplicates_in_values_of_any_type_are_told_for_yaml_alone() {
    let body = r#"{"spec": {"free": {"x": {"y": 1, "y": [{"z": 1, "z": 2}]}, "x": 1}}}"#;
    let yaml = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(body.as_bytes())
        .expect("decodes");
    assert_eq!(decoded(body).strict, [r#"duplicate field "spec.free.x""#]);
    assert_eq!(
        yaml.strict,
        ["z", "y", "x"].map(|key| format!("line 1: key \"{key}\" already set in map"))
    );
    assert_eq!(decoded(body).value, yaml.value);
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
            "json: cannot unmarshal string into Go struct field Spec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":3000000000}}"#,
            "json: cannot unmarshal number 3000000000 into Go struct field Spec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field Spec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"target":3000000000}}"#,
            "json: cannot unmarshal number 3000000000 into Go struct field Spec.spec.target of type intstr.IntOrString",
        ),
        (
            r#"{"spec":{"single":1e39}}"#,
            "json: cannot unmarshal number 1e+39 into Go struct field Spec.spec.single of type float32",
        ),
        (
            r#"{"spec":{"replicas":18446744073709551616}}"#,
            "json: cannot unmarshal number 18446744073709552000 into Go struct field Spec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1e400}}"#,
            "json: cannot unmarshal number 1e400 into Go value of type float64",
        ),
        (
            "{\"spec\":\n{\"replicas\": -1.5E+400 }}",
            "json: cannot unmarshal number -1.5E+400 into Go value of type float64",
        ),
        (
            "-1e999",
            "json: cannot unmarshal number -1e999 into Go value of type float64",
        ),
        (
            r#"{"spec":{"ports":[{"port":-1}]}}"#,
            "json: cannot unmarshal number -1 into Go struct field Port.spec.ports.port of type uint16",
        ),
        (
            r#"{"spec":{"ports":{}}}"#,
            "json: cannot unmarshal object into Go struct field Spec.spec.ports of type []v1.Port",
        ),
        (
            r#"{"spec":{"on":[[]]}}"#,
            "json: cannot unmarshal array into Go struct field Spec.spec.on of type bool",
        ),
        (
            r#"[]"#,
            "json: cannot unmarshal array into Go value of type ConfigMap",
        ),
        (
            r#"{"metadata":{"name":5}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
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
            "invalid character '}' in literal true (expecting 'e')",
        ),
        (
            "falsch",
            "invalid character 'c' in literal false (expecting 'e')",
        ),
        (
            "[nil]",
            "invalid character 'i' in literal null (expecting 'u')",
        ),
        (
            "{\"a\": t\nrue}",
            "invalid character '\\n' in literal true (expecting 'r')",
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
    let text = String::from_utf8(Encoder::of(&schema()).object(&object).to_vec()).expect("UTF-8");
    assert_eq!(
        text,
        concat!(
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u","creationTimestamp":"2026-11-21T09:28:46Z","labels":{}},"#,
            r#""spec":{"ratio":1e+21,"replicas":1},"data":{"a":"","b":"\u003c\u0026\u003e\u2028\n\u0001"#,
            "\u{7f}\"}}"
        )
    );
}

fn yaml(text: &str) -> Value {
    Decoder::new(Format::Yaml)
        .value(text.as_bytes())
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn yaml_is_read_as_kubernetes_reads_it() {
    for (text, expected) in [
        ("a: 0644", json!({"a":420})),
        ("a: 0o17", json!({"a":15})),
        ("a: 0x1f", json!({"a":31})),
        (
            "a: yes\nb: Off\nc: 'no'\nd: true",
            json!({"a":true,"b":false,"c":"no","d":true}),
        ),
        ("a: ~\nb:\nc: null", json!({"a":null,"b":null,"c":null})),
        ("a: 1.0\nb: 1e3\nc: 1.5", json!({"a":1,"b":1000,"c":1.5})),
        (
            "a: |\n  x\n  y\nb: >-\n  x\n  y",
            json!({"a":"x\ny\n","b":"x y"}),
        ),
        ("a: &x {b: 1}\nc: *x", json!({"a":{"b":1},"c":{"b":1}})),
        (
            "x: &x {b: 1}\nc:\n  <<: *x\n  d: 2",
            json!({"x":{"b":1},"c":{"b":1,"d":2}}),
        ),
        ("1: a\ntrue: b", json!({"1":"a","true":"b"})),
        ("a: 2026-11-21", json!({"a":"2026-11-21"})),
        ("a: 12:30:45", json!({"a":"12:30:45"})),
        ("# comment\n---\na: 1\n---\nb: 2", json!({"a":1})),
        ("a: 1\n...\ngarbage: [", json!({"a":1})),
        ("---\n---\nb: 2", json!(null)),
        ("%YAML 1.2\n---\na: 1", json!({"a":1})),
        ("{\"a\": [1, \"x\"]}", json!({"a":[1,"x"]})),
        (
            "a: |\n  --- no marker\n  ...\n",
            json!({"a":"--- no marker\n...\n"}),
        ),
        ("", json!(null)),
    ] {
        assert_eq!(yaml(text), expected, "{text:?}");
    }
}

#[test]
fn json_that_is_sent_as_yaml_is_read_as_yaml() {
    for text in [
        r#"{"a":1.0,"b":1e3,"c":1.5,"d":-0,"e":-0.0,"f":18446744073709551615,"g":1e400}"#,
        r#"{"a":123456789012345678901,"b":0.1,"c":-1e21,"d":1e21}"#,
        r#"{"yes":"on","014":"014","~":null,"<<":{"x":1},"1":true,"":""}"#,
        r#"{"a":"\u003c\/\n\ud83d\ude00","b":"\ud800","c":"2026-11-21","d":"0x1f"}"#,
        "{\"a\":[[],{},[{\"b\":[null]}]],\n\t\"c\": \"---\"\r\n}\n",
        r#"{"a":1,"a":2}"#,
        r#"{"a":1} x"#,
        r#"{"a":1"#,
        "{\"a\":1}\n---\n{\"a\":2}",
        "{a: 1, b: [c]}",
        r#"{"spec":{"replicas":1.0,"bogus":1,"ports":[{"name":null,"port":"x"}]}}"#,
        r#"{"spec":{"replicas":1,"ports":[{"name":"a","port":1e1}]},"data":{"a":null}}"#,
    ] {
        // A document that does not begin with a brace is never read as JSON.
        let yaml = format!(" {text}");
        let shown = |body: &str, schema: Option<&Schema>| {
            let decoded = match schema {
                Some(schema) => Decoder::new(Format::Yaml)
                    .schema(schema)
                    .decode(body.as_bytes()),
                None => Decoder::new(Format::Yaml).decode(body.as_bytes()),
            };
            match decoded {
                Ok(decoded) => format!("{} {:?}", decoded.value, decoded.strict),
                Err(error) => error.to_string(),
            }
        };
        for schema in [None, Some(&schema())] {
            assert_eq!(shown(text, schema), shown(&yaml, schema), "{text}");
        }
    }
}

#[test]
fn yaml_tells_duplicates_by_line_and_then_unknown_fields_by_path() {
    let text = "spec:\n  replicas: 1\n  bogus: 2\n  replicas: 3\n  bogus: {x: 1, x: 2}\ndata:\n  k: a\n  k: b\nbogus: 1\n";
    let DecodedDocument { value, strict } = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(text.as_bytes())
        .expect("decodes");
    assert_eq!(value, json!({"spec":{"replicas":3},"data":{"k":"b"}}));
    assert_eq!(
        strict,
        [
            r#"line 4: key "replicas" already set in map"#,
            r#"line 5: key "x" already set in map"#,
            r#"line 5: key "bogus" already set in map"#,
            r#"line 8: key "k" already set in map"#,
            r#"unknown field "bogus""#,
            r#"unknown field "spec.bogus""#,
        ]
    );
}

#[test]
fn yaml_tells_no_unknown_fields_of_what_a_duplicate_replaces() {
    let text = "spec:\n  bogus: 1\n  ports: [{bogus: 1}]\nspec:\n  odd: 1\n";
    let decoded = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(text.as_bytes())
        .expect("decodes");
    assert_eq!(
        decoded.strict,
        [
            r#"line 4: key "spec" already set in map"#,
            r#"unknown field "spec.odd""#
        ]
    );
}

#[test]
fn yaml_tells_keys_that_are_no_strings_without_quotes() {
    for (keys, told) in [
        ("y, yes", "true"),
        ("n, n", "false"),
        ("1, 0x1", "1"),
        ("-7, -7", "-7"),
        ("1.5, 1.5", "1.5"),
        ("'1', '1'", "\"1\""),
        ("\"true\", \"true\"", "\"true\""),
    ] {
        let (first, second) = keys.split_once(", ").expect("two keys");
        let text = format!("data:\n  {first}: a\n  {second}: b\n");
        let decoded = Decoder::new(Format::Yaml)
            .schema(&schema())
            .decode(text.as_bytes())
            .expect("decodes");
        let expected = format!("line 3: key {told} already set in map");
        assert_eq!(decoded.strict, [expected], "{text}");
    }
}

#[test]
fn broken_yaml_names_the_line() {
    for text in ["a: [1", "a: b: c", "a:\n\t- b", "a: 'x", "a: *nowhere"] {
        let error = Decoder::new(Format::Yaml)
            .value(text.as_bytes())
            .expect_err(text)
            .to_string();
        let line = if text.contains('\t') { 2 } else { 1 };
        assert!(
            error.starts_with(&format!(
                "error converting YAML to JSON: yaml: line {line}: "
            )),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn types_are_checked_in_yaml_too() {
    let error = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(b"data:\n  k: 1\n")
        .expect_err("a number");
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    );
}

#[test]
fn deep_documents_need_half_of_a_stack_at_most() {
    // Threads of tokio have 2 MiB, some of which a request handler has used.
    let half = std::thread::Builder::new().stack_size(1 << 20).spawn(bombs);
    half.expect("a thread").join().expect("no panic");
}

fn bombs() {
    let schema = schema();
    let nest =
        |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    for (text, format) in [
        (nest("[", "]", 100_000), Format::Json),
        (nest("{\"a\":", "}", 100_000), Format::Json),
        (
            format!("{{\"bogus\":{}}}", nest("[", "]", 100_000)),
            Format::Json,
        ),
        (
            format!(
                "{{\"spec\":{{\"free\":{{\"x\":{}}}}}}}",
                nest("[", "]", 100_000)
            ),
            Format::Json,
        ),
        (nest("[", "]", 100_000), Format::Yaml),
        (nest("{a: ", "}", 100_000), Format::Yaml),
        (format!("bogus: {}", nest("[", "]", 1_000)), Format::Yaml),
        (
            (0..200).map(|i| format!("{}a:\n", " ".repeat(i))).collect(),
            Format::Yaml,
        ),
        (
            (1..200).fold("a0: &a0 []\n".to_owned(), |text, i| {
                text + &format!("a{i}: &a{i} [*a{}]\n", i - 1)
            }),
            Format::Yaml,
        ),
        ("- ".repeat(100_000), Format::Yaml),
    ] {
        let error = Decoder::new(format)
            .schema(&schema)
            .decode(text.as_bytes())
            .expect_err("too deep")
            .to_string();
        assert_eq!(error, "exceeded max depth", "{}", &text[..8]);
        assert!(Decoder::new(format).value(text.as_bytes()).is_err());
    }
    let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for i in 1..12 {
        let refs = vec![format!("*a{}", i - 1); 9].join(",");
        laughs.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
    }
    Decoder::new(Format::Yaml)
        .value(laughs.as_bytes())
        .expect_err("an alias bomb");
    assert!(
        Decoder::new(Format::Json)
            .value(nest("[", "]", 127).as_bytes())
            .is_ok()
    );
    assert!(
        Decoder::new(Format::Yaml)
            .value(nest("[", "]", 127).as_bytes())
            .is_ok()
    );
}

#[test]
fn many_problems_are_cut_at_a_hundred_and_told_once() {
    let fields = (0..300)
        .map(|i| format!("\"u{i}\":1"))
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(decoded(&format!("{{{fields}}}")).strict.len(), 100);
    assert_eq!(decoded(r#"{"x":1,"x":2}"#).strict, [r#"unknown field "x""#]);
}

// With the whole path in each error, a body of 3 MB had a response of 600 MB.
#[test]
fn problems_below_a_long_key_are_told_in_few_bytes() {
    let key = "k".repeat(100_000);
    let twice = (0..200).map(|i| format!("\"d{i}\":1,\"d{i}\":1"));
    let twice = twice.collect::<Vec<_>>().join(",");
    let free = format!("{{\"spec\":{{\"free\":{{\"{key}\":{{{twice}}}}}}}}}");
    let freely = Decoder::new(Format::Json)
        .decode(free.as_bytes())
        .expect("decodes");
    let strict = freely.strict;
    // Texts truncated at the same position are equal.
    assert_eq!(strict.len(), 1);
    assert!(
        strict[0].starts_with("duplicate field \"spec.free.kkk"),
        "{strict:?}"
    );
    assert!(
        strict[0].ends_with("kkk...\"") && strict[0].len() < 1100,
        "{strict:?}"
    );
    let free = format!("{{\"data\":{{\"{key}\":1}}}}");
    let problem = refused(&free);
    assert!(problem.len() < 1200, "{problem}");
    let yaml = format!("data:\n  {key}: a\n  {key}: b\n").replace(&key, "k");
    let line = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(yaml.as_bytes())
        .expect("decodes");
    assert_eq!(line.strict, ["line 3: key \"k\" already set in map"]);
}

// A body of 1 MB became an object of 61 MB.
#[test]
fn aliases_are_bounded_while_they_are_expanded() {
    let long = "x".repeat(MAX_EXPANDED_BYTES / 4);
    let aliases = |count: usize| {
        let lines: String = (0..count).map(|i| format!("  k{i}: *long\n")).collect();
        format!("data:\n  long: &long {long}\n{lines}")
    };
    let decode = |yaml: &str| {
        Decoder::new(Format::Yaml)
            .schema(&schema())
            .decode(yaml.as_bytes())
    };
    assert!(decode(&aliases(2)).is_ok());
    assert_eq!(decode(&aliases(60)), Err(DecodeError::TooLarge));
    let free = Decoder::new(Format::Yaml).value(aliases(60).as_bytes());
    assert_eq!(free, Err(DecodeError::TooLarge));
    // Merged fields count too.
    let many = |of: &str| vec![of; 60].join(", ");
    let merges = format!(
        "spec:\n  free:\n    a: &a {{k: {long}}}\n    b: [{}]\n",
        many("{<<: *a}")
    );
    assert_eq!(decode(&merges), Err(DecodeError::TooLarge));
}

// A chain of 127 merges, 4 KB, took 1.5 s.
#[test]
fn merge_keys_are_bounded_with_those_that_aliases_repeat() {
    let chain = |length: usize| {
        let links = (1..length).map(|at| format!("m{at}: &m{at}\n  <<: *m{}\n", at - 1));
        format!("m0: &m0 {{a: 1}}\n{}", links.collect::<String>())
    };
    let tree = |height: usize| {
        let levels = (1..height).map(|at| {
            let below = at - 1;
            format!("m{at}: &m{at}\n  <<: [*m{below}, *m{below}]\n")
        });
        format!("m0: &m0 {{a: 1}}\n{}", levels.collect::<String>())
    };
    let flat = |count: usize| {
        let users = (0..count).map(|at| format!("m{at}: {{<<: *x, b: 2}}\n"));
        format!("x: &x {{a: 1}}\n{}", users.collect::<String>())
    };
    for (yaml, is_taken) in [
        (chain(10), true),
        (chain(20), false),
        (chain(127), false),
        (tree(4), true),
        (tree(15), false),
        (flat(100), true),
        (flat(101), false),
    ] {
        let decoded = Decoder::new(Format::Yaml).value(yaml.as_bytes());
        let refused = DecodeError::Syntax(
            "error converting YAML to JSON: yaml: more than 100 merge keys (<<)".to_owned(),
        );
        assert_eq!(decoded.err(), (!is_taken).then_some(refused), "{yaml}");
    }
}

// Many services in a manifest may share a part of it; a limit of 100 aliases refused it.
#[test]
fn aliases_are_not_counted_by_themselves() {
    let users: String = (0..2_000).map(|at| format!("m{at}: *x\n")).collect();
    let yaml = format!("x: &x {{a: 1}}\n{users}");
    assert!(Decoder::new(Format::Yaml).value(yaml.as_bytes()).is_ok());
}

// Manifests may begin with many lines of comments; more than 32 were refused.
#[test]
fn yaml_may_have_many_comments_in_a_row() {
    let comments = "  # a comment\n".repeat(1_000);
    let yaml = format!("data:\n{comments}  k: v\n");
    let decoded = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(yaml.as_bytes())
        .expect("decodes");
    assert_eq!(decoded.value, json!({"data": {"k": "v"}}));
}

#[test]
fn a_document_in_memory_is_decoded_like_bytes() {
    let document = json!({"data":{"k":null},"bogus":1,"spec":{"ratio":2.0}});
    let decoded = Decoder::of(&schema()).document(document).expect("decodes");
    assert_eq!(decoded.value, json!({"data":{"k":""},"spec":{"ratio":2}}));
    assert_eq!(decoded.strict, [r#"unknown field "bogus""#]);
}

#[test]
fn free_json_cannot_pass_for_wrapped_json() {
    let wrapped = "{\"$serde_json::private::RawValue\":\"[1]\"}";
    let text = "json: a field cannot have the name \"$serde_json::private::RawValue\"";
    for free in [wrapped, &format!("{{\"a\":[{wrapped}]}}")] {
        assert_eq!(refused(&format!("{{\"spec\":{{\"free\":{free}}}}}")), text);
    }
    // A map with a declared type has it like any other key.
    let data = format!("{{\"data\":{wrapped}}}");
    assert_eq!(
        decoded(&data).value["data"]["$serde_json::private::RawValue"],
        "[1]"
    );
    let value = Decoder::new(Format::Json)
        .value(wrapped.as_bytes())
        .expect("decodes");
    assert_eq!(Encoder::json(&value), wrapped.as_bytes());
}

#[test]
fn escapes_are_found_wherever_they_stand() {
    for code in (0..0x300).chain(0x2000..0x2100).filter_map(char::from_u32) {
        let escaped = match code {
            '"' | '\\' => format!("\\{code}"),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                format!("\\u{:04x}", u32::from(code))
            }
            plain => plain.to_string(),
        };
        for before in 0..18 {
            for behind in [0, 1, 9] {
                let (before, behind) = ("é".repeat(before), "z".repeat(behind));
                let text = format!("x{before}{code}{code}{behind}");
                let expected = format!("\"x{before}{escaped}{escaped}{behind}\"");
                assert_eq!(Encoder::json(&text), expected.as_bytes());
                assert_eq!(
                    Encoder::json(&json!({ &text: &text })),
                    format!("{{{expected}:{expected}}}").as_bytes()
                );
            }
        }
    }
}

#[test]
fn numbers_are_printed_as_go_prints_them() {
    for (value, expected) in [
        (json!(1.0), "1"),
        (json!(1e20), "100000000000000000000"),
        (json!(1e21), "1e+21"),
        (json!(1.5e300), "1.5e+300"),
        (json!(0.000001), "0.000001"),
        (json!(0.0000001), "1e-7"),
        (json!(-0.1), "-0.1"),
        (json!(u64::MAX), "18446744073709551615"),
    ] {
        assert_eq!(Encoder::json(&value), expected, "{value}");
    }
}

#[test]
fn indentation_does_not_depend_on_where_pieces_end() {
    let json = br#"{"a":[],"b":[{},{"c":"}\\\"{,:"}],"d":{"e":{}},"f":[1,[2]]}"#;
    let whole = Indenter::indent(json);
    for end in 0..=json.len() {
        let mut indenter = Indenter::default();
        let mut out = Vec::new();
        indenter.append(&json[..end], &mut out);
        indenter.append(&json[end..], &mut out);
        assert_eq!(Bytes::from(out), whole, "{end}");
    }
}

#[test]
fn indentation_is_that_of_go() {
    let indented = Indenter::indent(br#"{"a":{},"b":[],"c":[1,{"d":"{\"x\":[,]}"}],"e":"\\"}"#);
    let expected = "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"{\\\"x\\\":[,]}\"\n    }\n  ],\n  \"e\": \"\\\\\"\n}";
    assert_eq!(indented, expected);
}

#[test]
fn times_are_kept_in_utc_with_the_precision_of_their_type() {
    let sent = "2026-11-21T10:28:46.1234567+01:00";
    let body = json!({"metadata": {"creationTimestamp": sent}, "spec": {"at": sent, "precisely": sent, "written": sent}});
    assert_eq!(
        decoded(&body.to_string()).value,
        json!({
            "metadata": {"creationTimestamp": "2026-11-21T09:28:46Z"},
            "spec": {"at": "2026-11-21T09:28:46Z", "precisely": "2026-11-21T09:28:46.123456Z", "written": sent},
        })
    );
}

#[test]
fn minus_zero_is_a_good_integer() {
    // serde_json decodes `-0` as a float, since its integers have no negative zero.
    for format in [Format::Json, Format::Yaml] {
        let decoded = Decoder::new(format)
            .schema(&schema())
            .decode(b"{\"spec\": {\"replicas\": -0}}");
        assert_eq!(
            decoded.expect("decodes").value,
            json!({"spec":{"replicas":0}})
        );
    }
}

#[test]
fn a_whole_number_of_yaml_may_be_written_as_a_fraction() {
    // Kubernetes converts YAML to JSON first, where 1.0 and 1e3 become 1 and 1000.
    let text = "spec:\n  replicas: 1e3\n  ports:\n  - {name: a, port: 80.0}\n";
    let decoded = Decoder::new(Format::Yaml)
        .schema(&schema())
        .decode(text.as_bytes())
        .expect("decodes");
    assert_eq!(
        decoded.value,
        json!({"spec":{"replicas":1000,"ports":[{"name":"a","port":80}]}})
    );
    for (number, format) in [("1.5", Format::Yaml), ("1.0", Format::Json)] {
        let body = format!("{{\"spec\":{{\"replicas\":{number}}}}}");
        let error = Decoder::new(format)
            .schema(&schema())
            .decode(body.as_bytes())
            .expect_err("no integer");
        assert_eq!(
            error.to_string(),
            format!(
                "json: cannot unmarshal number {number} into Go struct field Spec.spec.replicas of type int32"
            )
        );
    }
}

#[test]
fn keys_and_words_of_yaml_are_read_as_go_reads_them() {
    for (text, expected) in [
        ("{yes: a, on: b, n: c}", json!({"true":"b","false":"c"})),
        ("{'yes': a, \"on\": b}", json!({"yes":"a","on":"b"})),
        (
            "{014: a, 0x10: b, 1e3: c, 1.50: d, -0: e}",
            json!({"12":"a","16":"b","1000":"c","1.5":"d","0":"e"}),
        ),
        ("{'014': a, '1e3': b}", json!({"014":"a","1e3":"b"})),
        (
            "[y, Yes, ON, n, False, off]",
            json!([true, true, true, false, false, false]),
        ),
    ] {
        assert_eq!(yaml(text), expected, "{text}");
    }
    let error = Decoder::new(Format::Yaml)
        .value(b"{~: a}")
        .expect_err("no key");
    assert!(error.to_string().contains("a key that is"), "{error}");
}
