//! Event of the core group.

use apiloom_macros::{api, resource};
use apiloom_meta::{MicroTime, ObjectMeta, Time};

use super::ObjectReference;

/// Event reports what happened to an object. Events are kept for a limited time, and are not complete: do not rely on
/// them for decisions.
#[resource(group = "", version = "v1", namespaced, storage, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), shortname = "ev", generation = none, strategic_merge_patch,
    name_format = path_segment, create_on_update = true, deletion(dependents = unsupported),
    selectable(involved_object.kind, involved_object.namespace, involved_object.name, involved_object.uid,
        involved_object.api_version, involved_object.resource_version, involved_object.field_path, reason,
        reporting_controller, source = [source.component, reporting_controller], event_type),
    printcolumn(name = "Last Seen", with = Event::last_seen, doc = "How long ago it happened last."),
    printcolumn(name = "Type", path = event_type, doc = "Normal or Warning."),
    printcolumn(name = "Reason", path = reason, doc = "Why it happened, in one word."),
    printcolumn(name = "Object", with = Event::object, doc = "The object that it is about."),
    printcolumn(name = "Subobject", path = involved_object.field_path, wide, doc = "The part of the object."),
    printcolumn(name = "Source", with = Event::origin, wide, doc = "Who reports it."),
    printcolumn(name = "Message", with = Event::trimmed_message, doc = "What happened, for people."),
    printcolumn(name = "First Seen", with = Event::first_seen, wide, doc = "How long ago it happened first."),
    printcolumn(name = "Count", with = Event::times, wide, doc = "How often it happened."),
    printcolumn(name = "Name", path = metadata.name, format = "name", wide, doc = "The name of the event."))]
#[derive(Default)]
pub struct Event {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The object that the event is about.
    #[api(proto = 2, default = ObjectReference::default())]
    pub involved_object: ObjectReference,
    /// Why it happened, in one CamelCase word, for programs.
    #[api(proto(number = 3, omit_empty))]
    pub reason: Option<String>,
    /// What happened, for people.
    #[api(proto(number = 4, omit_empty))]
    pub message: Option<String>,
    /// Who reports the event, as older clients say it.
    #[api(proto = 5, default = EventSource::default())]
    pub source: EventSource,
    /// When it happened first, as older clients say it.
    #[api(proto = 6, nullable, default = None)]
    pub first_timestamp: Option<Time>,
    /// When it happened last, as older clients say it.
    #[api(proto = 7, nullable, default = None)]
    pub last_timestamp: Option<Time>,
    /// How often it happened, as older clients say it.
    #[api(proto(number = 8, omit_empty))]
    pub count: Option<i32>,
    /// Normal or Warning; there may be others in the future.
    #[api(proto(number = 9, omit_empty), json = "type")]
    pub event_type: Option<String>,
    /// When it happened.
    #[api(proto = 10, nullable, default = None)]
    pub event_time: Option<MicroTime>,
    /// How it repeats, if it does.
    #[api(proto = 11)]
    pub series: Option<EventSeries>,
    /// What was done about the object, or what failed.
    #[api(proto(number = 12, omit_empty))]
    pub action: Option<String>,
    /// A second object, if the action needs one.
    #[api(proto = 13)]
    pub related: Option<ObjectReference>,
    /// The controller that reports the event, such as `kubernetes.io/kubelet`.
    #[api(proto(number = 14, omit_empty), json = "reportingComponent", default = String::new())]
    pub reporting_controller: Option<String>,
    /// The instance of the controller.
    #[api(proto(number = 15, omit_empty), default = String::new())]
    pub reporting_instance: Option<String>,
}

/// EventSource says who reports an event.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct EventSource {
    /// The program.
    #[api(proto(number = 1, omit_empty))]
    pub component: Option<String>,
    /// The node on which it runs.
    #[api(proto(number = 2, omit_empty))]
    pub host: Option<String>,
}

/// EventSeries says how an event repeats.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct EventSeries {
    /// How often it happened so far.
    #[api(proto(number = 1, omit_empty))]
    pub count: Option<i32>,
    /// When it happened last.
    #[api(proto = 2, nullable, default = None)]
    pub last_observed_time: Option<MicroTime>,
}

impl Event {
    pub(crate) fn first_seen(&self) -> Option<MicroTime> {
        self.first_timestamp
            .map(MicroTime::from)
            .or(self.event_time)
    }

    pub(crate) fn last_seen(&self) -> Option<MicroTime> {
        match &self.series {
            Some(series) => series.last_observed_time,
            None => self
                .last_timestamp
                .map(MicroTime::from)
                .or_else(|| self.first_seen()),
        }
    }

    /// How often it happened; events that do not repeat have no number.
    pub(crate) fn times(&self) -> i32 {
        match &self.series {
            Some(series) => series.count.unwrap_or_default(),
            None => self.count.filter(|count| *count != 0).unwrap_or(1),
        }
    }

    /// `pod/web`.
    pub(crate) fn object(&self) -> String {
        let ObjectReference { kind, name, .. } = &self.involved_object;
        let kind = kind.as_deref().unwrap_or_default().to_lowercase();
        match name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => format!("{kind}/{name}"),
            None => kind,
        }
    }

    /// `kubelet, node-1`.
    pub(crate) fn origin(&self) -> String {
        fn first(texts: [&Option<String>; 2]) -> &str {
            let mut texts = texts.into_iter().filter_map(|text| text.as_deref());
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        }
        let program = first([&self.source.component, &self.reporting_controller]);
        let place = first([&self.source.host, &self.reporting_instance]);
        if place.is_empty() {
            program.to_owned()
        } else {
            format!("{program}, {place}")
        }
    }

    pub(crate) fn trimmed_message(&self) -> String {
        let message = self.message.as_deref().unwrap_or_default();
        message.trim().to_owned()
    }
}
