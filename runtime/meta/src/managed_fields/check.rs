//! Checks the document of an apply request against the schema. Kubernetes has texts of their own for that, since it
//! checks such a document before any of it is decoded as a type.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use apiloom_schema::tree::{Child, Node, Types};
use serde_json::{Map, Value};

use super::Ownership;
use super::shape::Shape;
use crate::go_value;
use crate::interrupt::is_interrupted;

impl Ownership<'_> {
    /// Why a document cannot be applied: unknown fields, values of the wrong type, and items that cannot be told apart.
    ///
    /// # Errors
    /// The text of all of them, each with its path.
    pub fn check_applied(&self, document: &Value) -> Result<(), String> {
        let mut checker = Checker::default();
        checker.check(document, self.root(), false);
        let errors = checker.errors;
        match &errors[..] {
            [] => Ok(()),
            [error] => Err(error.clone()),
            errors => Err(format!("errors:\n  {}", errors.join("\n  "))),
        }
    }
}

/// The place in the document, and what was found so far.
#[derive(Default)]
struct Checker {
    path: String,
    errors: Vec<String>,
}

impl Checker {
    /// Checks a value. `is_open` is that a node above it keeps unknown fields, by which all below it takes any.
    fn check(&mut self, value: &Value, node: &Node, is_open: bool) {
        // Without a type, as that of an int-or-string of a custom resource, anything may stand here.
        if value.is_null() || (node.int_or_string && !node.dialect.is_typed) || is_interrupted() {
            return;
        }
        let is_open = is_open || node.preserve_unknown;
        match value {
            Value::Object(fields) if node.types.takes(Types::OBJECT) && !node.int_or_string => {
                self.check_fields(fields, node, is_open);
            }
            Value::Array(items) if node.types.takes(Types::ARRAY) && !node.int_or_string => {
                self.check_items(value, items, node, is_open);
            }
            value => {
                if let Some(why) = wrong_type(value, node) {
                    let between = if self.path.is_empty() { "" } else { ": " };
                    self.errors.push(format!("{}{between}{why}", self.path));
                }
            }
        }
    }

    fn check_fields(&mut self, fields: &Map<String, Value>, node: &Node, is_open: bool) {
        let is_open_here = is_open || (node.properties.is_empty() && !node.dialect.is_typed);
        let len = self.path.len();
        for (name, value) in fields {
            self.path.extend([".", name.as_str()]);
            match node.child(name) {
                Child::Node(below) => {
                    // The metadata of an embedded object has a type of its own, which keeps nothing else.
                    let is_metadata = !node.dialect.is_typed && below.dialect.is_typed;
                    self.check(value, below, is_open && !is_metadata);
                }
                Child::Unknown if !is_open_here => {
                    let path = &self.path;
                    self.errors
                        .push(format!("{path}: field not declared in schema"));
                }
                Child::Free | Child::Unknown => {}
            }
            self.path.truncate(len);
        }
    }

    fn check_items(&mut self, value: &Value, items: &[Value], node: &Node, is_open: bool) {
        let (below, len) = (node.items.as_deref(), self.path.len());
        let Shape::Items(_, keys) = Shape::of(value, Some(node)) else {
            for (index, item) in items.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(self.path, "[{index}]");
                self.check_item(item, below, is_open);
                self.path.truncate(len);
            }
            return;
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            match keys.element(item) {
                Ok(element) if seen.contains(&element) => {
                    let path = &self.path;
                    self.errors
                        .push(format!("{path}: duplicate entries for key {element}"));
                }
                Ok(element) => {
                    let _ = write!(self.path, "{element}");
                    self.check_item(item, below, is_open);
                    self.path.truncate(len);
                    seen.insert(element);
                }
                Err(why) => {
                    let path = &self.path;
                    self.errors.push(format!("{path}: element {index}: {why}"));
                    // Kubernetes looks at no further item of a list of which one cannot be told apart.
                    return;
                }
            }
        }
    }

    fn check_item(&mut self, item: &Value, node: Option<&Node>, is_open: bool) {
        if let Some(node) = node {
            self.check(item, node, is_open);
        }
    }
}

/// Why a value does not have a type of the node.
fn wrong_type(value: &Value, node: &Node) -> Option<String> {
    let is_scalar = !matches!(value, Value::Object(_) | Value::Array(_));
    // Of texts with a format, Kubernetes knows no more than that they are scalars.
    let has_format =
        node.has_unknown_format || (node.format.as_deref()).is_some_and(|format| format != "byte");
    if node.int_or_string || (has_format && node.types.shares(Types::STRING)) {
        return (!is_scalar).then(|| format!("expected any scalar, got {}", got(value)));
    }
    if node.types.is_any() || (is_scalar && node.types.accepts(value)) {
        return None;
    }
    // Kubernetes has one numeric type; the decoder refuses a fraction where an integer is expected.
    let is_numeric = node.types.shares(Types::NUMBER) || node.types.shares(Types::INTEGER);
    if is_numeric && value.is_number() {
        return None;
    }
    Some(if node.types.shares(Types::OBJECT) {
        format!("expected map, got {}", got(value))
    } else if node.types.shares(Types::ARRAY) {
        format!("expected list, got {}", got(value))
    } else if is_numeric {
        format!(
            "expected numeric (int or float), got {}",
            go_value::go_type(value)
        )
    } else if node.types.shares(Types::BOOLEAN) {
        format!("expected boolean, got {}", got(value))
    } else {
        // Go's form with types.
        let mut text = "expected string, got &value.valueUnstructured{Value:".to_owned();
        append_typed(value, &mut text);
        text + "}"
    })
}

/// A value as Go prints it behind a pointer.
fn got(value: &Value) -> String {
    let mut text = "&{".to_owned();
    go_value::append(value, &mut text);
    text + "}"
}

fn append_typed(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::String(string) => {
            let _ = write!(text, "{string:?}");
        }
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                append_typed(item, text);
            }
            text.push('}');
        }
        Value::Object(fields) => {
            text.push_str("map[string]interface {}{");
            for (index, (name, value)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                let _ = write!(text, "{name:?}:");
                append_typed(value, text);
            }
            text.push('}');
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}
