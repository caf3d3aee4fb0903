//! The strategies of Event, in the core group and in events.k8s.io: the same objects, with stricter rules in the latter.

use std::time::Duration;

use apiloom_kinds::core::v1::Event;
use apiloom_meta::{FieldError, FieldPath, names};

use crate::options::RequestContext;
use crate::rules::strategy::Strategy;

/// Namespaces for events about objects that have none.
const NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// Limits in bytes.
const MAX_WORD_BYTES: usize = 128;
const MAX_NOTE_BYTES: usize = 1024;

/// The strategy of events of the core group.
pub(crate) struct EventRules {
    pub(crate) ttl: Option<Duration>,
}

impl Strategy<Event> for EventRules {
    const HAS_DEFAULTS: bool = false;

    fn ttl(&self) -> Option<Duration> {
        self.ttl
    }
    fn validate(&self, _ctx: &RequestContext, object: &Event) -> Vec<FieldError> {
        errors(object)
    }
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// The errors of an event in either group. Events of newer clients have an eventTime, and more rules.
fn errors(event: &Event) -> Vec<FieldError> {
    let namespace = text(&event.metadata.namespace);
    let of_object = text(&event.involved_object.namespace);
    let is_new = event.event_time.is_some();
    let agrees = match (of_object.is_empty(), is_new) {
        (true, true) => NAMESPACES.contains(&namespace),
        (true, false) => namespace.is_empty() || namespace == NAMESPACES[0],
        (false, true) => true,
        (false, false) => namespace == of_object,
    };
    let mut errors = Vec::new();
    if !agrees {
        let path = FieldPath::new("involvedObject").child("namespace");
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(&path, of_object, why));
    }
    if is_new {
        errors.extend(errors_of_new(event));
    }
    let path = FieldPath::new("namespace");
    let complaints = names::dns_subdomain(namespace).into_iter();
    errors.extend(complaints.map(|complaint| FieldError::invalid(&path, namespace, &complaint)));
    errors
}

/// The errors of the fields that events with an eventTime must have.
fn errors_of_new(event: &Event) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut check = |field: &str, value: &Option<String>, max_bytes: Option<usize>| {
        let (path, value) = (FieldPath::new(field), text(value));
        if value.is_empty() && field != "message" {
            errors.push(FieldError::required(&path, ""));
        }
        match max_bytes {
            None => errors.extend(
                names::qualified_name(value)
                    .iter()
                    .map(|complaint| FieldError::invalid(&path, value, complaint)),
            ),
            Some(max) if value.len() > max => {
                let why = format!("can have at most {max} characters");
                errors.push(FieldError::invalid(&path, "", &why));
            }
            Some(_) => {}
        }
    };
    check("reportingController", &event.reporting_controller, None);
    let word = Some(MAX_WORD_BYTES);
    check("reportingInstance", &event.reporting_instance, word);
    check("action", &event.action, word);
    check("reason", &event.reason, word);
    check("message", &event.message, Some(MAX_NOTE_BYTES));
    errors
}

#[cfg(feature = "apis-events")]
pub(crate) mod strict {
    //! The rules of events.k8s.io. Errors name the fields of the core group's Event, as those of kube-apiserver do.

    use apiloom_kinds::core::v1::{Event as CoreEvent, EventSource};
    use apiloom_kinds::events::v1::Event;
    use apiloom_meta::ConvertFrom as _;
    use serde::Serialize;

    use super::*;

    /// The strategy of events of events.k8s.io.
    pub(crate) struct StrictEventRules {
        pub(crate) ttl: Option<Duration>,
    }

    /// The event as one of the core group; the conversion only changes names.
    fn as_core(event: &Event) -> CoreEvent {
        CoreEvent::convert_from(event.clone()).unwrap_or_default()
    }

    impl Strategy<Event> for StrictEventRules {
        const HAS_DEFAULTS: bool = false;

        fn ttl(&self) -> Option<Duration> {
            self.ttl
        }

        fn validate(&self, _ctx: &RequestContext, object: &Event) -> Vec<FieldError> {
            let event = as_core(object);
            let mut errors = errors(&event);
            errors.extend(series_errors(&event));
            if event.event_time.is_none() {
                errors.push(FieldError::required(&FieldPath::new("eventTime"), ""));
            }
            let name = text(&event.event_type);
            if !matches!(name, "Normal" | "Warning") {
                let why = format!("has invalid value: {name}");
                errors.push(FieldError::invalid(&FieldPath::new("type"), "", &why));
            }
            let is_set = [
                ("firstTimestamp", event.first_timestamp.is_some()),
                ("lastTimestamp", event.last_timestamp.is_some()),
                ("count", event.count.is_some_and(|count| count != 0)),
                ("source", event.source != EventSource::default()),
            ];
            let set = is_set.into_iter().filter(|(_, is_set)| *is_set);
            errors.extend(set.map(|(field, _)| {
                FieldError::invalid(&FieldPath::new(field), "", "needs to be unset")
            }));
            errors
        }

        fn validate_update(
            &self,
            _ctx: &RequestContext,
            new: &Event,
            old: &Event,
        ) -> Vec<FieldError> {
            let (new, old) = (as_core(new), as_core(old));
            let mut errors = errors(&new);
            if new.series != old.series {
                errors.extend(series_errors(&new));
            }
            let mut changes = Changes(errors);
            changes.check("involvedObject", &new.involved_object, &old.involved_object);
            changes.check("reason", &new.reason, &old.reason);
            changes.check("message", &new.message, &old.message);
            changes.check("source", &new.source, &old.source);
            changes.check("firstTimestamp", &new.first_timestamp, &old.first_timestamp);
            changes.check("lastTimestamp", &new.last_timestamp, &old.last_timestamp);
            changes.check("count", &new.count, &old.count);
            // kube-apiserver checks the reason twice.
            changes.check("reason", &new.reason, &old.reason);
            changes.check("type", &new.event_type, &old.event_type);
            changes.check("eventTime", &new.event_time, &old.event_time);
            changes.check("action", &new.action, &old.action);
            changes.check("related", &new.related, &old.related);
            let (by, before) = (&new.reporting_controller, &old.reporting_controller);
            changes.check("reportingController", by, before);
            let (by, before) = (&new.reporting_instance, &old.reporting_instance);
            changes.check("reportingInstance", by, before);
            changes.0
        }
    }

    /// Collects errors of fields that an update must not change.
    struct Changes(Vec<FieldError>);

    impl Changes {
        fn check<T: PartialEq + Serialize>(&mut self, field: &str, new: &T, old: &T) {
            if new != old {
                let path = FieldPath::new(field);
                self.0
                    .push(FieldError::invalid(&path, new, "field is immutable"));
            }
        }
    }

    fn series_errors(event: &CoreEvent) -> Vec<FieldError> {
        let Some(series) = &event.series else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        if series.count.unwrap_or_default() < 2 {
            let path = FieldPath::new("series.count");
            errors.push(FieldError::invalid(&path, "", "should be at least 2"));
        }
        if series.last_observed_time.is_none() {
            let path = FieldPath::new("series.lastObservedTime");
            errors.push(FieldError::required(&path, ""));
        }
        errors
    }
}
