//! Names that two servers gave to two definitions at the same time.

use apiloom_storage::Memory;
use serde_json::{Value, json};

use super::*;

/// A definition of the group ex.io.
fn definition(plural: &str, kind: &str, second: u32, status: &Value) -> CustomResourceDefinition {
    let created = format!("2026-01-01T00:00:{second:02}Z");
    serde_json::from_value(json!({
        "metadata": {"name": format!("{plural}.ex.io"), "uid": plural, "creationTimestamp": created},
        "spec": {"group": "ex.io", "scope": "Namespaced", "versions": [],
            "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": format!("{kind}List")}},
        "status": status,
    }))
    .unwrap()
}

/// Accepts names as a server does that knows of these definitions.
fn accept_beside(object: &mut CustomResourceDefinition, others: &[&CustomResourceDefinition]) {
    let registry = apiloom_kinds::registry(Memory::new()).build().unwrap();
    let known = others.iter().map(|other| Known::of_object(other));
    let known = known.map(|known| (known.name.clone(), Box::new(known)));
    let known = known.collect();
    accept(object, &known, &registry.catalog());
}

/// Each as accepted by a server that does not know of the other.
fn accepted_at_once() -> (CustomResourceDefinition, CustomResourceDefinition) {
    let mut older = definition("foos", "Same", 1, &json!({}));
    let mut newer = definition("bars", "Same", 2, &json!({}));
    accept_beside(&mut older, &[]);
    accept_beside(&mut newer, &[]);
    (older, newer)
}

fn kind_of(object: &CustomResourceDefinition) -> &str {
    object
        .status
        .accepted_names
        .as_ref()
        .map_or("", |names| &names.kind)
}

fn has_names(object: &CustomResourceDefinition) -> bool {
    object.status.conditions.is_condition_true("NamesAccepted")
}

#[test]
fn of_two_definitions_with_a_name_the_older_one_keeps_it() {
    let (older, newer) = accepted_at_once();
    assert!(has_names(&older) && has_names(&newer));
    assert!(Known::of_object(&older).contests(&Known::of_object(&newer)));
    assert!(!Known::of_object(&newer).contests(&Known::of_object(&older)));
    let mut seen = older.clone();
    accept_beside(&mut seen, &[&older, &newer]);
    assert_eq!(seen, older);
    let mut seen = newer.clone();
    accept_beside(&mut seen, &[&older, &newer]);
    assert!(!has_names(&seen));
    assert_eq!(kind_of(&seen), "");
    // What is not contested stays.
    assert_eq!(seen.status.accepted_names.as_ref().unwrap().plural, "bars");
    let conditions = seen.status.conditions.as_ref().unwrap();
    let message = &conditions[0].message;
    assert_eq!(message.as_deref(), Some("\"SameList\" is already in use"));
    // It gets the name when the other is gone.
    accept_beside(&mut seen, &[]);
    assert!(has_names(&seen) && kind_of(&seen) == "Same");
}

#[test]
fn an_established_definition_keeps_a_name_that_an_older_one_has() {
    let (older, mut newer) = accepted_at_once();
    let established = Condition::new("Established", true, "InitialNamesAccepted", "");
    newer.status.conditions.set_condition(established.into());
    let mut seen = newer.clone();
    accept_beside(&mut seen, &[&older, &newer]);
    assert_eq!(seen, newer);
    let mut seen = older.clone();
    accept_beside(&mut seen, &[&older, &newer]);
    assert!(!has_names(&seen));
}
