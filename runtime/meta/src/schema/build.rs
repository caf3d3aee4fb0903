//! Builds the tree from JSON Schema (schemars' output or a CRD's `openAPIV3Schema`). Every problem is one line that
//! names the field; building continues, so that all of them are reported.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Number, Value, json};

use super::combine;
use super::keywords::{flag, list, number, size, strings, text};
use super::node::{
    Canonical, Choice, ListType, Node, OBJECT_META_NAME, PATCH_MERGE_KEY, PATCH_STRATEGY,
    PatchStrategy, Property, QUANTITY, Rules, Types, Union,
};
use super::plain_text::plain_text;
use super::problems::{Problems, join};
use super::recursion::{self, PRESERVE};
use super::root;
use crate::regexp::Pattern;
use crate::types::ObjectMeta;

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
    pub(super) junctors: usize,
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
    pub(super) fn is_document(&self) -> bool {
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
    pub(super) fn own(&mut self, keywords: &'a Map<String, Value>, path: &str) -> Node {
        let mut node = Node {
            types: self.types(keywords, path),
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
        self.topology(&mut node, keywords, path);
        node.default = match self.source {
            SchemaOrigin::Types if flag(keywords, "x-apiloom-default-null") => Some(&Value::Null),
            SchemaOrigin::Types => keywords
                .get("x-apiloom-default")
                .filter(|value| !value.is_null()),
            SchemaOrigin::Document => keywords.get("default").filter(|value| !value.is_null()),
        }
        .cloned();
        node.rules = self.rules(keywords, path).into();
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
            self.members(&node, path);
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

    /// Reports members of a union that no value of its tag selects.
    fn members(&mut self, node: &Node, path: &str) {
        let Some(union) = &node.rules.union else {
            return;
        };
        let tag = union.discriminator.as_ref();
        let Some(tag) = tag.and_then(|name| node.property(name)) else {
            return;
        };
        let known = if tag.node.known_values.is_empty() {
            &tag.node.rules.values
        } else {
            &tag.node.known_values
        };
        if known.is_empty() {
            return;
        }
        for (member, values) in &union.members {
            for value in values.iter().filter(|value| !known.contains(&json!(value))) {
                self.error(
                    &join(path, member),
                    format_args!(
                        "the tag `{}` has no value {value:?}, which would select this member",
                        tag.name
                    ),
                );
            }
        }
    }

    fn types(&mut self, keywords: &Map<String, Value>, path: &str) -> Types {
        let names: Vec<&str> = match keywords.get("type") {
            None => return Types::ANY,
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => {
                self.error(path, "`type` must be a string");
                return Types::ANY;
            }
        };
        let mut types: Option<Types> = None;
        // Null beside another type means an Option: absent, not null.
        for name in names.iter().filter(|name| **name != "null") {
            match Types::parse(name) {
                Some(one) => types = Some(types.map_or(one, |t| t.union(one))),
                None => self.error(path, format_args!("unknown type `{name}`")),
            }
        }
        if types.is_none() && !names.is_empty() && names.iter().all(|n| *n == "null") {
            self.error(
                path,
                "the unit type holds nothing and has no structural schema",
            );
        }
        types.unwrap_or_default()
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
            pattern: self.pattern(pattern, path),
            ..Rules::default()
        };
        node.keys = Some(Box::new(Node {
            rules: rules.into(),
            ..Node::of(Types::STRING)
        }));
    }

    fn topology(&mut self, node: &mut Node, keywords: &Map<String, Value>, path: &str) {
        let keys: Vec<String> = list(keywords, "x-kubernetes-list-map-keys")
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        node.twins_allowed = flag(keywords, "x-apiloom-duplicates");
        node.list_type = match keywords
            .get("x-kubernetes-list-type")
            .and_then(Value::as_str)
        {
            None if flag(keywords, "uniqueItems") => {
                if node.items.as_ref().is_some_and(|items| is_scalar(items)) {
                    Some(ListType::Set)
                } else {
                    None
                }
            }
            None => None,
            Some("atomic") => Some(ListType::Atomic),
            Some("set") => Some(ListType::Set),
            Some("map") if keys.is_empty() => {
                self.error(
                    path,
                    "a list of type map needs `x-kubernetes-list-map-keys`",
                );
                None
            }
            Some("map") => {
                for key in &keys {
                    if node
                        .items
                        .as_ref()
                        .is_some_and(|items| items.property(key).is_none() && !items.is_open())
                    {
                        self.error(
                            path,
                            format_args!("list map key `{key}` is not a field of its items"),
                        );
                    }
                }
                Some(ListType::Map(keys))
            }
            Some(other) => {
                self.error(path, format_args!("unknown list type `{other}`"));
                None
            }
        };
        node.atomic_map = match keywords
            .get("x-kubernetes-map-type")
            .and_then(Value::as_str)
        {
            None => None,
            Some("atomic") => Some(true),
            Some("granular") => Some(false),
            Some(other) => {
                self.error(path, format_args!("unknown map type `{other}`"));
                None
            }
        };
        node.patch = text(keywords, PATCH_STRATEGY).map(|strategy| {
            Box::new(PatchStrategy {
                strategy,
                merge_key: text(keywords, PATCH_MERGE_KEY),
            })
        });
    }

    fn rules(&mut self, keywords: &Map<String, Value>, path: &str) -> Rules {
        let mut rules = Rules {
            minimum: number(keywords, "minimum"),
            maximum: number(keywords, "maximum"),
            exclusive_minimum: number(keywords, "exclusiveMinimum"),
            exclusive_maximum: number(keywords, "exclusiveMaximum"),
            multiple_of: number(keywords, "multipleOf"),
            min_length: size(keywords, "minLength"),
            max_length: size(keywords, "maxLength"),
            min_bytes: size(keywords, "x-apiloom-min-bytes"),
            max_bytes: size(keywords, "x-apiloom-max-bytes"),
            min_items: size(keywords, "minItems"),
            max_items: size(keywords, "maxItems"),
            min_properties: size(keywords, "minProperties"),
            max_properties: size(keywords, "maxProperties"),
            values: list(keywords, "enum")
                .filter(|value| !value.is_null())
                .cloned()
                .collect(),
            not_equal: keywords.get("x-apiloom-not-equal").cloned(),
            unique: flag(keywords, "x-apiloom-unique") || flag(keywords, "uniqueItems"),
            required: flag(keywords, "x-apiloom-required"),
            forbidden: flag(keywords, "x-apiloom-forbidden"),
            requires: strings(keywords, "x-apiloom-requires"),
            conflicts: strings(keywords, "x-apiloom-conflicts"),
            ..Rules::default()
        };
        // In OpenAPI 3.0, exclusive bounds are flags for the inclusive ones.
        if flag(keywords, "exclusiveMinimum") {
            rules.exclusive_minimum = rules.minimum.take();
        }
        if flag(keywords, "exclusiveMaximum") {
            rules.exclusive_maximum = rules.maximum.take();
        }
        if rules
            .multiple_of
            .as_ref()
            .and_then(Number::as_f64)
            .is_some_and(|step| step <= 0.0)
        {
            self.error(path, "`multipleOf` must be greater than 0");
            rules.multiple_of = None;
        }
        if let Some(value) = keywords.get("const") {
            rules.values = vec![value.clone()];
        }
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
            rules.pattern = self.pattern(pattern, path);
        }
        if let Some(union) = keywords.get("x-apiloom-union") {
            rules.union = self.union(union, keywords, path);
        }
        rules
    }

    fn pattern(&mut self, text: &str, path: &str) -> Option<Pattern> {
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(reason) => {
                self.error(
                    path,
                    format_args!("pattern `{text}` is not a regular expression: {reason}"),
                );
                None
            }
        }
    }

    fn union(&mut self, union: &Value, keywords: &Map<String, Value>, path: &str) -> Option<Union> {
        let Some(members) = union.get("members").and_then(Value::as_object) else {
            self.error(path, "`x-apiloom-union` needs `members`");
            return None;
        };
        let properties = keywords.get("properties").and_then(Value::as_object);
        for name in members.keys() {
            if properties.is_none_or(|p| !p.contains_key(name)) {
                self.error(path, format_args!("union member `{name}` is not a field"));
            }
        }
        let members = ordered(members, keywords).into_iter().map(|name| {
            let values = match &members[name] {
                Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
                value => vec![value.as_str().unwrap_or(name)],
            };
            let values = values.into_iter().map(str::to_owned).collect();
            (name.to_owned(), values)
        });
        Some(Union {
            discriminator: union
                .get("discriminator")
                .and_then(Value::as_str)
                .map(str::to_owned),
            members: members.collect(),
            allow_none: union
                .get("allowNone")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            closed: false,
        })
    }

    fn open_enum(&mut self, node: &mut Node, keywords: &Map<String, Value>) {
        node.known_values = list(keywords, "x-apiloom-open-enum").cloned().collect();
        if !node.known_values.is_empty() {
            node.types = Types::STRING;
            node.rules.values.clear();
        }
    }

    /// Builds `oneOf` or `anyOf`: an Option, an enum of strings, an integer or a string, or variants.
    pub(super) fn choice(
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
    let schema = root::schema_of::<ObjectMeta>();
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

/// The names of a map of schemas: those of `x-apiloom-order` first and in its order, then the others.
fn ordered<'a>(names: &'a Map<String, Value>, keywords: &'a Map<String, Value>) -> Vec<&'a str> {
    let order: Vec<&str> = list(keywords, "x-apiloom-order")
        .filter_map(Value::as_str)
        .filter(|name| names.contains_key(*name))
        .collect();
    let rest = names
        .keys()
        .map(String::as_str)
        .filter(|name| !order.contains(name));
    order.iter().copied().chain(rest).collect()
}

fn is_null(schema: &Value) -> bool {
    let only_null = |values: &Value| {
        values
            .as_array()
            .is_some_and(|v| !v.is_empty() && v.iter().all(Value::is_null))
    };
    schema.get("type").is_some_and(|t| t == "null")
        || schema.get("enum").is_some_and(only_null)
        || schema.get("const").is_some_and(Value::is_null)
}

fn is_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(any) => *any,
        Value::Object(keywords) => keywords.is_empty(),
        _ => false,
    }
}

fn is_scalar(node: &Node) -> bool {
    node.properties.is_empty()
        && node.additional.is_none()
        && node.items.is_none()
        && !node.types.is_any()
        && !node.types.accepts(&Value::Object(Map::new()))
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
