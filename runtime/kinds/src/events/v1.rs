//! Version v1 of the group events.k8s.io.

use apiloom_macros::resource;
use apiloom_meta::{ConvertFrom as _, MicroTime, ObjectMeta, Time};

use crate::core::v1::{self as core, EventSeries, EventSource, ObjectReference};

/// Event reports what happened to an object. It is the same object as the Event of the core group of the same name, with
/// stricter rules for writes.
#[resource(group = "events.k8s.io", version = "v1", namespaced, crate = apiloom_meta, proto(package = "k8s.io.api.events.v1"), stored_as = core::Event,
    shortname = "ev", generation = none, create_on_update = true, strategic_merge_patch,
    deletion(dependents = unsupported),
    selectable(regarding.kind, regarding.namespace, regarding.name, regarding.uid, regarding.api_version,
        regarding.resource_version, regarding.field_path, reason, reporting_controller,
        source = [deprecated_source.component, reporting_controller], event_type),
    printcolumn(name = "Last Seen", with = |event: &Event| event.as_core()?.last_seen(), doc = "How long ago it happened last."),
    printcolumn(name = "Type", path = event_type, doc = "Normal or Warning."),
    printcolumn(name = "Reason", path = reason, doc = "Why it happened, in one word."),
    printcolumn(name = "Object", with = |event: &Event| Some(event.as_core()?.object()), doc = "The object that it is about."),
    printcolumn(name = "Subobject", path = regarding.field_path, wide, doc = "The part of the object."),
    printcolumn(name = "Source", with = |event: &Event| Some(event.as_core()?.origin()), wide, doc = "Who reports it."),
    printcolumn(name = "Message", with = |event: &Event| Some(event.as_core()?.trimmed_message()), doc = "What happened, for people."),
    printcolumn(name = "First Seen", with = |event: &Event| event.as_core()?.first_seen(), wide, doc = "How long ago it happened first."),
    printcolumn(name = "Count", with = |event: &Event| Some(event.as_core()?.times()), wide, doc = "How often it happened."),
    printcolumn(name = "Name", path = metadata.name, format = "name", wide, doc = "The name of the event."))]
#[derive(Default)]
pub struct Event {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// When it happened. Required.
    #[api(proto = 2, nullable, default = None)]
    pub event_time: Option<MicroTime>,
    /// How it repeats, if it does.
    #[api(proto = 3)]
    pub series: Option<EventSeries>,
    /// The controller that reports the event, such as `kubernetes.io/kubelet`. Required.
    #[api(proto(number = 4, omit_empty))]
    pub reporting_controller: Option<String>,
    /// The instance of the controller. Required, at most 128 bytes.
    #[api(proto(number = 5, omit_empty))]
    pub reporting_instance: Option<String>,
    /// What was done about the object, or what failed. Required, at most 128 bytes.
    #[api(proto(number = 6, omit_empty))]
    pub action: Option<String>,
    /// Why it was done, for people. Required, at most 128 bytes.
    #[api(proto(number = 7, omit_empty))]
    pub reason: Option<String>,
    /// The object that the event is about, mostly that which the controller works on.
    #[api(proto = 8, default = ObjectReference::default(), convert(rename = involved_object))]
    pub regarding: ObjectReference,
    /// A second object, if the action needs one.
    #[api(proto = 9)]
    pub related: Option<ObjectReference>,
    /// What happened, for people. At most 1024 bytes.
    #[api(proto(number = 10, omit_empty), convert(rename = message))]
    pub note: Option<String>,
    /// Normal or Warning. Required.
    #[api(proto(number = 11, omit_empty), json = "type")]
    pub event_type: Option<String>,
    /// The field `source` of the core group's Event.
    #[api(proto = 12, default = EventSource::default(), convert(rename = source))]
    pub deprecated_source: EventSource,
    /// The field `firstTimestamp` of the core group's Event.
    #[api(proto = 13, nullable, default = None, convert(rename = first_timestamp))]
    pub deprecated_first_timestamp: Option<Time>,
    /// The field `lastTimestamp` of the core group's Event.
    #[api(proto = 14, nullable, default = None, convert(rename = last_timestamp))]
    pub deprecated_last_timestamp: Option<Time>,
    /// The field `count` of the core group's Event.
    #[api(proto(number = 15, omit_empty), convert(rename = count))]
    pub deprecated_count: Option<i32>,
}

impl Event {
    /// The event of the core group; cannot fail, since all fields have their names alone changed.
    fn as_core(&self) -> Option<core::Event> {
        core::Event::convert_from(self.clone()).ok()
    }
}
