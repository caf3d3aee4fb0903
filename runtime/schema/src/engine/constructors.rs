//! Makes schemas of types and of documents.

use serde_json::Value;

use super::build::{self, Builder, SchemaOrigin};
use super::node::{Node, Types};
use super::{Schema, SchemaErrors, attach, root, validate};
use crate::api_type::ApiType;
use crate::hooks::Hooks;

impl Schema {
    /// The structural schema of a root type (a `Resource`), with the schema of `ObjectMeta` for `metadata`, and with
    /// `apiVersion` and `kind`.
    ///
    /// # Errors
    /// If schemars' output cannot be expressed as a structural schema; each line names the field.
    pub fn for_resource<T: schemars::JsonSchema + ApiType>() -> Result<Self, SchemaErrors> {
        let mut schema = root::schema_of::<T>();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("metadata");
        }
        Self::build(&schema, SchemaOrigin::Types, &T::hooks(), true)
    }

    /// The structural schema of any type.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn for_type<T: schemars::JsonSchema + ApiType>() -> Result<Self, SchemaErrors> {
        Self::build(
            &root::schema_of::<T>(),
            SchemaOrigin::Types,
            &T::hooks(),
            false,
        )
    }

    /// The structural schema of a root type without the type: of what schemars makes of it, with our keywords. For tools
    /// that read source code.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn of_root(schema: &Value) -> Result<Self, SchemaErrors> {
        let mut schema = schema.clone();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("metadata");
        }
        Self::build(&schema, SchemaOrigin::Types, &Hooks::default(), true)
    }

    /// What schemars makes of a type, with our keywords: the input of [`Schema::of_root`], for types that it names.
    pub fn source_of<T: schemars::JsonSchema>() -> Value {
        root::schema_of::<T>()
    }

    /// The schema of a JSON document with the syntax of a CRD's `openAPIV3Schema`, including `default`.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn from_json(schema: &Value, hooks: &Hooks) -> Result<Self, SchemaErrors> {
        Self::build(schema, SchemaOrigin::Document, hooks, false)
    }

    /// The schema of a kind without a Rust type, with the syntax of a CRD's `openAPIV3Schema`. `apiVersion`, `kind`
    /// and `metadata` are added, or replaced.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn of_resource(schema: &Value) -> Result<Self, SchemaErrors> {
        Self::build(schema, SchemaOrigin::Document, &Hooks::default(), true)
    }

    /// A schema that refuses every document and prunes nothing, for a kind whose own cannot be made.
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
            has_update_rules: false,
            has_sensitive: false,
            has_embedded: true,
            validation: &validate::COMPILED,
            document: None,
        }
    }

    pub(super) fn build(
        schema: &Value,
        source: SchemaOrigin,
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
            Ok(Self {
                has_singles: has_singles(&root),
                has_update_rules: has_update_rules(&root),
                has_sensitive: has_sensitive(&root),
                has_embedded: has_embedded(&root),
                root,
                validation: &validate::COMPILED,
                document: None,
            })
        } else {
            Err(SchemaErrors(builder.problems.lines))
        }
    }
}

/// Whether there is a number of format `float` here or below.
pub(super) fn has_singles(node: &Node) -> bool {
    node.format.as_deref() == Some("float") || parts(node).any(has_singles)
}

/// Whether there is a rule for updates here or below.
fn has_update_rules(node: &Node) -> bool {
    !node.update.is_empty() || parts(node).any(has_update_rules)
}

/// Whether there is a secret value here or below.
fn has_sensitive(node: &Node) -> bool {
    node.is_sensitive || parts(node).any(has_sensitive)
}

/// Whether there is an embedded object here or below.
pub(super) fn has_embedded(node: &Node) -> bool {
    node.embedded_resource || parts(node).any(has_embedded)
}

/// The nodes of the parts of a value.
fn parts(node: &Node) -> impl Iterator<Item = &Node> {
    let properties = node.properties.iter().map(|property| &*property.node);
    let others = [node.items.as_deref(), node.additional.as_deref()];
    properties.chain(others.into_iter().flatten())
}
