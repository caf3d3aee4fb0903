//! The rules of a schema, and their evaluation for documents.

use std::collections::HashMap;
use std::sync::Arc;

use apiloom_schema::field::{FieldError, FieldErrorKind, FieldPath};
use apiloom_schema::interrupt::is_interrupted;
use serde_json::Value as Json;

use crate::program::Program;
use crate::schema::{Decl, Topology};
use crate::stop::Stop;
use crate::value::Value;

/// Maximum cost of one evaluation of an expression; as in kube-apiserver, where it is about 0.1 s.
pub const MAX_CALL_COST: u64 = 1_000_000;

/// Maximum cost of all evaluations for one object; as in kube-apiserver.
pub const MAX_OBJECT_COST: u64 = 10_000_000;

/// Maximum length of a message that an expression made, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// Maximum number of violations that are tolerated and told; a response has no room for more warnings.
const MAX_TOLERATED: usize = 100;

/// The index of `oldSelf` in the scope of a rule.
pub(crate) const OLD: usize = 1;

pub(crate) const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// The rules of a schema, compiled. Made by [`crate::compile`].
#[derive(Debug)]
pub struct Rules {
    pub(crate) root: Node,
}

/// A rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) text: String,
    pub(crate) message: String,
    pub(crate) program: Result<Program, String>,
    pub(crate) message_program: Option<Program>,
    pub(crate) reason: FieldErrorKind,
    /// Path of the field that the error is about, relative to the value.
    pub(crate) field_path: Option<String>,
    pub(crate) has_optional_old: bool,
}

impl Rule {
    /// The rule in messages about itself.
    fn shown(&self) -> &str {
        let text = if self.message.is_empty() {
            &self.text
        } else {
            &self.message
        };
        text.trim()
    }

    fn default_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.shown())
        } else {
            self.shown().to_owned()
        }
    }
}

/// A place of a schema with rules there or below.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) decl: Arc<Decl>,
    /// The type in the schema, which errors show instead of large values.
    pub(crate) type_name: String,
    pub(crate) rules: Vec<Rule>,
    pub(crate) properties: Vec<(String, Node)>,
    /// The values of a map.
    pub(crate) values: Option<Box<Node>>,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) topology: Topology,
    /// More rules for the same value.
    pub(crate) all_of: Vec<Node>,
}

impl Rules {
    /// Evaluates the rules for a new document, or for a change of an old one. Rules with `oldSelf` are evaluated for
    /// values that the old document has too; other rules do not refuse values that have not changed.
    ///
    /// The document must be valid by its schema, except for patterns and the like: see [`blocks_rules`].
    pub fn validate(&self, new: &Json, old: Option<&Json>) -> Vec<FieldError> {
        self.check(new, old).errors
    }

    /// As [`Rules::validate`]; also returns the violations that are tolerated.
    pub fn check(&self, new: &Json, old: Option<&Json>) -> Violations {
        let mut walk = Walk::new();
        let nearest = old.map(|old| (new, old));
        walk.node(&self.root, new, old, nearest, &Place::Root);
        Violations {
            errors: walk.errors,
            tolerated: walk.tolerated,
        }
    }

    /// The violations by the defaults in a schema, whose rules these are; `at` is its path. As in kube-apiserver, each default is
    /// that of an object that is created, and one that does not change.
    pub fn default_errors(&self, schema: &Json, at: &FieldPath) -> Vec<FieldError> {
        let mut walk = Walk::new();
        let mut errors = Vec::new();
        walk.defaults(&self.root, schema, at, &mut errors);
        errors
    }
}

/// The violations of rules by a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// Those for which the document is refused.
    pub errors: Vec<FieldError>,
    /// Those of values that have not changed, at most 100, of which kube-apiserver warns.
    pub tolerated: Vec<FieldError>,
}

/// Whether errors of a schema are such that rules are not evaluated: absent fields, wrong types, values that are not in
/// an enum, and values that are too long or too many.
pub fn blocks_rules(errors: &[FieldError]) -> bool {
    errors.iter().any(|error| {
        matches!(
            error.kind,
            FieldErrorKind::Required
                | FieldErrorKind::TypeInvalid
                | FieldErrorKind::NotSupported
                | FieldErrorKind::TooLong
                | FieldErrorKind::TooMany
        )
    })
}

/// The error that says that rules were not evaluated because of others.
pub fn not_checked() -> FieldError {
    FieldError::invalid(
        &FieldPath::root(),
        Json::Null,
        "some validation rules were not checked because the object was invalid; correct the existing errors to \
         complete validation",
    )
}

/// A path that becomes text only for an error.
enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Key(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn path(&self) -> FieldPath {
        match self {
            Self::Root => FieldPath::root(),
            Self::Field(parent, name) => parent.path().child(name),
            Self::Key(parent, key) => parent.path().key(key),
            Self::Index(parent, index) => parent.path().index(*index),
        }
    }
}

/// The new and the old value of the innermost place that has both.
type Nearest<'d> = Option<(&'d Json, &'d Json)>;

struct Walk {
    errors: Vec<FieldError>,
    /// Violations by unchanged values.
    tolerated: Vec<FieldError>,
    /// The cost that is left for the object.
    budget: u64,
    is_over: bool,
}

/// The path of a part of what is at a place.
fn below(at: &FieldPath, path: &FieldPath) -> FieldPath {
    match path.as_str() {
        "" => at.clone(),
        path if path.starts_with('[') => FieldPath::new(format!("{at}{path}")),
        path => at.child(path),
    }
}

impl Walk {
    fn new() -> Self {
        Self {
            errors: Vec::new(),
            tolerated: Vec::new(),
            budget: MAX_OBJECT_COST,
            is_over: false,
        }
    }

    /// Evaluates the rules of a place for its default, and those below.
    fn defaults(
        &mut self,
        node: &Node,
        schema: &Json,
        at: &FieldPath,
        found: &mut Vec<FieldError>,
    ) {
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            let same = (default, default);
            self.node(node, default, Some(default), Some(same), &Place::Root);
            if self.errors.is_empty() {
                self.node(node, default, None, None, &Place::Root);
            }
            let at = at.child("default");
            found.extend(self.errors.drain(..).map(|error| FieldError {
                path: below(&at, &error.path),
                ..error
            }));
        }
        let property = |name: &str| schema.get("properties")?.get(name);
        for (name, below) in &node.properties {
            if let Some(schema) = property(name) {
                self.defaults(below, schema, &at.child("properties").key(name), found);
            }
        }
        if let (Some(below), Some(schema)) = (&node.items, schema.get("items")) {
            self.defaults(below, schema, &at.child("items"), found);
        }
    }

    fn node<'d>(
        &mut self,
        node: &Node,
        new: &'d Json,
        old: Option<&'d Json>,
        nearest: Nearest<'d>,
        place: &Place<'_>,
    ) {
        if new.is_null() || self.is_over || is_interrupted() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(node, new, old, nearest, place);
        for more in &node.all_of {
            self.node(more, new, old, nearest, place);
        }
        let inner = |new: &'d Json, old: Option<&'d Json>| match old {
            Some(old) => Some((new, old)),
            None => nearest,
        };
        match new {
            Json::Array(items) => {
                let Some(below) = &node.items else { return };
                let old_items = old.and_then(Json::as_array).map(Vec::as_slice);
                let old_items = correlated(&node.topology, old_items.unwrap_or_default());
                for (index, item) in items.iter().enumerate() {
                    let old = identity(&node.topology, item)
                        .and_then(|identity| old_items.get(&identity).copied());
                    let at = Place::Index(place, index);
                    self.node(below, item, old, inner(item, old), &at);
                }
            }
            Json::Object(fields) => {
                let old = |name: &str| old.and_then(|old| old.get(name));
                for (name, below) in &node.properties {
                    if let Some(value) = fields.get(name) {
                        let at = Place::Field(place, name);
                        self.node(below, value, old(name), inner(value, old(name)), &at);
                    }
                }
                if let Some(below) = &node.values {
                    for (key, value) in fields {
                        let at = Place::Key(place, key);
                        self.node(below, value, old(key), inner(value, old(key)), &at);
                    }
                }
            }
            _ => {}
        }
    }

    /// Ends the evaluation for the object with an error.
    fn end(&mut self, error: FieldError) {
        self.errors.push(error);
        self.is_over = true;
    }

    fn rules(
        &mut self,
        node: &Node,
        new: &Json,
        old: Option<&Json>,
        nearest: Nearest<'_>,
        place: &Place<'_>,
    ) {
        for rule in &node.rules {
            if self.is_over {
                return;
            }
            let invalid =
                |detail: &str| FieldError::invalid(&place.path(), node.type_name.as_str(), detail);
            let program = match &rule.program {
                Ok(program) => program,
                Err(text) => {
                    self.errors
                        .push(invalid(&format!("rule compile error: {text}")));
                    continue;
                }
            };
            let uses_old = program.uses(OLD);
            if uses_old && old.is_none() && !rule.has_optional_old {
                continue;
            }
            if self.budget == 0 {
                return self.end(invalid(OUT_OF_BUDGET));
            }
            let values = values(node, rule, new, old);
            let (found, cost) = match &values {
                Ok(values) => program.run(values, MAX_CALL_COST),
                Err(stop) => (Err(stop.clone()), 0),
            };
            if cost > self.budget {
                return self.end(invalid(OUT_OF_BUDGET));
            }
            self.budget -= cost;
            let text = match found {
                Ok(Value::Bool(true)) => continue,
                Ok(Value::Bool(false)) => None,
                Ok(_) => Some("no such overload".into()),
                Err(Stop::Cost) => {
                    return self.end(invalid(&format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run \
                         due to call cost exceeds limit for rule: {}",
                        rule.shown()
                    )));
                }
                Err(Stop::Error(text)) => Some(text),
            };
            if let Some(text) = text {
                self.errors.push(invalid(&if text.starts_with("no such overload") {
                    format!(
                        "'{text}': call arguments did not match a supported operator, function or macro signature \
                         for rule: {}",
                        rule.shown()
                    )
                } else {
                    format!("{text} evaluating rule: {}", rule.shown())
                }));
                continue;
            }
            let is_unchanged = || nearest.is_some_and(|(new, old)| new == old);
            let is_tolerated = !uses_old && is_unchanged();
            let Some(violation) = self.violation(node, rule, new, old, place) else {
                return;
            };
            if !is_tolerated {
                self.errors.push(violation);
            } else if self.tolerated.len() < MAX_TOLERATED {
                self.tolerated.push(violation);
            }
        }
    }

    /// The error for a rule that is violated; `None` if its message costs too much, which ends the evaluation.
    fn violation(
        &mut self,
        node: &Node,
        rule: &Rule,
        new: &Json,
        old: Option<&Json>,
        place: &Place<'_>,
    ) -> Option<FieldError> {
        let path = match &rule.field_path {
            Some(relative) => place.path().child(relative),
            None => place.path(),
        };
        let mut message = None;
        if let Some(program) = &rule.message_program {
            let values = values(node, rule, new, old);
            let (found, cost) = match &values {
                Ok(values) => program.run(values, MAX_CALL_COST),
                Err(stop) => (Err(stop.clone()), 0),
            };
            let source = node.type_name.as_str();
            if cost > self.budget {
                let text = "messageExpression evaluation failed due to running out of cost budget, no further \
                            validation rules will be run";
                self.end(FieldError::invalid(&path, source, text));
                return None;
            }
            self.budget -= cost;
            match found {
                Err(Stop::Cost) => {
                    let text = "no further validation rules will be run due to call cost exceeds limit for \
                                messageExpression";
                    self.end(FieldError::invalid(&path, source, text));
                    return None;
                }
                Ok(Value::Text(text)) => {
                    let text = text.as_str().trim();
                    let is_usable =
                        !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                    message = is_usable.then(|| text.to_owned());
                }
                // The rule's own message takes its place.
                _ => {}
            }
        }
        let detail = message.unwrap_or_else(|| rule.default_message());
        let is_shown = !new.is_object() && !new.is_array();
        Some(match rule.reason {
            FieldErrorKind::Forbidden => FieldError::forbidden(&path, &detail),
            FieldErrorKind::Required => FieldError::required(&path, &detail),
            FieldErrorKind::Duplicate if is_shown => FieldError::duplicate(&path, new),
            FieldErrorKind::Duplicate => FieldError {
                kind: FieldErrorKind::Duplicate,
                path,
                body: "Duplicate value".to_owned(),
            },
            _ if is_shown => FieldError::invalid(&path, new, &detail),
            _ => FieldError {
                kind: FieldErrorKind::Invalid,
                path,
                body: format!("Invalid value: {detail}"),
            },
        })
    }
}

/// `self` and `oldSelf` for a rule, in the order of its scope.
fn values<'v>(
    node: &'v Node,
    rule: &Rule,
    new: &'v Json,
    old: Option<&'v Json>,
) -> Result<[Value<'v>; 2], Stop> {
    let this = Value::of(new, &node.decl)?;
    let old = old.map(|old| Value::of(old, &node.decl)).transpose()?;
    let old = if rule.has_optional_old {
        old.map_or(Value::Optional(None), Value::some)
    } else {
        // A rule that uses it is not evaluated without it.
        old.unwrap_or(Value::Null)
    };
    Ok([this, old])
}

/// The keys of an item as one text; `None` for lists without keys.
fn identity(topology: &Topology, item: &Json) -> Option<String> {
    let Topology::Map(keys) = topology else {
        return None;
    };
    let keys: Vec<&Json> = keys
        .iter()
        .map(|key| item.get(key).unwrap_or(&Json::Null))
        .collect();
    serde_json::to_string(&keys).ok()
}

/// The old items by their keys.
fn correlated<'d>(topology: &Topology, items: &'d [Json]) -> HashMap<String, &'d Json> {
    let keyed = items
        .iter()
        .filter_map(|item| Some((identity(topology, item)?, item)));
    keyed.collect()
}
