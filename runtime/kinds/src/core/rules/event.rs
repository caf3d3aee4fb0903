//! The strategy of core/v1 Event. The group events.k8s.io has the same objects, with stricter rules.

use std::time::Duration;

use apiloom_meta::{FieldError, FieldPath, names};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};

use crate::built_in::BuiltIn;
use crate::core::v1::Event;

/// Namespaces for events about objects that have none.
const NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// Limits in bytes.
const MAX_WORD_BYTES: usize = 128;
const MAX_NOTE_BYTES: usize = 1024;

impl BuiltIn for Event {
    fn register(registry: &mut RegistryBuilder) {
        let ttl = registry.event_lifetime();
        registry.own_kind::<Self>(EventRules { ttl });
    }
}

/// The strategy of events of the core group.
struct EventRules {
    ttl: Option<Duration>,
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

/// A text, which is empty if it is absent.
pub(crate) fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// The errors of an event in either group. Events of newer clients have an eventTime, and more rules.
pub(crate) fn errors(event: &Event) -> Vec<FieldError> {
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
