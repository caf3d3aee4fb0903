//! The strategy of events.k8s.io/v1 Event: the events of the core group, with stricter rules. Errors name the fields of the core group's
//! Event, as those of kube-apiserver do.

use std::time::Duration;

use apiloom_meta::{ConvertFrom as _, FieldError, FieldPath};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};
use serde::Serialize;

use super::v1::Event;
use crate::built_in::BuiltIn;
use crate::core::rules::event::{errors, text};
use crate::core::v1::{Event as CoreEvent, EventSource};

/// Its objects are the events of the core group, which are served too.
impl BuiltIn for Event {
    fn register(registry: &mut RegistryBuilder) {
        CoreEvent::register(registry);
        let ttl = registry.event_lifetime();
        registry.own_kind::<Self>(StrictEventRules { ttl });
    }
}

/// The strategy of events of events.k8s.io.
struct StrictEventRules {
    ttl: Option<Duration>,
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

    fn validate_update(&self, _ctx: &RequestContext, new: &Event, old: &Event) -> Vec<FieldError> {
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
