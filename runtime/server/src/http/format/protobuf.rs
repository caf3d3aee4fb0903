//! Protobuf bodies of the few kinds whose wire form Kubernetes fixed: Go clients send them in no other format.
//!
//! `kubectl create namespace` sends a Namespace so, and typed clients their DeleteOptions. Such a body becomes the JSON
//! that the same client would have sent; everything behind sees JSON only. Field numbers are those of `generated.proto`.

use std::collections::BTreeMap;

use apiloom_meta::codec;
use apiloom_meta::{ApiError, Time};
use bytes::Bytes;
use prost::Message;
use serde_json::{Map, Value, json};

use super::write::{Format, Writer};

/// Protobuf, of requests only.
pub(crate) struct Protobuf;

impl Format for Protobuf {
    fn media_type(&self) -> &'static str {
        "application/vnd.kubernetes.protobuf"
    }
    fn read(&self, body: Bytes) -> Result<Option<(Bytes, codec::Format)>, ApiError> {
        Ok(to_json(&body)?.map(|json| (json, codec::Format::Json)))
    }
    fn writer(&self) -> Option<&'static dyn Writer> {
        None
    }
}

/// What every protobuf body of the API begins with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// The JSON of a protobuf body; `None` for a kind that has no protobuf form here.
///
/// # Errors
/// BadRequest when the body is not what it says it is.
fn to_json(body: &[u8]) -> Result<Option<Bytes>, ApiError> {
    let Some(enveloped) = body.strip_prefix(MAGIC) else {
        let message = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(ApiError::bad_request(message));
    };
    let unknown = Unknown::decode(enveloped).map_err(malformed)?;
    let TypeMeta { api_version, kind } = unknown.type_meta.unwrap_or_default();
    let fields = match (api_version.as_str(), kind.as_str()) {
        ("v1", "Namespace") => Namespace::decode(unknown.raw).map_err(malformed)?.fields(),
        (_, "DeleteOptions") => DeleteOptions::decode(unknown.raw)
            .map_err(malformed)?
            .fields(),
        _ => return Ok(None),
    };
    let mut object = fields.0;
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Ok(Some(Value::Object(object).to_string().into()))
}

#[allow(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn malformed(error: prost::DecodeError) -> ApiError {
    ApiError::bad_request(format!("the protobuf body cannot be decoded: {error}"))
}

/// The fields of a JSON object. Go writes empty strings, numbers and lists to the wire where JSON leaves them out.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let empty = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !empty {
            self.0.insert(name.to_owned(), value);
        }
        self
    }
    fn map(self, name: &str, map: BTreeMap<String, String>) -> Self {
        let map: Map<String, Value> = map.into_iter().map(|(k, v)| (k, Value::from(v))).collect();
        self.set(name, map)
    }
    fn time(self, name: &str, time: Option<Timestamp>) -> Self {
        // An empty message is how Go writes no time.
        let seconds = time
            .map(|time| time.seconds)
            .filter(|seconds| *seconds != 0);
        self.set(
            name,
            seconds.map(|seconds| Time::from_unix_seconds(seconds).to_string()),
        )
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Value::Object(fields.0)
    }
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    generate_name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "4")]
    self_link: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(int64, tag = "7")]
    generation: i64,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Timestamp>,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Timestamp>,
    #[prost(int64, optional, tag = "10")]
    deletion_grace_period_seconds: Option<i64>,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
    #[prost(message, repeated, tag = "17")]
    managed_fields: Vec<ManagedFieldsEntry>,
}

impl ObjectMeta {
    fn fields(self) -> Fields {
        let owners: Vec<Value> = self
            .owner_references
            .into_iter()
            .map(|owner| owner.fields().into())
            .collect();
        let managed: Vec<Value> = self
            .managed_fields
            .into_iter()
            .map(|entry| entry.fields().into())
            .collect();
        Fields::default()
            .set("name", self.name)
            .set("generateName", self.generate_name)
            .set("namespace", self.namespace)
            .set("selfLink", self.self_link)
            .set("uid", self.uid)
            .set("resourceVersion", self.resource_version)
            .set("generation", Some(self.generation).filter(|n| *n != 0))
            .time("creationTimestamp", self.creation_timestamp)
            .time("deletionTimestamp", self.deletion_timestamp)
            .set(
                "deletionGracePeriodSeconds",
                self.deletion_grace_period_seconds,
            )
            .map("labels", self.labels)
            .map("annotations", self.annotations)
            .set("ownerReferences", owners)
            .set("finalizers", self.finalizers)
            .set("managedFields", managed)
    }
}

#[derive(Clone, PartialEq, Message)]
struct OwnerReference {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(string, tag = "5")]
    api_version: String,
    #[prost(bool, optional, tag = "6")]
    controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    fn fields(self) -> Fields {
        let required = json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
        });
        Fields(required.as_object().cloned().unwrap_or_default())
            .set("controller", self.controller)
            .set("blockOwnerDeletion", self.block_owner_deletion)
    }
}

#[derive(Clone, PartialEq, Message)]
struct ManagedFieldsEntry {
    #[prost(string, tag = "1")]
    manager: String,
    #[prost(string, tag = "2")]
    operation: String,
    #[prost(string, tag = "3")]
    api_version: String,
    #[prost(message, optional, tag = "4")]
    time: Option<Timestamp>,
    #[prost(string, tag = "6")]
    fields_type: String,
    #[prost(message, optional, tag = "7")]
    fields_v1: Option<FieldsV1>,
    #[prost(string, tag = "8")]
    subresource: String,
}

#[derive(Clone, PartialEq, Message)]
struct FieldsV1 {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

impl ManagedFieldsEntry {
    fn fields(self) -> Fields {
        let fields = self
            .fields_v1
            .and_then(|f| serde_json::from_slice::<Value>(&f.raw).ok());
        Fields::default()
            .set("manager", self.manager)
            .set("operation", self.operation)
            .set("apiVersion", self.api_version)
            .time("time", self.time)
            .set("fieldsType", self.fields_type)
            .set("fieldsV1", fields)
            .set("subresource", self.subresource)
    }
}

#[derive(Clone, PartialEq, Message)]
struct Namespace {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<NamespaceSpec>,
    #[prost(message, optional, tag = "3")]
    status: Option<NamespaceStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct NamespaceSpec {
    #[prost(string, repeated, tag = "1")]
    finalizers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct NamespaceStatus {
    #[prost(string, tag = "1")]
    phase: String,
    #[prost(message, repeated, tag = "2")]
    conditions: Vec<NamespaceCondition>,
}

#[derive(Clone, PartialEq, Message)]
struct NamespaceCondition {
    #[prost(string, tag = "1")]
    condition_type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<Timestamp>,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(string, tag = "6")]
    message: String,
}

impl Namespace {
    fn fields(self) -> Fields {
        let metadata = self.metadata.unwrap_or_default().fields();
        let spec = Fields::default().set("finalizers", self.spec.unwrap_or_default().finalizers);
        let status = self.status.unwrap_or_default();
        let conditions: Vec<Value> = status
            .conditions
            .into_iter()
            .map(|condition| condition.fields().into())
            .collect();
        let status = Fields::default()
            .set("phase", status.phase)
            .set("conditions", conditions);
        Fields::default()
            .set("metadata", metadata)
            .set("spec", spec)
            .set("status", status)
    }
}

impl NamespaceCondition {
    fn fields(self) -> Fields {
        Fields::default()
            .set("type", self.condition_type)
            .set("status", self.status)
            .time("lastTransitionTime", self.last_transition_time)
            .set("reason", self.reason)
            .set("message", self.message)
    }
}

#[derive(Clone, PartialEq, Message)]
struct DeleteOptions {
    #[prost(int64, optional, tag = "1")]
    grace_period_seconds: Option<i64>,
    #[prost(message, optional, tag = "2")]
    preconditions: Option<Preconditions>,
    #[prost(bool, optional, tag = "3")]
    orphan_dependents: Option<bool>,
    #[prost(string, optional, tag = "4")]
    propagation_policy: Option<String>,
    #[prost(string, repeated, tag = "5")]
    dry_run: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Preconditions {
    #[prost(string, optional, tag = "1")]
    uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
}

impl DeleteOptions {
    fn fields(self) -> Fields {
        let preconditions = self.preconditions.unwrap_or_default();
        let preconditions = Fields::default()
            .set("uid", preconditions.uid)
            .set("resourceVersion", preconditions.resource_version);
        Fields::default()
            .set("gracePeriodSeconds", self.grace_period_seconds)
            .set("preconditions", preconditions)
            .set("orphanDependents", self.orphan_dependents)
            .set("propagationPolicy", self.propagation_policy)
            .set("dryRun", self.dry_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body as a client writes it.
    fn enveloped(api_version: &str, kind: &str, message: &impl Message) -> Vec<u8> {
        let type_meta = TypeMeta {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        let unknown = Unknown {
            type_meta: Some(type_meta),
            raw: message.encode_to_vec().into(),
        };
        [MAGIC.as_slice(), &unknown.encode_to_vec()].concat()
    }

    fn check(body: &[u8], expected: Value) {
        let got = to_json(body).expect("decodes").expect("has a form");
        assert_eq!(
            serde_json::from_slice::<Value>(&got).expect("is JSON"),
            expected
        );
    }

    #[test]
    fn what_kubectl_create_namespace_sends() {
        const SENT: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1b\x0a\x13\x0a\x03foo\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0\x12\0\x1a\x02\x0a\0\x1a\0\x22\0";
        check(
            SENT,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}}),
        );
    }

    #[test]
    fn every_field_of_a_namespace() {
        let text = |text: &str| text.to_owned();
        let metadata = ObjectMeta {
            name: text("n"),
            resource_version: text("7"),
            creation_timestamp: Some(Timestamp {
                seconds: 1_700_000_000,
            }),
            labels: [(text("a"), String::new())].into(),
            owner_references: vec![OwnerReference {
                uid: text("u"),
                controller: Some(false),
                ..Default::default()
            }],
            finalizers: vec![text("x/y")],
            ..Default::default()
        };
        let condition = NamespaceCondition {
            condition_type: text("T"),
            status: text("True"),
            ..Default::default()
        };
        let namespace = Namespace {
            metadata: Some(metadata),
            spec: Some(NamespaceSpec {
                finalizers: vec![text("kubernetes")],
            }),
            status: Some(NamespaceStatus {
                phase: text("Active"),
                conditions: vec![condition],
            }),
        };
        check(
            &enveloped("v1", "Namespace", &namespace),
            json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": "n",
                    "resourceVersion": "7",
                    "creationTimestamp": "2023-11-14T22:13:20Z",
                    "labels": {"a": ""},
                    "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": "u", "controller": false}],
                    "finalizers": ["x/y"],
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active", "conditions": [{"type": "T", "status": "True"}]},
            }),
        );
    }

    #[test]
    fn delete_options_of_any_version() {
        let options = DeleteOptions {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some("u".to_owned()),
                resource_version: None,
            }),
            propagation_policy: Some("Background".to_owned()),
            ..Default::default()
        };
        check(
            &enveloped("meta.k8s.io/v1", "DeleteOptions", &options),
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "propagationPolicy": "Background"}),
        );
    }

    #[test]
    fn what_is_no_protobuf_is_a_bad_request() {
        let error = to_json(b"{}").expect_err("refused");
        assert_eq!(
            error.message,
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        );
        assert!(to_json(b"k8s\0\xff\xff\xff").is_err());
    }

    #[test]
    fn other_kinds_have_no_protobuf_form() {
        let body = enveloped("g.io/v1", "Foo", &TypeMeta::default());
        assert_eq!(to_json(&body), Ok(None));
    }
}
