//! Builds the tree from JSON Schema (schemars' output or a CRD's `openAPIV3Schema`). Every problem is one line that
//! names the field; building continues, so that all of them are reported.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::combine;
use super::keywords::{flag, is_anything, is_null, list, ordered, strings, text};
use super::node::{
    Canonical, Choice, Node, OBJECT_META_NAME, PATCH_MERGE_KEY, PATCH_STRATEGY, Property, QUANTITY,
    Rules, Types,
};
use super::plain_text::plain_text;
use super::problems::{Problems, join};
use super::recursion::{self, PRESERVE};
use super::root;
use super::value_rules;

/// What schemars makes of the type `ObjectMeta` in `apiloom-meta`, which is above this crate. A test there compares it, and writes it with
/// `UPDATE=1`.
pub const OBJECT_META: &str = include_str!("object_meta.json");

/// Keyword for defaults, by the origin of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaOrigin {
    /// schemars: `x-apiloom-default`; its `default` keywords are those of serde, and are dropped.
    Types,
    /// A CRD: `default`.
    Document,
}

/// Keywords that structural schemas do not support.
const REFUSED: [&str; 12] = [
    "prefixItems",
    "additionalItems",
    "contains",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "minContains",
    "maxContains",
];

/// The keyword for further keywords of a type, as text with their JSON.
const FURTHER: &str = "x-apiloom-schema";

/// Builds a tree, and collects problems.
pub(crate) struct Builder<'a> {
    source: SchemaOrigin,
    definitions: Option<&'a Map<String, Value>>,
    /// Names of the definitions being built, outermost first: a repeated name is a cycle.
    open: Vec<&'a str>,
    /// Whether the field being built keeps unknown fields, and so ends recursion.
    ends_recursion: bool,
    /// Number of references so far that ended recursion.
    ended: usize,
    /// Number of junctors around the schema being built, whose fields are described outside of them.
    junctors: usize,
    pub(crate) problems: Problems,
}

impl<'a> Builder<'a> {
    /// A builder for one schema document.
    pub(crate) fn new(root: &'a Value, source: SchemaOrigin) -> Self {
        let definitions = ["$defs", "definitions"]
            .iter()
            .find_map(|key| root.get(key)?.as_object());
        Self {
            source,
            definitions,
            open: Vec::new(),
            ends_recursion: false,
            ended: 0,
            junctors: 0,
            problems: Problems::default(),
        }
    }

    /// Whether the schema is that of a CRD.
    fn is_document(&self) -> bool {
        self.source == SchemaOrigin::Document
    }

    /// Records a problem of the field at `path`.
    pub(crate) fn error(&mut self, path: &str, text: impl std::fmt::Display) {
        self.problems.error(path, text);
    }

    /// Builds the tree of a schema.
    pub(crate) fn node(&mut self, schema: &'a Value, path: &str) -> Node {
        let keywords = match schema {
            Value::Bool(true) => return Node::of(Types::ANY),
            Value::Object(keywords) => keywords,
            _ => {
                self.error(path, "a schema must be an object");
                return Node::default();
            }
        };
        let outer = self.ends_recursion;
        self.ends_recursion |= flag(keywords, PRESERVE);
        let ended = self.ended;
        let mut node = self.own(keywords, path);
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            let target = self.reference(reference, path);
            combine::both(&mut self.problems, &mut node, target, path);
        }
        self.junctors(&mut node, keywords, path);
        self.ends_recursion = outer;
        // Then the elements keep unknown fields, not the list or the map itself.
        if self.ended > ended && (node.items.is_some() || node.is_map()) {
            node.preserve_unknown = false;
        }
        if node.embedded_resource {
            // A free value that must be an object keeps all its fields.
            node.preserve_unknown |= node.is_open() && self.source == SchemaOrigin::Types;
            if node.types.is_any() {
                node.types = Types::OBJECT;
            }
            root::add_type_and_metadata(&mut node, object_meta());
        }
        // The rules of a CRD are not checked here.
        if self.source == SchemaOrigin::Types {
            super::fit::check(&mut self.problems, &node, path);
        }
        self.further(&mut node, keywords, path);
        node.pass_on_unknown();
        node
    }

    fn reference(&mut self, reference: &str, path: &str) -> Node {
        let name = recursion::definition_name(reference);
        let found = self.definitions.and_then(|d| d.get_key_value(&name));
        if reference == "#" {
            if !self.ends_recursion {
                self.error(path, recursion::problem(None));
            }
            return self.end(None);
        }
        let Some((name, target)) = found else {
            self.error(path, format_args!("reference `{reference}` leads nowhere"));
            return Node::default();
        };
        if self.ends_recursion && recursion::is_endless(self.definitions, &self.open, name) {
            return self.end(Some((name, target)));
        }
        if let Some(first) = self.open.iter().position(|open| open == name) {
            let mut cycle = self.open[first..].to_vec();
            cycle.push(name);
            self.error(path, recursion::problem(Some(&cycle)));
            return Node::default();
        }
        self.open.push(name);
        let ends = std::mem::take(&mut self.ends_recursion);
        let mut node = self.node(target, path);
        self.ends_recursion = ends;
        self.open.pop();
        name_type(&mut node, name);
        node
    }

    /// The node in place of a type that would lead back to itself.
    fn end(&mut self, target: Option<(&str, &Value)>) -> Node {
        self.ended += 1;
        let keyword = |name: &str| target?.1.get(name)?.as_str();
        let types = match (target, keyword("type").and_then(Types::parse)) {
            (None, _) => Types::OBJECT,
            (Some(_), types) => types.unwrap_or_default(),
        };
        Node {
            preserve_unknown: types.takes(Types::OBJECT),
            is_end: true,
            description: self.description(keyword("description")),
            type_name: target.map(|(name, _)| name.to_owned()),
            ..Node::of(types)
        }
    }

    /// A description for clients; that of a Rust type is converted from a documentation comment.
    fn description(&self, text: Option<&str>) -> Option<String> {
        match self.source {
            SchemaOrigin::Types => text.map(plain_text).filter(|text| !text.is_empty()),
            SchemaOrigin::Document => text.map(str::to_owned),
        }
    }

    /// Builds the keywords of this schema itself, without references and alternatives.
    fn own(&mut self, keywords: &'a Map<String, Value>, path: &str) -> Node {
        let mut node = Node {
            types: value_rules::types(&mut self.problems, keywords, path),
            ..Node::default()
        };
        for name in REFUSED.iter().filter(|name| keywords.contains_key(**name)) {
            let text = match *name {
                "prefixItems" => {
                    "a tuple has no structural schema; use a struct with named fields".to_owned()
                }
                name => format!("keyword `{name}` has no structural form"),
            };
            self.error(path, text);
        }
        // A value that could not be written as JSON is null here; it is reported, since dropping the keyword would
        // drop its rule.
        for (name, _) in keywords
            .iter()
            .filter(|(name, value)| name.starts_with("x-apiloom-") && value.is_null())
        {
            self.error(path, format_args!("keyword `{name}` has no value"));
        }
        node.nullable = flag(keywords, "nullable") || flag(keywords, "x-apiloom-nullable");
        node.format = text(keywords, "format");
        node.title = text(keywords, "title");
        node.description = self.description(keywords.get("description").and_then(Value::as_str));
        node.preserve_unknown = flag(keywords, PRESERVE);
        node.int_or_string = flag(keywords, "x-kubernetes-int-or-string");
        node.embedded_resource = flag(keywords, "x-kubernetes-embedded-resource");
        node.omits_empty = flag(keywords, "x-apiloom-omit-empty");
        node.is_sensitive = flag(keywords, "x-apiloom-sensitive");
        node.is_json_schema = flag(keywords, "x-apiloom-json-schema");
        node.canonical = keywords
            .get("x-apiloom-canonical")
            .and_then(Value::as_str)
            .and_then(Canonical::parse);
        if node.int_or_string {
            let both = Types::INTEGER.union(Types::STRING);
            if !node.types.takes(both) {
                self.error(
                    path,
                    format_args!(
                        "a value of type {} is not an integer or a string; use IntOrString",
                        node.types.names().join(" or ")
                    ),
                );
            }
            node.types = both;
        }
        if node.format.as_deref() == Some(QUANTITY) {
            node.types = node.types.union(Types::NUMBER);
        }
        self.structure(&mut node, keywords, path);
        value_rules::topology(&mut self.problems, &mut node, keywords, path);
        node.default = match self.source {
            SchemaOrigin::Types if flag(keywords, "x-apiloom-default-null") => Some(&Value::Null),
            SchemaOrigin::Types => keywords
                .get("x-apiloom-default")
                .filter(|value| !value.is_null()),
            SchemaOrigin::Document => keywords.get("default").filter(|value| !value.is_null()),
        }
        .cloned();
        node.rules = value_rules::rules(&mut self.problems, keywords, path).into();
        self.open_enum(&mut node, keywords);
        let discriminator = node
            .rules
            .union
            .as_ref()
            .and_then(|union| union.discriminator.as_deref());
        let discriminator = discriminator.and_then(|name| node.property(name));
        let closed = discriminator.is_some_and(|property| !property.node.rules.values.is_empty());
        if closed && let Some(union) = &mut node.rules.union {
            union.closed = true;
        }
        if self.source == SchemaOrigin::Types {
            value_rules::check_members(&mut self.problems, &node, path);
        }
        for name in list(keywords, "x-apiloom-update").filter_map(Value::as_str) {
            if !node.update.set(name) {
                self.error(path, format_args!("unknown update rule `{name}`"));
            }
        }
        let extensions = keywords
            .iter()
            .filter(|(name, _)| is_further_extension(name));
        node.extensions = extensions
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        node
    }

    fn structure(&mut self, node: &mut Node, keywords: &'a Map<String, Value>, path: &str) {
        let required: Vec<&str> = list(keywords, "required")
            .filter_map(Value::as_str)
            .collect();
        if let Some(properties) = keywords.get("properties").and_then(Value::as_object) {
            let ends = std::mem::take(&mut self.ends_recursion);
            for name in ordered(properties, keywords) {
                let property = &properties[name];
                let child = self.node(property, &join(path, name));
                // schemars lists what has no default of serde: what has one of ours need not be sent.
                let is_optional = property
                    .as_object()
                    .is_some_and(|keywords| flag(keywords, "x-apiloom-optional"));
                node.properties.push(Property {
                    name: name.to_owned(),
                    required: required.contains(&name) && !is_optional,
                    node: child.into(),
                });
            }
            self.ends_recursion = ends;
        }
        // A branch may require a field that only its parent describes.
        for name in required {
            if node.property(name).is_none() {
                node.properties.push(Property {
                    name: name.to_owned(),
                    required: true,
                    node: Arc::default(),
                });
            }
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            match keywords.get(keyword) {
                None | Some(Value::Bool(false)) => {}
                Some(schema) if is_anything(schema) => node.preserve_unknown = true,
                Some(schema) => {
                    let path = format!("{path}[*]");
                    self.refuse_null(schema, &path, "value of a map");
                    node.additional = Some(Box::new(self.node(schema, &path)));
                }
            }
        }
        self.pattern_properties(node, keywords, path);
        if let Some(names) = keywords.get("propertyNames") {
            node.keys = Some(Box::new(self.node(names, path)));
        }
        if let Some(items) = keywords.get("items") {
            let path = format!("{path}[*]");
            self.refuse_null(items, &path, "element of a list");
            node.items = Some(Box::new(self.node(items, &path)));
        }
    }

    /// Reports an option inside of a list or a map: decoding would convert each null to an empty value.
    fn refuse_null(&mut self, schema: &Value, path: &str, what: &str) {
        let types = schema.get("type").and_then(Value::as_array);
        let choices = schema.get("anyOf").and_then(Value::as_array);
        let has_null = types.is_some_and(|types| types.contains(&json!("null")))
            || choices.is_some_and(|choices| choices.iter().any(is_null));
        if has_null && self.source == SchemaOrigin::Types {
            self.error(
                path,
                format_args!("null is no {what}: write the type without Option"),
            );
        }
    }

    /// schemars expresses maps with number keys as a pattern for the keys.
    fn pattern_properties(
        &mut self,
        node: &mut Node,
        keywords: &'a Map<String, Value>,
        path: &str,
    ) {
        let Some(patterns) = keywords.get("patternProperties").and_then(Value::as_object) else {
            return;
        };
        let mut entries = patterns.iter();
        let (Some((pattern, schema)), None, None) =
            (entries.next(), entries.next(), &node.additional)
        else {
            self.error(path, "keys of several patterns have no structural schema");
            return;
        };
        let below = format!("{path}[*]");
        self.refuse_null(schema, &below, "value of a map");
        node.additional = Some(Box::new(self.node(schema, &below)));
        let rules = Rules {
            pattern: value_rules::pattern_of(&mut self.problems, pattern, path),
            ..Rules::default()
        };
        node.keys = Some(Box::new(Node {
            rules: rules.into(),
            ..Node::of(Types::STRING)
        }));
    }

    fn open_enum(&mut self, node: &mut Node, keywords: &Map<String, Value>) {
        node.known_values = list(keywords, "x-apiloom-open-enum").cloned().collect();
        if !node.known_values.is_empty() {
            node.types = Types::STRING;
            node.rules.values.clear();
        }
    }

    /// Builds the schemas that the value must match too.
    fn junctors(&mut self, node: &mut Node, keywords: &'a Map<String, Value>, path: &str) {
        for part in list(keywords, "allOf") {
            let part = self.part(part, path);
            // A node has one pattern; a part with another is a choice of one.
            if self.is_document() && has_other_rules(node, &part) {
                node.choices.push(Choice {
                    exactly_one: false,
                    branches: vec![part],
                });
            } else {
                combine::both(&mut self.problems, node, part, path);
            }
        }
        if !node.int_or_string {
            self.choice(node, keywords, "oneOf", path);
            self.choice(node, keywords, "anyOf", path);
        }
        if let Some(not) = keywords.get("not") {
            node.not = Some(Box::new(self.part(not, path)));
        }
    }

    /// Builds a schema inside of a junctor.
    fn part(&mut self, schema: &'a Value, path: &str) -> Node {
        self.junctors += 1;
        let node = self.node(schema, path);
        self.junctors -= 1;
        node
    }

    /// Adds the keywords that `#[api(schema = "..")]` has as JSON. They have the syntax of a CRD: branches judge what the
    /// type describes.
    fn further(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let Some(Value::String(text)) = keywords.get(FURTHER) else {
            return;
        };
        let further = match serde_json::from_str(text) {
            Ok(Value::Object(further)) => further,
            Ok(_) => return self.error(path, format_args!("`schema` is no JSON object: {text}")),
            Err(error) => {
                return self.error(path, format_args!("`schema` is not JSON: {error}: {text}"));
            }
        };
        let root = Value::Null;
        let mut builder = Builder::new(&root, SchemaOrigin::Document);
        let own = builder.own(&further, path);
        let is_object = own.embedded_resource && !node.embedded_resource;
        let declared = own.properties.clone();
        combine::both(&mut builder.problems, node, own, path);
        builder.junctors(node, &further, path);
        if is_object {
            root::add_type_and_metadata(node, object_meta());
            // What it says of them holds too.
            for property in declared {
                let of_every_object = node.property_mut(&property.name);
                if let Some(own) = of_every_object.filter(|own| own.name != "metadata") {
                    *own = property;
                }
            }
        }
        self.problems.lines.extend(builder.problems.lines);
    }

    /// Builds `oneOf` or `anyOf`: an Option, an enum of strings, an integer or a string, or variants.
    fn choice(
        &mut self,
        node: &mut Node,
        keywords: &'a Map<String, Value>,
        keyword: &str,
        path: &str,
    ) {
        // Null among the alternatives means an Option.
        let schemas: Vec<&Value> = list(keywords, keyword)
            .filter(|schema| !is_null(schema))
            .collect();
        if list(keywords, keyword).next().is_some() && schemas.is_empty() {
            self.error(
                path,
                "the unit type holds nothing and has no structural schema",
            );
        }
        self.junctors += 1;
        let mut branches: Vec<Node> = schemas
            .into_iter()
            .map(|schema| self.node(schema, path))
            .collect();
        self.junctors -= 1;
        if branches.is_empty() {
            return;
        }
        if branches.len() == 1 {
            let only = branches.remove(0);
            combine::both(&mut self.problems, node, only, path);
        } else if !node.known_values.is_empty() || combine::is_open_enum(&branches) {
            combine::open_enum(node, &branches);
        } else if combine::is_plain_enum(&branches) {
            let order = strings(keywords, "x-apiloom-order");
            combine::plain_enum(node, branches, &order);
        } else if combine::is_int_or_string(&branches) {
            node.int_or_string = true;
            node.types = Types::INTEGER.union(Types::STRING);
        } else {
            // In a CRD, branches only validate the fields that their parent describes, so there is nothing to hoist.
            match self.source {
                SchemaOrigin::Types => combine::hoist(&mut self.problems, node, &branches, path),
                // The schema around all junctors describes their fields.
                SchemaOrigin::Document if self.junctors > 0 => {}
                SchemaOrigin::Document => {
                    combine::check_described(&mut self.problems, node, &branches, path);
                }
            }
            node.choices.push(Choice {
                exactly_one: keyword == "oneOf",
                branches,
            });
        }
    }
}

/// Whether both have a rule of which a node has room for one.
fn has_other_rules(node: &Node, part: &Node) -> bool {
    fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
        a.zip(b).is_some_and(|(a, b)| a != b)
    }
    let (own, other) = (&node.rules, &part.rules);
    differ(node.format.as_ref(), part.format.as_ref())
        || differ(own.pattern.as_ref(), other.pattern.as_ref())
        || differ(own.multiple_of.as_ref(), other.multiple_of.as_ref())
}

/// The schema of `metadata`: types, order and topology. Its values are validated by `validation`, for all kinds. All
/// schemas share it.
pub(crate) fn object_meta() -> Arc<Node> {
    static OBJECT_META: LazyLock<Arc<Node>> = LazyLock::new(|| Arc::new(new_object_meta()));
    Arc::clone(&OBJECT_META)
}

/// Notes the type of a node. In Go the types of metadata are of another package than the kinds that have them.
fn name_type(node: &mut Node, name: &str) {
    let of_meta = matches!(name, "ObjectMeta" | "OwnerReference" | "ManagedFieldsEntry");
    node.title.take_if(|_| of_meta);
    let package = if of_meta { "meta.v1." } else { "" };
    node.type_name = Some(format!("{package}{name}"));
}

fn new_object_meta() -> Node {
    // Malformed JSON would be the problem of a value that is no object.
    let schema: Value = serde_json::from_str(OBJECT_META).unwrap_or_default();
    let mut builder = Builder::new(&schema, SchemaOrigin::Types);
    let mut meta = builder.node(&schema, "metadata");
    debug_assert!(
        builder.problems.lines.is_empty(),
        "the meta types are structural: {:?}",
        builder.problems.lines
    );
    meta.title = None;
    meta.type_name = Some(OBJECT_META_NAME.to_owned());
    meta.description = Some("The metadata that every object has.".to_owned());
    // Kubernetes merges owners by uid and finalizers as a set, but does not refuse duplicates there.
    for name in ["ownerReferences", "finalizers"] {
        if let Some(property) = meta.property_mut(name) {
            property.node_mut().twins_allowed = true;
        }
    }
    let mut entries = meta.property_mut("managedFields");
    if let Some(entries) = &mut entries {
        entries.node_mut().is_checked_apart = true;
    }
    let entry = entries.and_then(|entries| entries.node_mut().items.as_deref_mut());
    let fields = entry.and_then(|entry| entry.property_mut("fieldsV1"));
    if let Some(fields) = fields {
        fields.node_mut().is_json_text = true;
    }
    meta.index();
    meta
}

/// Keywords that are printed, but not used by the engine.
fn is_further_extension(name: &str) -> bool {
    const READ: [&str; 9] = [
        PATCH_STRATEGY,
        PATCH_MERGE_KEY,
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        PRESERVE,
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-group-version-kind",
    ];
    name == "example" || name.starts_with("x-kubernetes-") && !READ.contains(&name)
}
