//! Prints a schema as OpenAPI v3, as a CRD's `openAPIV3Schema`, or as swagger v2.

use serde_json::{Map, Value, json};

use super::node::OBJECT_META_NAME;
use super::node::{Choice, ListType, Node, PATCH_MERGE_KEY, PATCH_STRATEGY, Property, Rules};
use crate::number::INT_OR_STRING;

/// Form of the metadata of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata<'a> {
    /// With all fields.
    Inline,
    /// As `{"type":"object"}` for objects and embedded objects, which CRDs require; with all fields elsewhere.
    Open,
    /// As a reference, for instance to `#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
    Ref(&'a str),
}

/// Prints OpenAPI v3.0.
pub(crate) fn v3(node: &Node, metadata: &Metadata<'_>) -> Value {
    Printer {
        root: node,
        metadata,
        swagger: false,
    }
    .node(node)
}

/// Prints Swagger 2.0.
pub(crate) fn v2(node: &Node, metadata: &Metadata<'_>) -> Value {
    Printer {
        root: node,
        metadata,
        swagger: true,
    }
    .node(node)
}

struct Printer<'a> {
    root: &'a Node,
    metadata: &'a Metadata<'a>,
    swagger: bool,
}

impl Printer<'_> {
    fn node(&self, node: &Node) -> Value {
        if node.type_name.as_deref() == Some(OBJECT_META_NAME) {
            match self.metadata {
                Metadata::Inline | Metadata::Open => {}
                Metadata::Ref(target) => return self.reference(node, target),
            }
        }
        let mut out = Map::new();
        insert(&mut out, "description", description(node));
        insert(
            &mut out,
            "title",
            node.title
                .clone()
                .filter(|title| node.type_name.as_ref() != Some(title)),
        );
        insert(
            &mut out,
            "default",
            node.default.clone().filter(|default| !default.is_null()),
        );
        extensions(&mut out, node);
        // v2 has no keywords for these; without a type, clients accept the values that the server accepts.
        if self.swagger && (node.nullable || !node.choices.is_empty() || node.not.is_some()) {
            return Value::Object(out);
        }
        insert(&mut out, "nullable", node.nullable.then_some(true));
        insert(&mut out, "format", format(node));
        rules(&mut out, &node.rules);
        if node.int_or_string {
            out.insert("x-kubernetes-int-or-string".to_owned(), Value::Bool(true));
            self.choices(&mut out, node);
            return Value::Object(out);
        }
        let single = node.types.single();
        insert(&mut out, "type", single);
        let both = !node.properties.is_empty() && node.additional.is_some();
        // Only objects have unknown fields; a list says it of its items.
        let open = match single {
            Some("object") => node.says_open() || both,
            Some("array") => node.says_open(),
            Some(_) => false,
            None => true,
        };
        if open {
            out.insert(
                "x-kubernetes-preserve-unknown-fields".to_owned(),
                Value::Bool(true),
            );
        }
        if !(open && self.swagger) {
            self.structure(&mut out, node);
        }
        if single.is_some() {
            self.choices(&mut out, node);
        }
        Value::Object(out)
    }

    /// Prints a reference. It cannot have siblings in OpenAPI 3.0, so Kubernetes wraps it to keep the description.
    fn reference(&self, node: &Node, target: &str) -> Value {
        let mut out = Map::new();
        insert(&mut out, "description", node.description.clone());
        if self.swagger {
            out.insert("$ref".to_owned(), json!(target));
        } else {
            out.insert("allOf".to_owned(), json!([{"$ref": target}]));
            out.insert("default".to_owned(), json!({}));
        }
        Value::Object(out)
    }

    fn structure(&self, out: &mut Map<String, Value>, node: &Node) {
        if !node.properties.is_empty() {
            let properties = node
                .properties
                .iter()
                .map(|p| (p.name.clone(), self.property(node, p)));
            out.insert("properties".to_owned(), Value::Object(properties.collect()));
            let required = node
                .properties
                .iter()
                .filter(|p| p.required || p.node.rules.required && p.node.default.is_none());
            list(out, "required", required.map(|p| json!(p.name)).collect());
        } else if let Some(additional) = &node.additional {
            out.insert("additionalProperties".to_owned(), self.node(additional));
        }
        match &node.items {
            Some(items) => {
                out.insert("items".to_owned(), self.items(node, items));
            }
            // Items of any type, which a structural schema must declare.
            None if node.types.single() == Some("array") => {
                out.insert("items".to_owned(), self.node(&Node::default()));
            }
            None => {}
        }
    }

    /// Prints a property of an object. In a CRD the metadata of an embedded object is only an object; the fields of
    /// other metadata would be pruned if they were not described.
    fn property(&self, node: &Node, property: &Property) -> Value {
        let is_object = std::ptr::eq(node, self.root) || node.embedded_resource;
        let is_metadata = property.node.type_name.as_deref() == Some(OBJECT_META_NAME);
        if is_object && is_metadata && *self.metadata == Metadata::Open {
            return json!({"type": "object"});
        }
        self.node(&property.node)
    }

    /// Prints the items of a list. Their keys are required, as in validation.
    fn items(&self, list: &Node, items: &Node) -> Value {
        let mut out = self.node(items);
        if let (Some(ListType::Map(keys)), Some(fields)) = (&list.list_type, out.as_object_mut()) {
            let has_default = |key: &str| {
                items
                    .property(key)
                    .is_some_and(|p| p.node.default.is_some())
            };
            let required = fields.entry("required").or_insert_with(|| json!([]));
            if let Value::Array(required) = required {
                for key in keys.iter().filter(|key| !has_default(key)) {
                    if !required.contains(&json!(key)) {
                        required.push(json!(key));
                    }
                }
            }
            if fields["required"] == json!([]) {
                fields.remove("required");
            }
        }
        out
    }

    fn choices(&self, out: &mut Map<String, Value>, node: &Node) {
        let mut printed: Vec<Value> = Vec::new();
        for choice in &node.choices {
            let Some(branches) = branches(choice) else {
                continue;
            };
            let name = if choice.exactly_one { "oneOf" } else { "anyOf" };
            if out.contains_key(name) {
                printed.push(json!({ name: branches }));
            } else {
                out.insert(name.to_owned(), branches);
            }
        }
        list(out, "allOf", printed);
        if let Some(not) = node.not.as_ref().and_then(|not| branch(not)) {
            out.insert("not".to_owned(), not);
        }
    }
}

/// Prints the branches of a choice without their structure; `None` if a branch differs only in its type, which a
/// structural schema cannot express there.
fn branches(choice: &Choice) -> Option<Value> {
    choice
        .branches
        .iter()
        .map(branch)
        .collect::<Option<Vec<_>>>()
        .map(Value::Array)
}

fn branch(node: &Node) -> Option<Value> {
    let mut out = Map::new();
    rules(&mut out, &node.rules);
    insert(&mut out, "format", format(node));
    // Properties without rules in a branch are not repeated.
    let properties = node
        .properties
        .iter()
        .filter_map(|p| Some((p.name.clone(), branch(&p.node)?)));
    let properties: Map<String, Value> = properties.collect();
    if !properties.is_empty() {
        out.insert("properties".to_owned(), Value::Object(properties));
    }
    list(
        &mut out,
        "required",
        node.properties
            .iter()
            .filter(|p| p.required)
            .map(|p| json!(p.name))
            .collect(),
    );
    insert(
        &mut out,
        "items",
        node.items.as_ref().and_then(|items| branch(items)),
    );
    for choice in &node.choices {
        insert(
            &mut out,
            if choice.exactly_one { "oneOf" } else { "anyOf" },
            branches(choice),
        );
    }
    insert(
        &mut out,
        "not",
        node.not.as_ref().and_then(|not| branch(not)),
    );
    if out.is_empty() {
        None
    } else {
        Some(Value::Object(out))
    }
}

/// The format for clients; int-or-string has a separate keyword.
fn format(node: &Node) -> Option<String> {
    node.format.clone().filter(|format| format != INT_OR_STRING)
}

fn description(node: &Node) -> Option<String> {
    if node.known_values.is_empty() {
        return node.description.clone();
    }
    let known = node
        .known_values
        .iter()
        .map(|value| format!(" - `{value}`"))
        .collect::<Vec<_>>()
        .join("\n");
    let known = format!("Known values:\n{known}");
    Some(
        node.description
            .as_ref()
            .map_or_else(|| known.clone(), |above| format!("{above}\n\n{known}")),
    )
}

fn extensions(out: &mut Map<String, Value>, node: &Node) {
    let list_type = match &node.list_type {
        None => None,
        Some(ListType::Atomic) => Some("atomic"),
        Some(ListType::Set) => Some("set"),
        Some(ListType::Map(keys)) => {
            out.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
            Some("map")
        }
    };
    insert(out, "x-kubernetes-list-type", list_type);
    insert(
        out,
        "x-kubernetes-map-type",
        node.atomic_map
            .map(|atomic| if atomic { "atomic" } else { "granular" }),
    );
    let patch = node.patch.as_deref();
    insert(
        out,
        PATCH_STRATEGY,
        patch.map(|patch| patch.strategy.clone()),
    );
    let merge_key = patch.and_then(|patch| patch.merge_key.clone());
    insert(out, PATCH_MERGE_KEY, merge_key);
    insert(
        out,
        "x-kubernetes-embedded-resource",
        node.embedded_resource.then_some(true),
    );
    out.extend(node.extensions.iter().cloned());
}

fn rules(out: &mut Map<String, Value>, rules: &Rules) {
    insert(out, "minimum", rules.minimum.clone());
    insert(out, "maximum", rules.maximum.clone());
    if let Some(limit) = &rules.exclusive_minimum {
        out.insert("minimum".to_owned(), Value::Number(limit.clone()));
        out.insert("exclusiveMinimum".to_owned(), Value::Bool(true));
    }
    if let Some(limit) = &rules.exclusive_maximum {
        out.insert("maximum".to_owned(), Value::Number(limit.clone()));
        out.insert("exclusiveMaximum".to_owned(), Value::Bool(true));
    }
    insert(out, "multipleOf", rules.multiple_of.clone());
    insert(out, "minLength", rules.min_length);
    // A string has at most as many characters as bytes.
    insert(out, "maxLength", rules.max_length.or(rules.max_bytes));
    insert(
        out,
        "pattern",
        rules.pattern.as_ref().map(|pattern| pattern.text()),
    );
    insert(out, "minItems", rules.min_items);
    insert(out, "maxItems", rules.max_items);
    insert(out, "minProperties", rules.min_properties);
    insert(out, "maxProperties", rules.max_properties);
    list(out, "enum", rules.values.clone());
}

fn insert(out: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        out.insert(name.to_owned(), value.into());
    }
}

fn list(out: &mut Map<String, Value>, name: &str, values: Vec<Value>) {
    if !values.is_empty() {
        out.insert(name.to_owned(), Value::Array(values));
    }
}
