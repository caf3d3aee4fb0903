//! Messages whose fields are members of the object around them.

use serde_json::json;

use super::*;

static RULES: ProtobufMessage = ProtobufMessage::new("RuleWithOperations").fields(&[
    ProtobufField::new(1, "operations", List(&ProtobufType::Text)),
    ProtobufField::new(2, "rule", Message(|| &RULE)).flattened(),
    ProtobufField::new(3, "name", ProtobufType::Text),
]);
static RULE: ProtobufMessage = ProtobufMessage::new("Rule").fields(&[
    ProtobufField::new(1, "groups", List(&ProtobufType::Text)),
    ProtobufField::new(2, "inner", Message(|| &INNER)).flattened(),
    ProtobufField::new(4, "scope", ProtobufType::Text).sent(),
]);
static INNER: ProtobufMessage =
    ProtobufMessage::new("Inner").fields(&[ProtobufField::new(1, "count", Int64).always()]);

fn written(json: &Value) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let json = json.to_string();
    let is_exact = append_protobuf(json.as_bytes(), &RULES, &mut out).unwrap();
    (out, is_exact)
}

fn read(message: &[u8]) -> Value {
    let body = ProtobufBody {
        message,
        ..ProtobufBody::default()
    };
    let json = body.to_json(&RULES, InvalidText::Refuse, 1 << 16).unwrap();
    let mut read: Value = serde_json::from_slice(&json).unwrap();
    let members = read.as_object_mut().unwrap();
    members.remove("kind");
    members.remove("apiVersion");
    read
}

#[test]
fn the_members_of_a_flattened_message_are_one_field() {
    // In any order, between those of others.
    let json =
        json!({"scope": "*", "operations": ["A"], "count": 7, "name": "n", "groups": ["g", "h"]});
    let expected = [
        text(1, "A"),
        message(
            2,
            [
                text(1, "g"),
                text(1, "h"),
                message(2, [integer(1, 7)]),
                text(4, "*"),
            ],
        ),
        text(3, "n"),
    ]
    .concat();
    assert_eq!(written(&json), (expected.clone(), true));
    assert_eq!(read(&expected), json);
}

#[test]
fn a_flattened_message_is_written_and_read_also_without_members() {
    let (bytes, is_exact) = written(&json!({"name": "n"}));
    let rule = message(2, [message(2, [])]);
    assert_eq!(bytes, [rule, text(3, "n")].concat());
    // Back there is a count, which is always there.
    assert!(!is_exact);
    assert_eq!(read(&bytes), json!({"name": "n", "count": 0}));
    assert_eq!(read(&text(3, "n")), json!({"name": "n", "count": 0}));
    assert_eq!(read(b""), json!({"count": 0}));
    let mut normal = json!({"groups": [], "scope": null});
    assert!(RULES.normalize(normal.as_object_mut().unwrap()));
    assert_eq!(normal, json!({"count": 0}));
}

#[test]
fn a_flattened_message_that_is_sent_twice_or_late_is_merged() {
    let bytes = [
        text(3, "n"),
        message(2, [text(4, "a")]),
        text(1, "A"),
        message(2, [text(1, "g"), text(4, "b"), message(2, [integer(1, 3)])]),
    ]
    .concat();
    let expected =
        json!({"operations": ["A"], "groups": ["g"], "count": 3, "scope": "b", "name": "n"});
    assert_eq!(read(&bytes), expected);
}

#[test]
fn what_no_message_has_is_left_out() {
    let (bytes, is_exact) = written(&json!({"count": 1, "other": {"scope": "x"}}));
    assert_eq!(bytes, message(2, [message(2, [integer(1, 1)])]));
    assert!(!is_exact);
    // Not the name of the field, which JSON does not have.
    let (bytes, is_exact) = written(&json!({"count": 1, "rule": {"scope": "x"}}));
    assert_eq!(bytes, message(2, [message(2, [integer(1, 1)])]));
    assert!(!is_exact);
}
