//! Checks that the items of lists can be told apart, before a client sends them.

use std::collections::BTreeMap;

use apiloom_schema::tree::Node;
use serde_json::Value;

use super::Ownership;
use super::path_element::PathElement;
use super::shape::{Shape, field};

impl Ownership<'_> {
    /// Problems of a document's lists for which a server would refuse it: two items with the same keys, two equal ones in a
    /// set, one without keys. One line for each, with its path. Unlike [`Ownership::check_applied`] it allows fields that the schema
    /// does not have, since the server may have a newer one.
    pub fn item_problems(&self, document: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        check(document, Some(self.root()), "", &mut problems);
        problems
    }
}

fn check(value: &Value, node: Option<&Node>, path: &str, problems: &mut Vec<String>) {
    match (Shape::of(value, node), value) {
        (Shape::Items(items, keys), _) => {
            let mut places: BTreeMap<PathElement, usize> = BTreeMap::new();
            for (index, item) in items.iter().enumerate() {
                check(item, keys.node, &format!("{path}[{index}]"), problems);
                let element = match keys.element(item) {
                    Ok(element) => element,
                    Err(why) => {
                        problems.push(format!("{path}[{index}]: {why}"));
                        continue;
                    }
                };
                let text = element.to_string();
                if let Some(first) = places.insert(element, index) {
                    let what = if keys.is_set() {
                        "equal"
                    } else {
                        "the same item"
                    };
                    problems.push(format!(
                        "{path}: the items {first} and {index} are {what}: {text}"
                    ));
                }
            }
        }
        (_, Value::Array(items)) => {
            let below = node.and_then(|node| node.items.as_deref());
            for (index, item) in items.iter().enumerate() {
                check(item, below, &format!("{path}[{index}]"), problems);
            }
        }
        (_, Value::Object(fields)) => {
            for (name, value) in fields {
                let (below, _) = field(node, name);
                let separator = if path.is_empty() { "" } else { "." };
                check(value, below, &format!("{path}{separator}{name}"), problems);
            }
        }
        _ => {}
    }
}
