//! Event of events.k8s.io/v1, as a recorder writes it.

use apiloom_meta::{GroupVersion, MicroTime, ObjectMeta, Resource};
use serde::{Deserialize, Serialize};

/// The most bytes of a note that servers accept.
const MAX_NOTE: usize = 1024;
/// The most bytes of a reason, an action and a reporting instance.
const MAX_WORD: usize = 128;
/// The most bytes of the object's name in the name of its event, which gets a suffix and has at most 253.
const MAX_NAME: usize = 200;

/// What an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Group and version of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its namespace; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl ObjectReference {
    /// A reference to an object that was read from the server.
    pub fn to<K: Resource>(object: &K) -> Self {
        let metadata = object.metadata();
        Self {
            api_version: GroupVersion::new(K::GROUP, K::VERSION).to_string(),
            kind: K::KIND.to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }
}

/// Whether an event needs attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventType {
    /// It is as it should be.
    #[default]
    Normal,
    /// Something may be wrong.
    Warning,
}

/// How an event repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventSeries {
    /// How often it happened, the first time included.
    pub count: i32,
    /// When it happened last.
    pub last_observed_time: MicroTime,
}

/// An event as it is written. Its JSON has all fields that servers require.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// When it happened first.
    pub event_time: Option<MicroTime>,
    /// How it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<EventSeries>,
    /// The controller.
    pub reporting_controller: String,
    /// The process.
    pub reporting_instance: String,
    /// What the controller did, or tried.
    pub action: String,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// The object.
    pub regarding: ObjectReference,
    /// Another object that has to do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<ObjectReference>,
    /// A sentence for people.
    pub note: String,
    /// Whether it needs attention.
    #[serde(rename = "type")]
    pub event_type: EventType,
}

/// What a controller reports. Texts that are longer than servers accept are cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewEvent {
    /// Whether it needs attention.
    pub event_type: EventType,
    /// The object.
    pub regarding: ObjectReference,
    /// Another object that has to do with it.
    pub related: Option<ObjectReference>,
    /// Why, in one CamelCase word: `Scheduled`.
    pub reason: String,
    /// What the controller did, or tried, in one CamelCase word: `Binding`. The reason if it is empty.
    pub action: String,
    /// A sentence for people.
    pub note: String,
}

/// What makes two events one that repeats: all but the note and the times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey {
    event_type: EventType,
    regarding: ObjectReference,
    related: Option<ObjectReference>,
    reason: String,
    action: String,
}

impl NewEvent {
    pub(super) fn key(&self) -> SeriesKey {
        SeriesKey {
            event_type: self.event_type,
            regarding: self.regarding.clone(),
            related: self.related.clone(),
            reason: self.reason.clone(),
            action: self.action.clone(),
        }
    }

    /// The event as it is written. `number` differs between the events of a recorder.
    pub(super) fn into_event(
        self,
        controller: &str,
        instance: &str,
        time: MicroTime,
        number: u64,
    ) -> Event {
        let namespace = if self.regarding.namespace.is_empty() {
            // Events have a namespace; those of objects without one are here by convention.
            "default"
        } else {
            &*self.regarding.namespace
        };
        let name = dns_subdomain(cut(&self.regarding.name, MAX_NAME));
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(format!("{name}.{:x}.{number:x}", time.unix_micros())),
            ..ObjectMeta::default()
        };
        let action = if self.action.is_empty() {
            &self.reason
        } else {
            &self.action
        };
        Event {
            metadata,
            event_time: Some(time),
            series: None,
            reporting_controller: controller.to_owned(),
            reporting_instance: cut(instance, MAX_WORD).to_owned(),
            action: cut(action, MAX_WORD).to_owned(),
            reason: cut(&self.reason, MAX_WORD).to_owned(),
            regarding: self.regarding,
            related: self.related,
            note: cut(&self.note, MAX_NOTE).to_owned(),
            event_type: self.event_type,
        }
    }
}

/// A DNS subdomain that is like the name of an object, which may have other characters.
fn dns_subdomain(name: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '.') => c,
        _ => '-',
    };
    let name: String = name.chars().map(plain).collect();
    let labels = name.split('.').map(|label| label.trim_matches('-'));
    let labels: Vec<_> = labels.filter(|label| !label.is_empty()).collect();
    if labels.is_empty() {
        return "event".to_owned();
    }
    labels.join(".")
}

/// The start of a text, at most so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
