//! The schemas of a document of OpenAPI v3 as structural ones, with every `$ref` replaced by what it refers to.
//!
//! A component keeps its name in a keyword of `markers.rs`, so that it becomes one type. A reference back to a component
//! that is being read becomes a value of any form, which is how the macros print a type that contains itself; which
//! references those are depends only on the document, since each component is read once.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::definition::texts;
use super::known;
use super::markers::{AGAIN, COMPONENT};

/// Maximum levels of a schema. Kubernetes' own have about 20.
const MAX_LEVELS: usize = 100;

/// Maximum number of schemas below all kinds of a document, each counted wherever it is used. Those of Kubernetes' group `apps`
/// are some ten thousand.
const MAX_PARTS: usize = 200_000;

/// Where the components are in a document.
const PREFIX: &str = "#/components/schemas/";

/// The components of a document.
#[derive(Debug)]
pub(super) struct Components<'a> {
    all: &'a Map<String, Value>,
    /// Whether they are Go types of Kubernetes, whose zero values `native.rs` reads.
    are_native: bool,
    /// Components that were read, with their number of parts.
    done: BTreeMap<&'a str, (Value, usize)>,
    /// Components that are being read, with the level at which they begin.
    open: Vec<(&'a str, usize)>,
    level: usize,
    parts: usize,
}

impl<'a> Components<'a> {
    pub(super) fn new(all: &'a Map<String, Value>, are_native: bool) -> Self {
        Self {
            all,
            are_native,
            done: BTreeMap::new(),
            open: Vec::new(),
            level: 0,
            parts: 0,
        }
    }

    /// The structural schema of a component.
    ///
    /// # Errors
    /// A reference that leads nowhere or out of the document, references that only lead to each other, and a schema that is
    /// too large.
    pub(super) fn read(&mut self, name: &str) -> Result<Value, String> {
        let Some((name, schema)) = self.all.get_key_value(name) else {
            return Err(format!("the document has no component {name:?}"));
        };
        if let Some((schema, parts)) = self.done.get(name.as_str()) {
            self.parts += parts;
            let schema = schema.clone();
            return self.check_size().map(|()| schema);
        }
        if let Some((_, level)) = self.open.iter().find(|(open, _)| open == name) {
            if *level == self.level {
                return Err(format!(
                    "the component {name:?} refers to itself and says nothing else"
                ));
            }
            let is_object = schema["type"] == "object" && schema["properties"].is_object();
            return Ok(if is_object {
                json!({ "type": "object", PRESERVE: true, AGAIN: name })
            } else {
                json!({ PRESERVE: true })
            });
        }
        // An alias of an alias needs a level of the stack as well.
        if self.open.len() >= MAX_LEVELS {
            return Err(too_deep());
        }
        let before = self.parts;
        self.open.push((name, self.level));
        let schema = self.schema(schema);
        self.open.pop();
        let mut schema = schema.map_err(|error| match error.strip_prefix(IN) {
            // The innermost component is the one that its author looks for.
            Some(_) => error,
            None => format!("{IN}{name}: {error}"),
        })?;
        if schema["type"] == "object" && schema["properties"].is_object()
            || schema["enum"].is_array()
        {
            schema[COMPONENT] = Value::from(&**name);
        }
        let parts = self.parts - before;
        self.done.insert(name, (schema.clone(), parts));
        Ok(schema)
    }

    fn check_size(&self) -> Result<(), String> {
        if self.parts > MAX_PARTS {
            return Err(format!(
                "the kinds have more than {MAX_PARTS} schemas when all references are followed"
            ));
        }
        Ok(())
    }

    fn schema(&mut self, schema: &'a Value) -> Result<Value, String> {
        self.parts += 1;
        self.check_size()?;
        let Value::Object(keywords) = schema else {
            return Err(format!("the schema {schema} is no object"));
        };
        if let Some((reference, own)) = reference(keywords) {
            let Some(name) = reference.strip_prefix(PREFIX) else {
                return Err(format!(
                    "$ref {reference:?} does not begin with {PREFIX:?}: only components of the same document are read"
                ));
            };
            let name = name.replace("~1", "/").replace("~0", "~");
            return self.referred(&name, own);
        }
        let mut out = self.keywords(keywords, Self::below)?;
        normalize(&mut out, self.are_native);
        Ok(Value::Object(out))
    }

    /// The keywords of a schema, in which `read` reads the schemas of values. References of junctors are followed.
    fn keywords(
        &mut self,
        keywords: &'a Map<String, Value>,
        read: fn(&mut Self, &'a Value) -> Result<Value, String>,
    ) -> Result<Map<String, Value>, String> {
        let mut out = Map::new();
        for (name, value) in keywords {
            let value = match (name.as_str(), value) {
                ("properties", Value::Object(fields)) => {
                    let fields = fields.iter();
                    let fields = fields
                        .map(|(name, field)| read(self, field).map(|field| (name.clone(), field)));
                    Value::Object(fields.collect::<Result<_, String>>()?)
                }
                ("items" | "not" | "additionalProperties", Value::Object(_)) => read(self, value)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    let branches = branches.iter().map(|branch| self.branch(branch));
                    Value::Array(branches.collect::<Result<_, String>>()?)
                }
                _ => value.clone(),
            };
            out.insert(name.clone(), value);
        }
        Ok(out)
    }

    fn below(&mut self, schema: &'a Value) -> Result<Value, String> {
        self.deeper(|this| this.schema(schema))
    }

    /// Reads one level further down.
    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.level == MAX_LEVELS {
            return Err(too_deep());
        }
        self.level += 1;
        let below = read(self);
        self.level -= 1;
        below
    }

    /// A branch of a junctor: it is no schema of its own, so only references in it are followed.
    fn branch(&mut self, schema: &'a Value) -> Result<Value, String> {
        match schema {
            Value::Object(keywords) if keywords.contains_key("$ref") => self.below(schema),
            Value::Object(keywords) => {
                let below = self.deeper(|this| this.keywords(keywords, Self::branch));
                below.map(Value::Object)
            }
            other => Ok(other.clone()),
        }
    }

    /// The schema of a component with the keywords that stand beside its reference.
    fn referred(&mut self, name: &str, own: Map<String, Value>) -> Result<Value, String> {
        let (mut schema, is_known) = match known::component(name) {
            Some(schema) => (schema, true),
            None => (self.read(name)?, false),
        };
        let is_struct = is_known || schema["type"] == "object";
        // Metadata and the like are empty by default in Rust too.
        let is_kept = self.are_native && !is_known && is_struct && schema["properties"].is_object();
        if let Value::Object(keywords) = &mut schema {
            for (name, value) in own {
                // A struct that Go has without a pointer: absent is the same as empty.
                if name == "default" && is_struct && value == json!({}) && !is_kept {
                    continue;
                }
                keywords.insert(name, value);
            }
        }
        Ok(schema)
    }
}

fn too_deep() -> String {
    format!("the schema has more than {MAX_LEVELS} levels")
}

/// The beginning of errors about a component.
const IN: &str = "component ";

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// What a schema refers to, in `$ref` or in an `allOf` of a single one, and the other keywords.
fn reference(keywords: &Map<String, Value>) -> Option<(&str, Map<String, Value>)> {
    let without = |name: &str| {
        let mut own = keywords.clone();
        own.remove(name);
        own
    };
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        return Some((reference, without("$ref")));
    }
    let [Value::Object(only)] = keywords.get("allOf")?.as_array()?.as_slice() else {
        return None;
    };
    let reference = only.get("$ref")?.as_str().filter(|_| only.len() == 1)?;
    Some((reference, without("allOf")))
}

/// Spells a schema as CustomResourceDefinitions do.
fn normalize(schema: &mut Map<String, Value>, is_native: bool) {
    schema.remove("x-kubernetes-group-version-kind");
    schema.remove("x-kubernetes-selectable-fields");
    let required = texts(schema.get("required").unwrap_or(&Value::Null));
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        // The zero value of a field that must be sent says nothing.
        for (_, field) in fields
            .iter_mut()
            .filter(|(name, _)| required.contains(name) && !is_native)
        {
            remove_zero(field);
        }
    }
    for below in ["items", "additionalProperties"] {
        // So does that of an item, which is there or not.
        schema.get_mut(below).into_iter().for_each(remove_zero);
    }
    if schema
        .get("format")
        .is_some_and(|format| format == "int-or-string")
    {
        schema.remove("format");
        schema.remove("oneOf");
        schema.remove("anyOf");
        schema.remove("type");
        schema.insert("x-kubernetes-int-or-string".to_owned(), true.into());
    }
    let says_form = [
        "type",
        "x-kubernetes-int-or-string",
        "properties",
        "items",
        "additionalProperties",
    ];
    if !says_form.iter().any(|name| schema.contains_key(*name)) {
        schema.insert(PRESERVE.to_owned(), true.into());
    }
}

/// Whether a default is the zero value of a type in Go.
fn is_zero(default: &Value) -> bool {
    let zeros = [json!(""), json!(0), json!(false), json!({}), json!(0.0)];
    zeros.contains(default)
}

/// Removes a default that is the zero value of a type in Go.
pub(super) fn remove_zero(schema: &mut Value) {
    if schema.get("default").is_some_and(is_zero)
        && let Some(keywords) = schema.as_object_mut()
    {
        keywords.remove("default");
    }
}
