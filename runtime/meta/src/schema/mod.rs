//! The structural schema and the one engine that walks a document against it.
//!
//! One schema per kind is the source of truth: unknown and duplicate fields, pruning, nulls, defaults, validation and
//! list topology all read the same tree, for compiled kinds and, later, for run-time CRDs.

mod attach;
pub(crate) mod build;
mod cel;
mod combine;
mod default;
mod difference;
mod equality;
mod fit;
pub(crate) mod format;
pub(crate) mod node;
pub(crate) mod number;
mod openapi;
pub(crate) mod path;
mod pattern;
mod plain_text;
mod problems;
mod recursion;
pub(crate) use self::default::{default as default_value, drops_null};
mod root;
mod sample;
pub mod structural;
mod transition;
mod union;
mod validate;
mod walk;

use serde_json::Value;

use self::build::{Builder, Source};
use self::node::{Child, Node, Types};
use crate::field::FieldError;
use crate::kind::{ApiType, Hooks};
use crate::path::JsonPath;
use crate::query::{JsonQuery, QueryStep};

pub use self::difference::merge_difference;
pub use self::openapi::Metadata;
pub use self::plain_text::plain_text;

/// A structural schema: what a document of a kind may hold.
///
/// ```
/// use apiloom_meta::{kind::Hooks, schema::Schema};
/// use serde_json::json;
/// let schema = Schema::from_json(
///     &json!({"type": "object", "required": ["size"], "properties": {
///         "size": {"type": "integer", "maximum": 5},
///         "color": {"type": "string", "default": "red"}}}),
///     &Hooks::default(),
/// )?;
/// let mut document = json!({"size": 9, "bogus": 1});
/// schema.default(&mut document);
/// schema.prune(&mut document);
/// assert_eq!(document, json!({"size": 9, "color": "red"}));
/// let errors = schema.validate(&document);
/// assert_eq!(errors[0].to_string(), "size: Invalid value: 9: must be less than or equal to 5");
/// # Ok::<(), apiloom_meta::schema::SchemaErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
    has_singles: bool,
}

/// A schema as a CustomResourceDefinition has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdSchema {
    /// The `openAPIV3Schema`.
    pub schema: Value,
    /// What the server checks and the definition does not say, a line for each.
    pub unsaid: Vec<String>,
}

/// Why a type has no structural schema: one line per offending field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct SchemaErrors(pub Vec<String>);

impl Schema {
    /// The structural schema of a root type (a `Resource`): `metadata` is replaced by the schema of `ObjectMeta`,
    /// `apiVersion` and `kind` are added.
    ///
    /// # Errors
    /// When schemars gives something that no structural schema can say; each line names the field.
    pub fn for_resource<T: schemars::JsonSchema + ApiType>() -> Result<Self, SchemaErrors> {
        let mut schema = root::schema_of::<T>();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("metadata");
        }
        Self::build(&schema, Source::Types, &T::hooks(), true)
    }

    /// The structural schema of any type.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn for_type<T: schemars::JsonSchema + ApiType>() -> Result<Self, SchemaErrors> {
        Self::build(&root::schema_of::<T>(), Source::Types, &T::hooks(), false)
    }

    /// The schema of a JSON document in the spelling of a CRD's `openAPIV3Schema`: here `default` gives defaults.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn from_json(schema: &Value, hooks: &Hooks) -> Result<Self, SchemaErrors> {
        Self::build(schema, Source::Document, hooks, false)
    }

    /// The schema of a kind that has no Rust type, in the spelling of a CRD's `openAPIV3Schema`: `apiVersion`, `kind` and
    /// `metadata` are added, in place of what the document says of them.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn of_resource(schema: &Value) -> Result<Self, SchemaErrors> {
        Self::build(schema, Source::Document, &Hooks::default(), true)
    }

    /// A schema that refuses every document and keeps what it holds, for a kind whose own cannot be made.
    pub fn unusable() -> Self {
        let mut root = Node {
            preserve_unknown: true,
            not: Some(Box::default()),
            ..Node::of(Types::OBJECT)
        };
        root::add_type_and_metadata(&mut root, build::object_meta());
        root.index();
        Self {
            root,
            has_singles: false,
        }
    }

    fn build(
        schema: &Value,
        source: Source,
        hooks: &Hooks,
        is_resource: bool,
    ) -> Result<Self, SchemaErrors> {
        let mut builder = Builder::new(schema, source);
        let mut root = builder.node(schema, "");
        if root.type_name.is_none() {
            root.type_name = root.title.clone();
        }
        if is_resource {
            if root.types.single() != Some("object") {
                builder.error("", "a kind must be a struct with named fields");
            }
            root::add_type_and_metadata(&mut root, build::object_meta());
        }
        builder.attach(&mut root, hooks, "");
        root.index();
        attach::check_defaults(&root, "", &mut builder.problems.lines);
        if builder.problems.lines.is_empty() {
            let has_singles = has_singles(&root);
            Ok(Self { root, has_singles })
        } else {
            Err(SchemaErrors(builder.problems.lines))
        }
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// Whether there is a field of 32 bits of floating point. Documents hold 64: read from text at once, such a number may
    /// be rounded otherwise than by way of a document.
    pub fn has_singles(&self) -> bool {
        self.has_singles
    }

    /// The schema as OpenAPI v3 / `openAPIV3Schema` JSON, defaults and `x-kubernetes-*` included, our private
    /// `x-apiloom-*` keywords left out. `metadata` says how the metadata of an object is spelled.
    pub fn to_openapi(&self, metadata: &Metadata<'_>) -> Value {
        openapi::v3(&self.root, metadata)
    }

    /// The schema as `openAPIV3Schema` of a CustomResourceDefinition: as [`Schema::to_openapi`], with the rules that OpenAPI
    /// has no keywords for as CEL in `x-kubernetes-validations`.
    pub fn to_crd(&self) -> CrdSchema {
        let mut schema = openapi::v3(&self.root, &Metadata::Open);
        let unsaid = cel::write(&self.root, &mut schema);
        CrdSchema { schema, unsaid }
    }

    /// The schema as OpenAPI v2 (swagger) JSON: what v2 cannot say (nullable, oneOf, anyOf) loses its type, so that
    /// clients accept more rather than refuse what the server takes.
    pub fn to_openapi_v2(&self, metadata: &Metadata<'_>) -> Value {
        openapi::v2(&self.root, metadata)
    }

    /// Puts in the defaults of absent fields, recursively; absent parents are not made unless they have a default.
    pub fn default(&self, document: &mut Value) {
        default::default(&self.root, document);
    }

    /// As [`Schema::default`], as long as the defaults have no more than `max_bytes` of JSON together. Says whether all were
    /// put in.
    pub fn default_within(&self, document: &mut Value, max_bytes: usize) -> bool {
        default::default_within(&self.root, document, max_bytes)
    }

    /// Drops what the schema does not know and nulls that it does not allow.
    pub fn prune(&self, document: &mut Value) {
        default::prune(&self.root, document);
    }

    /// Checks a document about to be created: presence, types, bounds, formats, patterns, enums, list and map topology,
    /// unions, checks. The errors come in the order of the schema.
    pub fn validate(&self, document: &Value) -> Vec<FieldError> {
        validate::validate(&self.root, document, None)
    }

    /// Checks the change from `old` to `new`: everything [`Schema::validate`] checks, and the update rules (immutable
    /// fields and the like). What is as it was in `old` is not checked again, so that an object that a newer schema
    /// would refuse can still be changed elsewhere.
    pub fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate(&self.root, new, Some(old))
    }

    /// Whether the schema knows a field at a path of JSON names (columns and selectable fields are checked so).
    pub fn has_path(&self, path: &JsonPath) -> bool {
        !matches!(self.at(path), Child::Unknown)
    }

    /// Whether the schema knows values where a query leads, and the fields that its filters compare.
    pub fn has_query(&self, query: &JsonQuery) -> bool {
        let end = query
            .steps()
            .iter()
            .fold(self.at(query.start()), |at, step| at.step(step));
        !matches!(end, Child::Unknown)
    }

    /// Whether field selectors can compare what is at a path: a string, an integer or a boolean.
    pub fn is_comparable(&self, path: &JsonPath) -> bool {
        match self.at(path) {
            Child::Node(node) => {
                [Types::STRING, Types::INTEGER, Types::BOOLEAN].contains(&node.types)
            }
            Child::Free | Child::Unknown => false,
        }
    }

    /// Whether a list of strings is at a path.
    pub fn is_string_list(&self, path: &JsonPath) -> bool {
        let Child::Node(node) = self.at(path) else {
            return false;
        };
        let items = node.items.as_ref().map(|items| items.types);
        node.types == Types::ARRAY && items == Some(Types::STRING)
    }

    /// Whether a text can be at a path, as far as types and listed values say.
    pub fn takes_text(&self, path: &JsonPath, text: &str) -> bool {
        let Child::Node(node) = self.at(path) else {
            return false;
        };
        let values = &node.rules.values;
        node.types == Types::STRING && (values.is_empty() || values.iter().any(|one| one == text))
    }

    fn at(&self, path: &JsonPath) -> Child<'_> {
        Child::Node(&self.root).at(path)
    }
}

impl<'a> Child<'a> {
    /// What stands at a path below this one.
    fn at(self, path: &JsonPath) -> Child<'a> {
        let field = |at, name: &String| match at {
            Child::Node(node) => node.child(name),
            other => other,
        };
        path.names().iter().fold(self, field)
    }

    /// What stands where a step of a query leads.
    fn step(self, step: &QueryStep) -> Child<'a> {
        let Child::Node(node) = self else {
            return self;
        };
        let item = match &node.items {
            Some(items) => Child::Node(items),
            None if node.types.takes(Types::ARRAY) => Child::Free,
            None => Child::Unknown,
        };
        match (step, &node.additional) {
            (QueryStep::Field(name), _) => node.child(name),
            (QueryStep::Every, Some(values)) => Child::Node(values),
            (QueryStep::Every | QueryStep::Item(_), _) => item,
            // The items may be known, and what the filter asks them for not.
            (QueryStep::Where(filter), _) => match item.at(filter.path()) {
                Child::Unknown => Child::Unknown,
                Child::Free | Child::Node(_) => item,
            },
        }
    }
}

/// Whether a number of format `float` is here or below.
fn has_singles(node: &Node) -> bool {
    let properties = node.properties.iter().map(|property| &*property.node);
    let others = [node.items.as_deref(), node.additional.as_deref()];
    node.format.as_deref() == Some("float")
        || properties
            .chain(others.into_iter().flatten())
            .any(has_singles)
}

#[cfg(test)]
mod tests;
