//! Builds the tree of a custom resource from its `openAPIV3Schema`.
//!
//! Descriptions, titles and examples are not kept: what is published is made of the document.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::super::build::object_meta;
use super::super::document_dialect::DocumentDialect;
use super::super::known_formats::is_known_format;
use super::super::node::{CustomRules, ListType, Node, Property, Rules, Types};
use super::super::problems::{Problems, join};
use super::super::recursion::PRESERVE;
use super::super::value_rules::{bounds, pattern_of};
use super::digest::{Digests, WITHOUT_EFFECT};
use super::metadata::{prune_declared, prune_default};
use crate::number;

/// The rules for the fields of every object, in their order.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Builds the tree of a whole object.
pub(super) fn root(document: &Value) -> Result<Node, Vec<String>> {
    let mut root = value(document)?;
    root.types = Types::OBJECT;
    add_fields_of_every_object(&mut root);
    root.index();
    Ok(root)
}

/// Builds the tree of a value.
pub(super) fn value(document: &Value) -> Result<Node, Vec<String>> {
    let mut builder = Builder::default();
    let mut node = builder.node(document, "");
    node.index();
    let lines = builder.problems.lines;
    if lines.is_empty() {
        Ok(node)
    } else {
        Err(lines)
    }
}

/// Nodes with a type and nothing else, which most fields have: shared by all schemas.
static PLAIN: LazyLock<[Arc<Node>; 6]> = LazyLock::new(|| {
    [
        Types::STRING,
        Types::INTEGER,
        Types::BOOLEAN,
        Types::NUMBER,
        Types::OBJECT,
        Types::ARRAY,
    ]
    .map(|types| {
        Arc::new(Node {
            dialect: DocumentDialect::CUSTOM,
            is_indexed: true,
            ..Node::of(types)
        })
    })
});

/// The metadata of custom resources, whose fields are sorted.
fn sorted_meta() -> Arc<Node> {
    static SORTED: LazyLock<Arc<Node>> = LazyLock::new(|| {
        let mut meta = Arc::unwrap_or_clone(object_meta());
        sort(&mut meta);
        meta.is_indexed = false;
        meta.index();
        Arc::new(meta)
    });
    Arc::clone(&SORTED)
}

fn sort(node: &mut Node) {
    node.properties.sort_by(|a, b| a.name.cmp(&b.name));
    for property in &mut node.properties {
        sort(property.node_mut());
    }
    for below in [&mut node.items, &mut node.additional]
        .into_iter()
        .flatten()
    {
        sort(below);
    }
}

/// Adds `apiVersion`, `kind` and `metadata`. What the schema says of them is kept as additional rules.
fn add_fields_of_every_object(node: &mut Node) {
    let is_common = |property: &Property| OF_EVERY_OBJECT.contains(&property.name.as_str());
    let properties = std::mem::take(&mut node.properties);
    let (declared, mut others): (Vec<_>, Vec<_>) = properties.into_iter().partition(is_common);
    let text = || {
        Arc::new(Node {
            is_indexed: true,
            ..Node::of(Types::STRING)
        })
    };
    let common = OF_EVERY_OBJECT.map(|name| Property {
        name: name.to_owned(),
        required: declared
            .iter()
            .any(|property| property.name == name && property.required),
        node: if name == "metadata" {
            sorted_meta()
        } else {
            text()
        },
    });
    others.extend(common);
    others.sort_by(|a, b| a.name.cmp(&b.name));
    node.properties = others;
    let has_rules = |property: &Property| !PLAIN.iter().any(|it| Arc::ptr_eq(it, &property.node));
    // Of an embedded object it matters which are described: a null is dropped, and an update may leave the object unchanged.
    let is_kept = |it: &Property| has_rules(it) || node.embedded_resource;
    let mut declared: Vec<Property> = declared.into_iter().filter(is_kept).collect();
    for property in &mut declared {
        if let Some(meta) = node.property(&property.name)
            && property.node.has_defaults
        {
            prune_declared(property.node_mut(), &meta.node);
        }
    }
    if !declared.is_empty() {
        node.custom.get_or_insert_default().declared = declared;
    }
}

#[derive(Default)]
struct Builder {
    problems: Problems,
    /// The trees of fields, by the digests of their schemas: definitions repeat large parts, such as the containers of a
    /// pod.
    known: HashMap<u128, Arc<Node>>,
    digests: Digests,
}

impl Builder {
    fn error(&mut self, path: &str, text: impl std::fmt::Display) {
        self.problems.error(path, text);
    }

    /// The tree of a field, shared if it is plain.
    fn shared(&mut self, schema: &Value, path: &str) -> Arc<Node> {
        let keywords = schema.as_object();
        let mut others = keywords
            .into_iter()
            .flatten()
            .filter(|(name, _)| !WITHOUT_EFFECT.contains(&name.as_str()));
        if let (Some((name, value)), None) = (others.next(), others.next())
            && name == "type"
            && let Some(types) = value.as_str().and_then(Types::parse)
            && let Some(plain) = PLAIN.iter().find(|plain| plain.types == types)
        {
            return Arc::clone(plain);
        }
        let digest = self.digests.of_schema(schema);
        if let Some(known) = self.known.get(&digest) {
            return Arc::clone(known);
        }
        let mut node = self.node(schema, path);
        node.index();
        let node = Arc::new(node);
        self.known.insert(digest, Arc::clone(&node));
        node
    }

    fn node(&mut self, schema: &Value, path: &str) -> Node {
        let Value::Object(keywords) = schema else {
            self.error(path, "a schema must be an object");
            return Node::default();
        };
        let int_or_string = self.flag(keywords, "x-kubernetes-int-or-string", path);
        let mut node = Node {
            dialect: DocumentDialect::CUSTOM,
            int_or_string,
            types: self.types(keywords, int_or_string, path),
            nullable: self.flag(keywords, "nullable", path),
            preserve_unknown: self.flag(keywords, PRESERVE, path),
            embedded_resource: self.flag(keywords, "x-kubernetes-embedded-resource", path),
            default: keywords
                .get("default")
                .filter(|value| !value.is_null())
                .cloned(),
            ..Node::default()
        };
        self.format(&mut node, keywords, path);
        self.structure(&mut node, keywords, path);
        self.topology(&mut node, keywords, path);
        node.rules = self.rules(keywords, path).into();
        self.junctors(&mut node, keywords, path);
        if let Some(rules) = keywords.get("x-kubernetes-validations") {
            let rules = ("x-kubernetes-validations".to_owned(), rules.clone());
            node.extensions.push(rules);
        }
        if node.embedded_resource {
            add_fields_of_every_object(&mut node);
        }
        if let Some(mut default) = node.default.take() {
            number::settle(&mut default);
            prune_default(&node, &mut default);
            node.default = Some(default);
        }
        node
    }

    fn types(&mut self, keywords: &Map<String, Value>, int_or_string: bool, path: &str) -> Types {
        let name = self.text(keywords, "type", path);
        if int_or_string {
            return Types::INTEGER.union(Types::STRING);
        }
        match name.as_deref() {
            None | Some("") => Types::ANY,
            Some(name) => Types::parse(name).unwrap_or_else(|| {
                self.error(path, format_args!("unknown type `{name}`"));
                Types::ANY
            }),
        }
    }

    fn format(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let format = self.text(keywords, "format", path);
        let json_type = (!node.int_or_string).then(|| node.types.single()).flatten();
        let (known, unknown): (Vec<_>, Vec<_>) = format
            .into_iter()
            .filter(|format| !format.is_empty())
            .partition(|format| is_known_format(json_type, format));
        node.format = known.into_iter().next();
        node.has_unknown_format = !unknown.is_empty();
    }

    fn structure(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let required = self.strings(keywords, "required", path);
        let names: HashSet<&str> = required.iter().map(String::as_str).collect();
        for (name, schema) in self.members(keywords, "properties", path) {
            let below = self.shared(schema, &join(path, name));
            node.properties.push(Property {
                name: name.clone(),
                required: names.contains(name.as_str()),
                node: below,
            });
        }
        node.properties.sort_by(|a, b| a.name.cmp(&b.name));
        let described = keywords.get("properties").and_then(Value::as_object);
        let is_described = |name: &str| described.is_some_and(|fields| fields.contains_key(name));
        let undescribed: Vec<String> = required
            .into_iter()
            .filter(|name| !is_described(name))
            .collect();
        if !undescribed.is_empty() {
            node.custom.get_or_insert_default().required = undescribed;
        }
        match keywords.get("additionalProperties") {
            None | Some(Value::Null) => {}
            // Keys are known then, but not what they hold.
            Some(Value::Bool(allowed)) => {
                node.additional = Some(Box::new(Node::closed().clone()));
                if !allowed {
                    node.custom.get_or_insert_default().refuses_unknown = true;
                }
            }
            Some(schema) => {
                let values = self.node(schema, &format!("{path}[*]"));
                node.additional = Some(Box::new(values));
            }
        }
        if let Some(items) = keywords.get("items").filter(|items| !items.is_null()) {
            let items = self.node(items, &format!("{path}[*]"));
            node.items = Some(Box::new(items));
            node.pass_on_unknown();
        }
    }

    fn topology(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let keys = self.strings(keywords, "x-kubernetes-list-map-keys", path);
        let list_type = self.text(keywords, "x-kubernetes-list-type", path);
        node.list_type = match list_type.as_deref() {
            Some("atomic") => Some(ListType::Atomic),
            Some("set") => Some(ListType::Set),
            Some("map") => Some(ListType::Map(keys)),
            None => None,
            Some(other) => {
                self.error(path, format_args!("unknown list type `{other}`"));
                None
            }
        };
        let map_type = self.text(keywords, "x-kubernetes-map-type", path);
        node.atomic_map = map_type.map(|map_type| map_type == "atomic");
    }

    fn rules(&mut self, keywords: &Map<String, Value>, path: &str) -> Rules {
        for name in ["minimum", "maximum", "multipleOf"] {
            let value = keywords.get(name);
            if value.is_some_and(|value| !value.is_null() && !value.is_number()) {
                self.error(path, format_args!("`{name}` must be a number"));
            }
        }
        for name in ["exclusiveMinimum", "exclusiveMaximum"] {
            self.flag(keywords, name, path);
        }
        let pattern = self.text(keywords, "pattern", path);
        let pattern = pattern.filter(|pattern| !pattern.is_empty());
        let values = keywords.get("enum").and_then(Value::as_array);
        Rules {
            values: values.cloned().unwrap_or_default(),
            pattern: pattern.and_then(|text| pattern_of(&mut self.problems, &text, path)),
            ..bounds(keywords)
        }
    }

    fn junctors(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let [all_of, any_of, one_of] = ["allOf", "anyOf", "oneOf"].map(|name| {
            let branches = keywords.get(name).and_then(Value::as_array);
            let branches = branches.into_iter().flatten();
            branches
                .map(|branch| self.branch(branch, path))
                .collect::<Vec<_>>()
        });
        let not = keywords.get("not").filter(|not| !not.is_null());
        let not = not.map(|not| self.branch(not, path));
        if all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && not.is_none() {
            return;
        }
        let custom = node.custom.get_or_insert_default();
        **custom = CustomRules {
            all_of,
            any_of,
            one_of,
            not,
            ..std::mem::take(custom)
        };
    }

    /// A schema that judges values and describes none.
    fn branch(&mut self, schema: &Value, path: &str) -> Node {
        self.node(schema, path)
    }

    fn text(&mut self, keywords: &Map<String, Value>, name: &str, path: &str) -> Option<String> {
        match keywords.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.error(path, format_args!("`{name}` must be a string"));
                None
            }
        }
    }

    fn flag(&mut self, keywords: &Map<String, Value>, name: &str, path: &str) -> bool {
        match keywords.get(name) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.error(path, format_args!("`{name}` must be true or false"));
                false
            }
        }
    }

    fn strings(&mut self, keywords: &Map<String, Value>, name: &str, path: &str) -> Vec<String> {
        let list = match keywords.get(name) {
            None | Some(Value::Null) => return Vec::new(),
            Some(list) => list.as_array(),
        };
        let strings = list.map(|list| list.iter().map(|item| item.as_str().map(str::to_owned)));
        strings.and_then(Iterator::collect).unwrap_or_else(|| {
            self.error(path, format_args!("`{name}` must be a list of strings"));
            Vec::new()
        })
    }

    fn members<'a>(
        &mut self,
        keywords: &'a Map<String, Value>,
        name: &str,
        path: &str,
    ) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        let members = match keywords.get(name) {
            Some(Value::Object(members)) => Some(members),
            None | Some(Value::Null) => None,
            Some(_) => {
                self.error(path, format_args!("`{name}` must be an object"));
                None
            }
        };
        members.into_iter().flatten()
    }
}
