//! Error texts with the source locations of the kinds and groups that they are about.

use std::fmt;

use apiloom_meta::kind::{Place, ResourceDef};

/// Prefixes a problem with the source locations of its kinds or groups, each once:
/// `src/v1.rs:3, src/v2.rs:5: PROBLEM`. A kind or group without a location adds nothing.
pub fn with_places(
    places: impl IntoIterator<Item = Option<Place>>,
    problem: impl fmt::Display,
) -> String {
    let mut texts: Vec<String> = Vec::new();
    for place in places.into_iter().flatten() {
        let text = place.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() {
        problem.to_string()
    } else {
        format!("{}: {problem}", texts.join(", "))
    }
}

/// A kind and its version, for error texts: `Flunder of wardle.example.com/v1alpha1`.
pub(crate) fn label(def: &ResourceDef) -> String {
    format!("{} of {}", def.kind, def.group_version())
}

/// An error text about one kind, with its location.
pub(crate) fn kind_problem(def: &ResourceDef, problem: impl fmt::Display) -> String {
    with_places([def.place], format!("{}: {problem}", label(def)))
}

/// An error text about two kinds, with their locations.
pub(crate) fn two_kinds_problem(
    first: &ResourceDef,
    second: &ResourceDef,
    problem: impl fmt::Display,
) -> String {
    with_places(
        [first.place, second.place],
        format!("{} and {} {problem}", label(first), label(second)),
    )
}
