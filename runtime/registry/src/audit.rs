//! What the audit of a request records of it (KEP-22, `audit.k8s.io/v1`): collected by those that serve the request, read by the auditor
//! of the server, which knows the policy and writes the events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use apiloom_meta::codec::{self, Encoder};
use apiloom_meta::schema::{Schema, conceal, conceal_steps};
use apiloom_meta::{Object, Status};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::UserInfo;

/// How much an audit records of a request (`level`), in rising order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Nothing.
    #[default]
    None,
    /// Who asked for what, when, and how it ended.
    Metadata,
    /// The document of the request too.
    Request,
    /// The document of the response too.
    RequestResponse,
}

impl AuditLevel {
    /// All levels, in their order.
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::Metadata,
        Self::Request,
        Self::RequestResponse,
    ];

    /// Its name in policies and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The memory that documents of requests in flight may have for their audit, all together. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AuditRoom(Arc<Semaphore>);

impl AuditRoom {
    /// A room of so many bytes, rounded down to KiB.
    pub fn new(bytes: usize) -> Self {
        let kib = (bytes / 1024).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(kib)))
    }

    /// Takes room for so many bytes until the share is dropped; `None` if there is not so much.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1024)).ok()?;
        Arc::clone(&self.0).try_acquire_many_owned(kib).ok()
    }
}

/// What a document that is still being written has of the room.
#[derive(Debug, Default)]
pub struct AuditShare(Option<OwnedSemaphorePermit>);

/// A document of a request or a response, as JSON.
pub struct AuditedDocument {
    json: Vec<u8>,
    _share: OwnedSemaphorePermit,
}

impl AuditedDocument {
    /// The JSON.
    pub fn json(&self) -> &[u8] {
        &self.json
    }
}

/// Without the document.
impl fmt::Debug for AuditedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditedDocument")
            .field("bytes", &self.json.len())
            .finish_non_exhaustive()
    }
}

/// Which object a request is about, as far as its document says what its path does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditedObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name; empty if the server is to generate it.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
}

/// A key or a value of an annotation: most are the same for all requests.
pub type AnnotationText = Cow<'static, str>;

/// What is known of a request so far, beside what came with its head.
#[derive(Debug, Default)]
pub struct AuditNotes {
    /// Annotations of the event, by keys such as `authorization.k8s.io/decision`.
    pub annotations: BTreeMap<AnnotationText, AnnotationText>,
    /// The user that the request is executed as, if that is another one than the one that sent it, and the verb of the constrained
    /// impersonation that allowed it.
    pub impersonated: Option<(Arc<UserInfo>, Option<String>)>,
    /// What its document says of its object.
    pub object: AuditedObject,
    /// The document of the request.
    pub request: Option<AuditedDocument>,
    /// The document of the response.
    pub response: Option<AuditedDocument>,
    /// The Status of the response, if it is one.
    pub status: Option<Status>,
}

/// The annotation of an event from which documents were left out because they are too large.
pub const TRUNCATED: &str = "audit.k8s.io/truncated";

/// What the audit of one request records. Shared by those that serve it.
#[derive(Debug)]
pub struct AuditRecord {
    level: AuditLevel,
    omits_managed_fields: bool,
    conceals_errors: AtomicBool,
    room: AuditRoom,
    notes: Mutex<AuditNotes>,
    /// Every stream of the request holds a receiver until it ends. Most requests have none.
    streams: OnceLock<watch::Sender<()>>,
}

/// Keeps a request from being complete for its audit: its streams go on behind its response.
#[derive(Debug)]
pub struct AuditHold(#[expect(dead_code, reason = "held until it is dropped")] watch::Receiver<()>);

impl AuditRecord {
    /// The record of a request at this level, whose documents have a share of this room.
    pub fn new(level: AuditLevel, omits_managed_fields: bool, room: AuditRoom) -> Self {
        Self {
            level,
            omits_managed_fields,
            conceals_errors: AtomicBool::new(false),
            room,
            notes: Mutex::default(),
            streams: OnceLock::new(),
        }
    }

    /// How much is recorded.
    pub fn level(&self) -> AuditLevel {
        self.level
    }

    /// What is known so far.
    pub fn notes(&self) -> MutexGuard<'_, AuditNotes> {
        self.notes.lock()
    }

    /// Adds an annotation to the event. A key keeps its first value: another one is logged and dropped.
    pub fn annotate(&self, key: impl Into<AnnotationText>, value: impl Into<AnnotationText>) {
        let (key, value) = (key.into(), value.into());
        match self.notes().annotations.entry(key) {
            Entry::Vacant(place) => drop(place.insert(value)),
            Entry::Occupied(kept) if *kept.get() == value => {}
            Entry::Occupied(kept) => tracing::warn!(
                key = &**kept.key(),
                "an audit annotation is set to a second value, which is dropped"
            ),
        }
    }

    /// Notes as whom the request is executed, and by which constrained verb.
    pub fn impersonate(&self, user: &Arc<UserInfo>, constraint: Option<String>) {
        self.notes().impersonated = Some((Arc::clone(user), constraint));
    }

    /// Notes the object of the request's body, before defaults and admission.
    pub fn note_object(&self, object: &Object, schema: &Schema) {
        let identity = AuditedObject {
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
        };
        let document = (self.level >= AuditLevel::Request).then(|| {
            let json = Encoder::of(schema).object(object);
            self.document(json.into(), Some(schema))
        });
        let mut notes = self.notes();
        notes.object = identity;
        notes.request = document.flatten();
    }

    /// Notes options, or another body that has no secrets. One that is malformed has nothing to show.
    pub fn note_body(&self, body: &[u8], format: codec::Format) {
        self.note_concealed(body, format, |_| {});
    }

    /// Notes a document with a part of an object of this schema: a merge patch, or an apply.
    pub fn note_patch(&self, patch: &[u8], format: codec::Format, schema: &Schema) {
        self.note_concealed(patch, format, |patch| conceal(schema, patch));
    }

    /// Notes the steps of a JSON patch of an object of this schema.
    pub fn note_steps(&self, steps: &[u8], schema: &Schema) {
        self.note_concealed(steps, codec::Format::Json, |steps| {
            conceal_steps(schema, steps);
        });
    }

    fn note_concealed(&self, body: &[u8], format: codec::Format, conceal: impl FnOnce(&mut Value)) {
        if self.level < AuditLevel::Request {
            return;
        }
        if let Ok(mut body) = codec::Decoder::new(format).value(body) {
            conceal(&mut body);
            let document = self.shown(body);
            self.notes().request = document;
        }
    }

    /// Notes that the request is about a kind with secret values: errors about what it sends may repeat them.
    pub fn conceal_errors(&self) {
        self.conceals_errors.store(true, Ordering::Relaxed);
    }

    /// Notes that the response is a Status.
    pub fn note_status(&self, status: &Status) {
        /// The reasons of errors that repeat what was sent.
        const REPEATING: [&str; 2] = ["BadRequest", "Invalid"];
        let mut status = status.clone();
        let repeats = REPEATING.contains(&&*status.reason);
        if repeats && self.conceals_errors.load(Ordering::Relaxed) {
            "the text is left out: it may have secret values".clone_into(&mut status.message);
            if let Some(details) = &mut status.details {
                details.causes.clear();
            }
        }
        let document = self
            .records_responses()
            .then(|| self.document(Encoder::json(&status).into(), None));
        let mut notes = self.notes();
        notes.status = Some(status);
        notes.response = document.flatten();
    }

    /// Whether the documents of responses are recorded.
    pub fn records_responses(&self) -> bool {
        self.level >= AuditLevel::RequestResponse
    }

    /// Notes the document of the response, as JSON: an object of this schema, a list or a table of such, or their metadata.
    pub fn note_response(&self, json: Vec<u8>, schema: &Schema) {
        if self.records_responses() {
            let document = self.document(json, Some(schema));
            self.notes().response = document;
        }
    }

    /// Notes that a document was left out, because it is too large.
    pub fn truncate(&self) {
        self.annotate(TRUNCATED, "true");
    }

    /// Whether there is room for a document that has so many bytes by now, of which this is the share. Else the document must be left out.
    pub fn grow(&self, share: &mut AuditShare, bytes: usize) -> bool {
        let has = share
            .0
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(1024).saturating_sub(has);
        if missing == 0 {
            return true;
        }
        match (self.room.take(missing * 1024), &mut share.0) {
            (None, _) => return false,
            (Some(more), Some(share)) => share.merge(more),
            (more, share) => *share = more,
        }
        true
    }

    /// Keeps the request from being complete until the hold is dropped.
    pub fn hold(&self) -> AuditHold {
        let streams = self.streams.get_or_init(|| watch::channel(()).0);
        AuditHold(streams.subscribe())
    }

    /// Whether there is a hold.
    pub fn is_held(&self) -> bool {
        let streams = self.streams.get();
        streams.is_some_and(|streams| streams.receiver_count() > 0)
    }

    /// Completes when there is no hold.
    pub async fn released(&self) {
        if let Some(streams) = self.streams.get() {
            streams.closed().await;
        }
    }

    /// A document that the server has made, and that may end with a new line.
    fn document(&self, mut json: Vec<u8>, schema: Option<&Schema>) -> Option<AuditedDocument> {
        let secret = schema.filter(|schema| schema.has_sensitive());
        if secret.is_none() && !self.omits_managed_fields {
            json.truncate(json.trim_ascii_end().len());
            return self.with_share(json);
        }
        let mut document = serde_json::from_slice(&json).ok()?;
        if let Some(schema) = secret {
            conceal_response(schema, &mut document);
        }
        self.shown(document)
    }

    /// A document whose secrets are concealed, without its managed fields if that is wanted.
    fn shown(&self, mut document: Value) -> Option<AuditedDocument> {
        if self.omits_managed_fields {
            for_each_object(&mut document, &mut drop_managed_fields);
        }
        let json = serde_json::to_vec(&document).ok()?;
        self.with_share(json)
    }

    fn with_share(&self, json: Vec<u8>) -> Option<AuditedDocument> {
        let Some(share) = self.room.take(json.len()) else {
            self.truncate();
            return None;
        };
        Some(AuditedDocument {
            json,
            _share: share,
        })
    }
}

fn conceal_response(schema: &Schema, response: &mut Value) {
    for_each_object(response, &mut |object| conceal(schema, object));
    for row in response
        .get_mut("rows")
        .into_iter()
        .flat_map(Value::as_array_mut)
        .flatten()
    {
        // A cell may be of a secret value.
        if let Some(cells) = row.get_mut("cells") {
            *cells = Value::Array(Vec::new());
        }
    }
}

/// Calls a function with each object of a document: itself, or the items of a list, or the objects of a table's rows.
fn for_each_object(document: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    let kind = document.get("kind").and_then(Value::as_str);
    // A list has no name; a kind may be called one.
    let is_nameless = document.pointer("/metadata/name").is_none();
    let is_list = is_nameless && kind.is_some_and(|kind| kind.ends_with("List"));
    let is_table = kind == Some("Table");
    if is_list && let Some(Value::Array(items)) = document.get_mut("items") {
        items.iter_mut().for_each(change);
    } else if is_table && let Some(Value::Array(rows)) = document.get_mut("rows") {
        let objects = rows.iter_mut().filter_map(|row| row.get_mut("object"));
        objects.for_each(change);
    } else {
        change(document);
    }
}

fn drop_managed_fields(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use apiloom_meta::kind::Hooks;
    use serde_json::json;

    use super::*;

    const ROOM: usize = 8 * 1024;

    fn schema() -> Schema {
        let data = json!({"type": "object", "additionalProperties": {"type": "string"}, "x-apiloom-sensitive": true});
        let metadata = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let document = json!({"type": "object", "properties": {
            "metadata": metadata,
            "data": data,
            "a": {"type": "string"},
        }});
        Schema::from_json(&document, &Hooks::default()).unwrap()
    }

    fn record(level: AuditLevel, omits_managed_fields: bool) -> AuditRecord {
        AuditRecord::new(level, omits_managed_fields, AuditRoom::new(ROOM))
    }

    fn shown(document: Option<&AuditedDocument>) -> Value {
        document.map_or(Value::Null, |document| {
            serde_json::from_slice(document.json()).unwrap()
        })
    }

    #[test]
    fn documents_are_recorded_from_their_level_on() {
        let object = Object::from_value(json!({"metadata": {"name": "a", "uid": "1"}})).unwrap();
        for level in AuditLevel::ALL {
            let record = record(level, false);
            record.note_object(&object, &schema());
            record.note_response(b"{}".to_vec(), &schema());
            let notes = record.notes();
            assert_eq!(notes.object.name, "a");
            assert_eq!(notes.request.is_some(), level >= AuditLevel::Request);
            let has_response = level == AuditLevel::RequestResponse;
            assert_eq!(notes.response.is_some(), has_response, "{level:?}");
        }
    }

    #[test]
    fn lists_and_tables_show_no_secret_and_no_managed_fields() {
        let object =
            || json!({"metadata": {"name": "a", "managedFields": [{}]}, "data": {"a": "cat"}});
        let item = json!({"metadata": {"name": "a"}, "data": null});
        let check = |response: &Value, expected: &Value| {
            let record = record(AuditLevel::RequestResponse, true);
            record.note_response(response.to_string().into_bytes(), &schema());
            assert_eq!(shown(record.notes().response.as_ref()), *expected);
        };
        check(&object(), &item);
        check(
            &json!({"kind": "SecretList", "items": [object()]}),
            &json!({"kind": "SecretList", "items": [item]}),
        );
        check(
            &json!({"kind": "Table", "rows": [{"cells": ["cat"], "object": object()}]}),
            &json!({"kind": "Table", "rows": [{"cells": [], "object": item}]}),
        );
    }

    #[test]
    fn what_has_no_room_is_left_out_and_said() {
        let schema = schema();
        let record = record(AuditLevel::RequestResponse, false);
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(ROOM)).into_bytes();
        record.note_patch(&large, codec::Format::Json, &schema);
        let notes = record.notes();
        assert!(notes.request.is_none());
        assert_eq!(notes.annotations[TRUNCATED], "true");
        drop(notes);
        let half = format!("{{\"a\":\"{}\"}}", "x".repeat(ROOM / 2));
        let room = record.room.clone();
        record.note_body(half.as_bytes(), codec::Format::Json);
        assert!(room.0.available_permits() < ROOM / 1024);
        drop(record);
        assert_eq!(room.0.available_permits(), ROOM / 1024);
    }

    #[test]
    fn a_growing_document_takes_its_room_step_by_step() {
        let record = record(AuditLevel::RequestResponse, false);
        let room = record.room.clone();
        let mut share = AuditShare::default();
        for (bytes, left) in [(1, 7), (1024, 7), (1025, 6), (8 * 1024, 0)] {
            assert!(record.grow(&mut share, bytes));
            assert_eq!(room.0.available_permits(), left, "{bytes}");
        }
        assert!(!record.grow(&mut share, 8 * 1024 + 1));
        drop(share);
        assert_eq!(room.0.available_permits(), 8);
    }

    #[test]
    fn errors_about_secret_values_show_none() {
        let error = |reason: &str| {
            let mut status = Status::of_message("Invalid value: \"cat\"".to_owned());
            reason.clone_into(&mut status.reason);
            status
        };
        for (reason, is_shown) in [
            ("Invalid", false),
            ("BadRequest", false),
            ("NotFound", true),
        ] {
            let record = record(AuditLevel::RequestResponse, false);
            record.conceal_errors();
            record.note_status(&error(reason));
            let notes = record.notes();
            let message = &notes.status.as_ref().unwrap().message;
            assert_eq!(message.contains("cat"), is_shown, "{reason}");
            let response = shown(notes.response.as_ref()).to_string();
            assert_eq!(response.contains("cat"), is_shown, "{reason}");
        }
        let open = record(AuditLevel::Metadata, false);
        open.note_status(&error("Invalid"));
        assert!(
            open.notes()
                .status
                .as_ref()
                .unwrap()
                .message
                .contains("cat")
        );
    }

    #[test]
    fn an_annotation_keeps_its_first_value() {
        let record = record(AuditLevel::Metadata, false);
        record.annotate("a", "1");
        record.annotate("a", "2");
        assert_eq!(record.notes().annotations["a"], "1");
    }

    #[tokio::test]
    async fn a_request_is_complete_when_its_streams_have_ended() {
        let record = record(AuditLevel::Metadata, false);
        assert!(!record.is_held());
        let hold = record.hold();
        assert!(record.is_held());
        drop(hold);
        record.released().await;
    }
}
