//! Problems with the places of the declarations that they are about.

use std::fmt;

use apiloom_meta::kind::{Place, ResourceDef};

/// Begins a problem with the places of the kinds or groups that it is about, each once:
/// `src/v1.rs:3, src/v2.rs:5: PROBLEM`. What has no place adds nothing.
pub(crate) fn located(
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

/// Which kind of which version a problem is about.
pub(crate) fn label(def: &ResourceDef) -> String {
    format!("{} of {}", def.kind, def.group_version())
}

/// A problem of one kind.
pub(crate) fn of_kind(def: &ResourceDef, problem: impl fmt::Display) -> String {
    located([def.place], format!("{}: {problem}", label(def)))
}

/// A problem between two kinds.
pub(crate) fn of_two_kinds(
    first: &ResourceDef,
    second: &ResourceDef,
    problem: impl fmt::Display,
) -> String {
    located(
        [first.place, second.place],
        format!("{} and {} {problem}", label(first), label(second)),
    )
}
