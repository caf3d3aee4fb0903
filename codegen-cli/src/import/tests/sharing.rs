//! Which types the kinds of a version share.

use serde_json::{Value, json};

use super::super::definition::Definition;
use super::super::prepared::PreparedKind;
use super::super::sharing::{self, SharedTypes};
use super::super::versions;
use super::definition;
use crate::render::Renderer;

/// A definition of a kind whose spec has these properties.
fn kind(name: &str, properties: Value) -> Definition {
    let mut document = definition(properties);
    document["spec"]["names"] =
        json!({ "kind": name, "plural": format!("{}s", name.to_lowercase()) });
    Definition::read(&document, "a test").unwrap_or_else(|error| panic!("{error}"))
}

/// Checks the names of the types that are shared, and that every kind is written with them as it is without.
#[track_caller]
fn check(kinds: &[Definition], expected: &[&str]) {
    let prepared: Vec<PreparedKind> = kinds.iter().map(PreparedKind::new).collect();
    let renderer = Renderer::new(String::new()).unwrap_or_else(|error| panic!("{error}"));
    let path = |version: &str| format!("crate::{version}::shared");
    let found = sharing::find("example.com", &prepared, &path, &renderer);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let mut names = Vec::new();
    for shared in found.values() {
        names.extend(shared.text.lines().filter_map(|line| {
            let line = line.strip_suffix(" {")?;
            line.strip_prefix("pub struct ")
                .or_else(|| line.strip_prefix("pub enum "))
        }));
    }
    assert_eq!(names, expected);
    for kind in &prepared {
        let module = |version: &str| format!("crate::{version}::thing");
        let written = versions::write(kind, &module, &found, &renderer);
        let written = written.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(written.lost, [""; 0]);
        let code = &written.modules[0].text;
        let uses = found
            .values()
            .flat_map(|shared: &SharedTypes| shared.names(&kind.named[kind.hub]));
        let uses: Vec<String> = uses.collect();
        assert_eq!(
            code.contains("pub use crate::v1::shared::*;"),
            !uses.is_empty(),
            "{code}"
        );
        for name in uses {
            assert!(
                !code.contains(&format!("pub struct {name} {{")),
                "{name} in\n{code}"
            );
        }
    }
}

fn part(inner: &str) -> Value {
    json!({ "type": "object", "properties": {
        "inner": { "type": "object", "properties": { inner: { "type": "string" } } },
        "mode": { "type": "string", "enum": ["Fast", "Slow"] },
    } })
}

#[test]
fn equal_types_of_several_kinds_are_one() {
    check(
        &[
            kind(
                "Door",
                json!({ "part": part("a"), "own": { "type": "object", "properties": { "x": { "type": "string" } } } }),
            ),
            kind(
                "Lock",
                json!({ "part": part("a"), "own": { "type": "object", "properties": { "y": { "type": "string" } } } }),
            ),
            kind("Key", json!({ "size": { "type": "integer" } })),
        ],
        &["Inner", "Mode", "Part"],
    );
}

#[test]
fn a_type_that_names_one_of_a_single_kind_is_not_shared() {
    check(
        &[
            kind("Door", json!({ "part": part("a") })),
            kind("Lock", json!({ "part": part("b") })),
        ],
        &["Mode"],
    );
}

#[test]
fn of_several_types_with_one_name_most_kinds_have_the_shared_one() {
    check(
        &[
            kind("Door", json!({ "part": part("a") })),
            kind("Key", json!({ "part": part("a") })),
            kind("Lock", json!({ "part": part("b") })),
            kind("Nail", json!({ "part": part("b") })),
            kind("Screw", json!({ "part": part("b") })),
        ],
        &["Inner", "Mode", "Part"],
    );
}

#[test]
fn a_kind_is_not_shared_with_a_part_of_another() {
    check(
        &[
            kind("Door", json!({ "lock": part("a") })),
            kind("Key", json!({ "lock": part("a") })),
            kind("Lock", json!({})),
        ],
        &["Inner", "Mode"],
    );
}

/// Types that many kinds have, and one that has the name of one of them and is a type of its own.
#[test]
fn a_type_of_one_kind_hides_a_shared_one_of_its_name() {
    let of_name = json!({ "type": "object", "properties": {
        "group": { "type": "string", "enum": ["example.com"], "default": "example.com" } } });
    let own = json!({ "type": "array", "items": { "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "modes": { "type": "array", "items": { "type": "string" } } } } });
    check(
        &[
            kind("Door", json!({ "reference": of_name })),
            kind("Key", json!({ "reference": of_name, "part": part("a") })),
            kind("Lock", json!({ "groups": own, "part": part("a") })),
        ],
        &["Group", "Inner", "Mode", "Part", "Reference"],
    );
    let of_struct = json!({ "type": "object", "properties": {
        "group": { "type": "object", "properties": { "a": { "type": "string" } } } } });
    let one_of = json!({ "type": "array", "items": { "type": "string", "enum": ["One", "Two"] } });
    check(
        &[
            kind("Door", json!({ "reference": of_struct })),
            kind("Key", json!({ "reference": of_struct, "part": part("a") })),
            kind("Lock", json!({ "groups": one_of, "part": part("a") })),
        ],
        &["Group", "Inner", "Mode", "Part", "Reference"],
    );
}
