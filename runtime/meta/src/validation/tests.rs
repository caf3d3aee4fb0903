//! Tests of the validation of metadata.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const UNQUALIFIED: &str = "name is neither a standard finalizer name nor is it fully qualified";

fn object(metadata: Value) -> Object {
    Object::from_value(json!({ "metadata": metadata })).unwrap()
}

/// A valid object with these additional fields in its metadata.
fn with(fields: Value) -> Object {
    let mut metadata = json!({"name": "a", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-11-21T09:28:46Z", "generation": 3});
    json_patch::merge(&mut metadata, &fields);
    object(metadata)
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(fields: Value, expected: &[&str]) {
    let object = with(fields);
    let mut errors = validate_create(&object, Scope::Namespaced, NameFormat::DnsSubdomain);
    errors.extend(unqualified_finalizer_errors(&object));
    assert_eq!(texts(&errors), expected);
}

#[track_caller]
fn check_update(old: Value, new: Value, expected: &[&str]) {
    let new = with(new);
    let mut errors = validate_update(&new, &with(old));
    errors.extend(unqualified_finalizer_errors(&new));
    assert_eq!(texts(&errors), expected);
}

#[track_caller]
fn check_name(metadata: Value, format: NameFormat, expected: &[&str]) {
    assert_eq!(
        texts(&validate_create(&object(metadata), Scope::Cluster, format)),
        expected
    );
}

#[test]
fn a_good_object_has_no_errors() {
    check(json!({}), &[]);
    check(
        json!({
            "labels": {"app.example.com/x": "Y_1", "e": ""},
            "annotations": {"Example.COM/x": "any text\n"},
            "finalizers": ["example.com/hold", "orphan", "kubernetes"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "D", "name": "d", "uid": "u", "controller": true}],
            "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}],
        }),
        &[],
    );
}

#[test]
fn names_follow_the_format_of_the_kind() {
    check_name(
        json!({"name": "A_b"}),
        NameFormat::DnsSubdomain,
        &[&format!(
            "metadata.name: Invalid value: \"A_b\": {SUBDOMAIN}"
        )],
    );
    check_name(json!({"name": "a.b"}), NameFormat::DnsSubdomain, &[]);
    check_name(
        json!({"name": "a.b"}),
        NameFormat::DnsLabel,
        &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
    );
    check_name(json!({"name": "system:A b"}), NameFormat::PathSegment, &[]);
    check_name(
        json!({"name": "a/b"}),
        NameFormat::PathSegment,
        &["metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    );
    check_name(
        json!({"name": "a%b"}),
        NameFormat::PathSegment,
        &["metadata.name: Invalid value: \"a%b\": may not contain '%'"],
    );
    check_name(
        json!({"name": "."}),
        NameFormat::PathSegment,
        &["metadata.name: Invalid value: \".\": may not be '.'"],
    );
    check_name(
        json!({"name": ".."}),
        NameFormat::PathSegment,
        &["metadata.name: Invalid value: \"..\": may not be '..'"],
    );
}

#[test]
fn a_name_is_required() {
    let required = "metadata.name: Required value: name or generateName is required";
    check_name(json!({}), NameFormat::DnsSubdomain, &[required]);
    check_name(json!({"name": ""}), NameFormat::PathSegment, &[required]);
    assert_eq!(
        texts(&validate_create(
            &Object::default(),
            Scope::Cluster,
            NameFormat::DnsLabel
        )),
        [required]
    );
}

#[test]
fn a_prefix_may_end_in_dashes() {
    for good in ["a-", "a--", "a", "0.b-"] {
        check_name(
            json!({"name": "a", "generateName": good}),
            NameFormat::DnsSubdomain,
            &[],
        );
    }
    for bad in ["-", "A", "_a-", "é-"] {
        let text = format!("metadata.generateName: Invalid value: \"{bad}\": {SUBDOMAIN}");
        check_name(
            json!({"name": "a", "generateName": bad}),
            NameFormat::DnsSubdomain,
            &[&text],
        );
    }
    check_name(
        json!({"name": "a", "generateName": ".."}),
        NameFormat::PathSegment,
        &[],
    );
}

#[test]
fn the_namespace_fits_the_scope() {
    check(
        json!({"namespace": null}),
        &["metadata.namespace: Required value"],
    );
    check(
        json!({"namespace": "a.b"}),
        &["metadata.namespace: Invalid value: \"a.b\": must not contain dots"],
    );
    check_name(
        json!({"name": "a", "namespace": "x"}),
        NameFormat::DnsSubdomain,
        &["metadata.namespace: Forbidden: not allowed on this type"],
    );
}

#[test]
fn generation_is_not_negative() {
    check(
        json!({"generation": -1}),
        &["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
    );
}

#[test]
fn labels_have_keys_and_values_of_their_grammars() {
    check(
        json!({"labels": {"-x": "y"}}),
        &[&format!("metadata.labels: Invalid value: \"-x\": {KEY}")],
    );
    let long = "v".repeat(64);
    check(
        json!({"labels": {"x": long}}),
        &[&format!(
            "metadata.labels: Invalid value: \"{long}\": must be no more than 63 bytes"
        )],
    );
}

#[test]
fn a_hundred_bad_labels_are_told() {
    let labels: Value = (0..1000).map(|i| (format!("-{i}"), json!("-"))).collect();
    let object = with(json!({ "labels": labels }));
    assert_eq!(
        validate_create(&object, Scope::Namespaced, NameFormat::DnsLabel).len(),
        100
    );
}

#[test]
fn annotations_have_keys_and_a_size() {
    check(
        json!({"annotations": {"a b": ""}}),
        &[&format!(
            "metadata.annotations: Invalid value: \"a b\": {KEY}"
        )],
    );
    check(
        json!({"annotations": {"a": "x".repeat(ANNOTATIONS_MAX_BYTES - 1)}}),
        &[],
    );
    check(
        json!({"annotations": {"a": "x".repeat(ANNOTATIONS_MAX_BYTES)}}),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn owners_are_named_whole() {
    check(
        json!({"ownerReferences": [{"apiVersion": "apps/", "kind": "", "name": "", "uid": ""}]}),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"apps/\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    check(
        json!({"ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]}),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
        ],
    );
}

#[test]
fn an_event_owns_nothing() {
    check(
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]}),
        &[
            r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner"#,
        ],
    );
}

#[test]
fn one_owner_is_the_controller() {
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "X", "name": name, "uid": "u", "controller": true});
    let shown = r#"[{"apiVersion":"v1","kind":"X","name":"a","uid":"u","controller":true},{"apiVersion":"v1","kind":"X","name":"b","uid":"u","controller":true}]"#;
    let detail = "Only one reference can have Controller set to true. Found \"true\" in references for X/a and X/b";
    check(
        json!({"ownerReferences": [owner("a"), owner("b")]}),
        &[&format!(
            "metadata.ownerReferences: Invalid value: {shown}: {detail}"
        )],
    );
}

#[test]
fn finalizers_are_qualified_names() {
    check(
        json!({"finalizers": ["hold"]}),
        &[&format!(
            "metadata.finalizers[0]: Invalid value: \"hold\": {UNQUALIFIED}"
        )],
    );
    check(
        json!({"finalizers": ["orphan", "a b"]}),
        &[
            &format!("metadata.finalizers: Invalid value: \"a b\": {KEY}"),
            &format!("metadata.finalizers[1]: Invalid value: \"a b\": {UNQUALIFIED}"),
        ],
    );
    check(
        json!({"finalizers": ["orphan", "foregroundDeletion"]}),
        &[
            r#"metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#,
        ],
    );
}

#[test]
fn added_finalizers_without_a_domain_are_warned_of() {
    let with = |finalizers: &[&str]| with(json!({ "finalizers": finalizers }));
    let new = with(&["z", "orphan", "example.com/hold", "a", "b c"]);
    let advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
    assert_eq!(
        finalizer_warnings(&new, Some(&with(&["z"]))),
        [
            format!("metadata.finalizers: \"a\": {advice}"),
            format!("metadata.finalizers: \"b c\": {KEY}"),
            format!("metadata.finalizers: \"b c\": {advice}"),
        ]
    );
    assert_eq!(
        finalizer_warnings(&with(&["z"]), None),
        [format!("metadata.finalizers: \"z\": {advice}")]
    );
    let advice = advice.replace(" name ", " name including a path (/) ");
    assert_eq!(
        finalizer_warnings(&with(&["ex.io"]), None),
        [format!("metadata.finalizers: \"ex.io\": {advice}")]
    );
}

#[test]
fn managed_fields_say_who_and_how() {
    check(
        json!({"managedFields": [{"operation": "Update"}, {"operation": "Patch", "fieldsType": "X", "manager": "a\nb", "subresource": "s".repeat(257)}]}),
        &[
            "metadata.managedFields[1].operation: Invalid value: \"Patch\": must be `Apply` or `Update`",
            "metadata.managedFields[1].fieldsType: Invalid value: \"X\": must be `FieldsV1`",
            "metadata.managedFields[1].manager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
            "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
        ],
    );
    let path = FieldPath::new("fieldManager");
    assert_eq!(
        texts(&field_manager_errors(&"m".repeat(129), &path)),
        ["fieldManager: Too long: may not be more than 128 bytes"]
    );
    assert_eq!(
        texts(&field_manager_errors("kubectl é-1", &path)),
        Vec::<String>::new()
    );
}

#[test]
fn identity_and_creation_time_cannot_change() {
    check_update(json!({}), json!({}), &[]);
    check_update(
        json!({}),
        json!({"name": "b", "namespace": "other", "uid": null, "creationTimestamp": "2026-11-21T09:28:47Z"}),
        &[
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.namespace: Invalid value: \"other\": field is immutable",
            "metadata.uid: Invalid value: \"\": field is immutable",
            "metadata.creationTimestamp: Invalid value: \"2026-11-21T09:28:47Z\": field is immutable",
        ],
    );
    check_update(
        json!({}),
        json!({"creationTimestamp": null}),
        &["metadata.creationTimestamp: Invalid value: null: field is immutable"],
    );
    check_update(
        json!({}),
        json!({"creationTimestamp": "2026-11-21T10:28:46+01:00"}),
        &[],
    );
}

#[test]
fn generation_may_not_decrease() {
    check_update(json!({}), json!({"generation": 4}), &[]);
    check_update(
        json!({}),
        json!({"generation": 2}),
        &["metadata.generation: Invalid value: 2: must not be decremented"],
    );
}

#[test]
fn no_finalizers_are_added_to_what_is_being_deleted() {
    let deleting = |finalizers: &[&str]| json!({"deletionTimestamp": "2026-11-21T09:30:00Z", "finalizers": finalizers});
    check_update(
        json!({"finalizers": ["a.b/x"]}),
        json!({"finalizers": ["a.b/x", "a.b/y"]}),
        &[],
    );
    check_update(deleting(&["a.b/x", "a.b/y"]), deleting(&["a.b/y"]), &[]);
    let text = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers";
    check_update(
        deleting(&["a.b/x"]),
        deleting(&["a.b/x", "a.b/y"]),
        &[&format!("{text} []string{{\"a.b/y\"}}")],
    );
    check_update(
        deleting(&[]),
        deleting(&["a.b/z", "a.b/y", "a.b/z"]),
        &[&format!("{text} []string{{\"a.b/y\", \"a.b/z\"}}")],
    );
}

#[test]
fn a_deletion_cannot_be_taken_back_or_moved() {
    let deleting =
        json!({"deletionTimestamp": "2026-11-21T09:30:00Z", "deletionGracePeriodSeconds": 0});
    check_update(deleting.clone(), deleting.clone(), &[]);
    check_update(
        deleting.clone(),
        json!({}),
        &[
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable",
        ],
    );
    check_update(
        deleting,
        json!({"deletionTimestamp": "2026-11-21T09:31:00Z", "deletionGracePeriodSeconds": 5}),
        &[
            "metadata.deletionTimestamp: Invalid value: \"2026-11-21T09:31:00Z\": field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        ],
    );
}

#[test]
fn an_update_is_checked_like_a_creation() {
    check_update(
        json!({}),
        json!({"labels": {"-x": ""}}),
        &[&format!("metadata.labels: Invalid value: \"-x\": {KEY}")],
    );
    check_update(
        json!({}),
        json!({"finalizers": ["hold"]}),
        &[&format!(
            "metadata.finalizers[0]: Invalid value: \"hold\": {UNQUALIFIED}"
        )],
    );
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!(["a", 1, null, {}])),
        Just(json!({"a": 1, "b": "c", "d": []})),
    ]
}

proptest! {
    #[test]
    fn metadata_of_any_type_is_survived(values in prop::collection::vec(anything(), 11), whole in anything()) {
        let fields = ["name", "generateName", "namespace", "generation", "creationTimestamp", "deletionTimestamp", "labels", "annotations",
            "ownerReferences", "finalizers", "managedFields"];
        let metadata: Value = fields.iter().map(|f| (*f).to_owned()).zip(values).collect();
        for object in [object(metadata), object(whole)] {
            let _ = validate_create(&object, Scope::Namespaced, NameFormat::DnsLabel);
            let _ = validate_update(&object, &Object::default());
            let _ = validate_update(&Object::default(), &object);
        }
    }
}
