//! Types that contain themselves. A structural schema is finite, so a field must end the recursion: one that keeps
//! unknown fields and whose type would be infinite is not expanded.

use serde_json::{Map, Value};

/// The keyword that ends recursion.
pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The error of a type that contains itself, by way of these definitions.
pub(super) fn problem(cycle: Option<&[&str]>) -> String {
    let cycle = cycle.map_or_else(String::new, |cycle| format!(" ({})", cycle.join(" -> ")));
    format!(
        "the type refers to itself{cycle}; a structural schema is finite: put `#[api(preserve_unknown)]` on a field of the circle to end it there"
    )
}

/// Whether the tree of a definition would be infinite: a path without a field that ends recursion leads back to it, or
/// to a definition that is being built.
pub(super) fn is_endless(
    definitions: Option<&Map<String, Value>>,
    open: &[&str],
    name: &str,
) -> bool {
    let mut search = Search {
        definitions,
        finite: Vec::new(),
        way: open.iter().map(|name| (*name).to_owned()).collect(),
    };
    search.is_endless(name)
}

struct Search<'a> {
    definitions: Option<&'a Map<String, Value>>,
    /// Definitions that are known to be finite.
    finite: Vec<String>,
    /// Definitions on the current path.
    way: Vec<String>,
}

impl Search<'_> {
    fn is_endless(&mut self, name: &str) -> bool {
        if self.finite.iter().any(|finite| finite == name) {
            return false;
        }
        if self.way.iter().any(|known| known == name) {
            return true;
        }
        let Some(definition) = self.definitions.and_then(|all| all.get(name)) else {
            return false;
        };
        let mut references = Vec::new();
        each_reference(definition, &mut references);
        self.way.push(name.to_owned());
        let is_endless = references.iter().any(|name| self.is_endless(name));
        self.way.pop();
        if !is_endless {
            self.finite.push(name.to_owned());
        }
        is_endless
    }
}

/// Collects the names that a schema refers to, except for those in fields that end recursion.
fn each_reference(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(keywords) => {
            if let Some(Value::String(reference)) = keywords.get("$ref") {
                found.push(definition_name(reference));
            }
            for value in keywords.values() {
                if value.get(PRESERVE) != Some(&Value::Bool(true)) {
                    each_reference(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| each_reference(value, found)),
        _ => {}
    }
}

/// The name of a definition in a reference. Slash and tilde are escaped as in JSON pointers.
pub(super) fn definition_name(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~")
}
