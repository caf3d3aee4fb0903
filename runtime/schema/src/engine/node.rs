//! The tree of a structural schema. Built once per kind by `build`, then immutable.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Number, Value};

use super::document_dialect::DocumentDialect;
use super::enum_index::EnumIndex;
#[cfg(not(feature = "build"))]
use super::no_pattern::Pattern;
use crate::hooks::{CheckFn, DefaultFn};
#[cfg(feature = "build")]
use crate::regexp::Pattern;

/// The format of quantities, which may also be numbers.
pub const QUANTITY: &str = "quantity";

/// The type name by which printers recognize metadata.
pub(crate) const OBJECT_META_NAME: &str = "meta.v1.ObjectMeta";

/// The JSON types of a node, as a set; an empty set allows all types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// Any type.
    pub const ANY: Types = Types(0);
    /// `object`.
    pub const OBJECT: Types = Types(1);
    /// `array`.
    pub const ARRAY: Types = Types(2);
    /// `string`.
    pub const STRING: Types = Types(4);
    /// `integer`.
    pub const INTEGER: Types = Types(8);
    /// `number`, also without a fraction.
    pub const NUMBER: Types = Types(16);
    /// `boolean`.
    pub const BOOLEAN: Types = Types(32);

    const NAMED: [(Types, &'static str); 6] = [
        (Types::OBJECT, "object"),
        (Types::ARRAY, "array"),
        (Types::STRING, "string"),
        (Types::INTEGER, "integer"),
        (Types::NUMBER, "number"),
        (Types::BOOLEAN, "boolean"),
    ];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMED
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(t, _)| *t)
    }
    /// Whether all types are allowed.
    #[inline]
    pub fn is_any(self) -> bool {
        self.0 == 0
    }
    /// Whether all types of `other` are allowed; a node of any type allows all.
    #[inline]
    pub fn takes(self, other: Types) -> bool {
        self.0 == 0 || self.0 & other.0 == other.0
    }
    /// Whether the two sets have a type in common.
    #[inline]
    pub fn shares(self, other: Types) -> bool {
        self.0 == 0 || self.0 & other.0 != 0
    }
    pub(crate) fn union(self, other: Types) -> Types {
        if self.0 == 0 || other.0 == 0 {
            Types::ANY
        } else {
            Types(self.0 | other.0)
        }
    }
    /// The types in both sets; `None` if they have none in common.
    pub(crate) fn both(self, other: Types) -> Option<Types> {
        match (self.0, other.0) {
            (0, _) => Some(other),
            (_, 0) => Some(self),
            (a, b) if a & b != 0 => Some(Types(a & b)),
            // Integers are numbers.
            (8, 16) | (16, 8) => Some(Types::INTEGER),
            _ => None,
        }
    }
    /// The name of the only type; `None` for none or several.
    pub(crate) fn single(self) -> Option<&'static str> {
        Self::NAMED
            .iter()
            .find(|(t, _)| *t == self)
            .map(|(_, n)| *n)
    }
    /// The names of all types in the set.
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMED
            .iter()
            .filter(|(t, _)| self.0 & t.0 != 0)
            .map(|(_, n)| *n)
            .collect()
    }
    /// Whether the value has one of the types. Floats without fraction are not integers; integers are numbers.
    #[inline]
    pub fn accepts(self, value: &Value) -> bool {
        let of = match value {
            Value::Null => return false,
            Value::Bool(_) => Types::BOOLEAN,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
            Value::Number(n) if n.is_f64() => Types::NUMBER,
            Value::Number(_) => Types(Types::INTEGER.0 | Types::NUMBER.0),
        };
        self.0 == 0 || self.0 & of.0 != 0
    }
}

/// Identity of list items (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// The list is a single value.
    #[default]
    Atomic,
    /// Items are scalars, without duplicates.
    Set,
    /// Items are objects, identified by these fields.
    Map(Vec<String>),
}

/// The keyword for [`PatchStrategy::strategy`].
pub(crate) const PATCH_STRATEGY: &str = "x-kubernetes-patch-strategy";
/// The keyword for [`PatchStrategy::merge_key`].
pub(crate) const PATCH_MERGE_KEY: &str = "x-kubernetes-patch-merge-key";

/// The keyword of rules in CEL.
#[cfg(feature = "build")]
pub(crate) const VALIDATIONS: &str = "x-kubernetes-validations";

/// How a strategic merge patch changes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchStrategy {
    /// `x-kubernetes-patch-strategy`: `merge`, `replace`, `retainKeys`, or two of them with a comma.
    pub(crate) strategy: String,
    /// `x-kubernetes-patch-merge-key`: the field that identifies an item of a merged list of objects.
    pub merge_key: Option<String>,
}

impl PatchStrategy {
    fn has(&self, word: &str) -> bool {
        self.strategy.split(',').any(|one| one == word)
    }
    /// Whether the items of a list are merged.
    pub fn merges(&self) -> bool {
        self.has("merge")
    }
    /// Whether the value is replaced as a whole.
    pub fn replaces(&self) -> bool {
        self.has("replace")
    }
}

/// The type that parses all representations of a text and prints the canonical one (`x-apiloom-canonical`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canonical {
    /// `Time`.
    Seconds,
    /// `MicroTime`.
    Microseconds,
    /// `Duration`.
    Duration,
    /// `Vec<u8>`.
    Bytes,
}

impl Canonical {
    /// The type with this name in the schema.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "seconds" => Some(Self::Seconds),
            "microseconds" => Some(Self::Microseconds),
            "duration" => Some(Self::Duration),
            "bytes" => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct Property {
    /// The name in JSON.
    pub name: String,
    /// Whether the field must be present.
    pub required: bool,
    /// Shared between the schemas of all kinds if it is part of ObjectMeta.
    pub node: Arc<Node>,
}

impl Property {
    /// The node, mutable: a shared one is copied.
    pub(super) fn node_mut(&mut self) -> &mut Node {
        let node = Arc::make_mut(&mut self.node);
        node.is_indexed = false;
        node
    }

    /// The node by value: a shared one is copied.
    pub(super) fn into_node(self) -> Node {
        Node {
            is_indexed: false,
            ..Arc::unwrap_or_clone(self.node)
        }
    }
}

/// A union among the fields of an object (`x-apiloom-union`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Union {
    pub(crate) discriminator: Option<String>,
    /// JSON fields with the discriminator values that select them, in schema order.
    pub(crate) members: Vec<(String, Vec<String>)>,
    pub(crate) allow_none: bool,
    /// Whether the discriminator is an enum that validates its own value; some values may select no member.
    pub(crate) closed: bool,
}

/// The changes of a value that are refused (`x-apiloom-update`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpdateRules {
    pub(crate) no_set: bool,
    pub(crate) no_unset: bool,
    pub(crate) no_modify: bool,
    pub(crate) no_add_item: bool,
    pub(crate) no_remove_item: bool,
    pub(crate) immutable: bool,
    pub(crate) monotonic: bool,
}

impl UpdateRules {
    /// Sets the rule with this name in the schema; false if it is unknown.
    pub(crate) fn set(&mut self, name: &str) -> bool {
        let rule = match name {
            "NoSet" => &mut self.no_set,
            "NoUnset" => &mut self.no_unset,
            "NoModify" => &mut self.no_modify,
            "NoAddItem" => &mut self.no_add_item,
            "NoRemoveItem" => &mut self.no_remove_item,
            "Immutable" => &mut self.immutable,
            "Monotonic" => &mut self.monotonic,
            _ => return false,
        };
        *rule = true;
        true
    }
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
    pub(crate) fn or(self, o: Self) -> Self {
        Self {
            no_set: self.no_set || o.no_set,
            no_unset: self.no_unset || o.no_unset,
            no_modify: self.no_modify || o.no_modify,
            no_add_item: self.no_add_item || o.no_add_item,
            no_remove_item: self.no_remove_item || o.no_remove_item,
            immutable: self.immutable || o.immutable,
            monotonic: self.monotonic || o.monotonic,
        }
    }
}

/// Rules for values, in addition to their type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    pub(crate) minimum: Option<Number>,
    pub(crate) maximum: Option<Number>,
    pub(crate) exclusive_minimum: Option<Number>,
    pub(crate) exclusive_maximum: Option<Number>,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) min_bytes: Option<usize>,
    pub(crate) max_bytes: Option<usize>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) min_items: Option<usize>,
    pub(crate) max_items: Option<usize>,
    pub(crate) min_properties: Option<usize>,
    pub(crate) max_properties: Option<usize>,
    /// Allowed values; empty allows all.
    pub(crate) values: Vec<Value>,
    /// The index of the allowed values of a custom resource.
    pub(super) enum_index: EnumIndex,
    /// The rules that OpenAPI has no keyword for (`own_rules.rs`): their keywords with arguments.
    pub(super) own: Vec<(&'static str, Value)>,
    /// Whether items must be unique, for every list type.
    pub(crate) unique: bool,
    /// Whether the field must be present and not empty, although its type is optional.
    pub(crate) required: bool,
    /// Whether the field must be absent or empty.
    pub(crate) forbidden: bool,
    /// Sibling fields that must be set if this one is.
    pub(crate) requires: Vec<String>,
    /// Sibling fields that must not be set if this one is.
    pub(crate) conflicts: Vec<String>,
    pub(crate) union: Option<Union>,
}

/// The rules of a node; without rules, as for most nodes, nothing is allocated.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaybeRules(Option<Box<Rules>>);

/// The rules of a node without any.
static NO_RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

impl MaybeRules {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    pub(crate) fn into_rules(self) -> Rules {
        self.0.map(|rules| *rules).unwrap_or_default()
    }
}

impl From<Rules> for MaybeRules {
    fn from(rules: Rules) -> Self {
        Self((rules != *NO_RULES).then(|| Box::new(rules)))
    }
}

impl Deref for MaybeRules {
    type Target = Rules;
    fn deref(&self) -> &Rules {
        self.0.as_deref().unwrap_or(&NO_RULES)
    }
}

impl DerefMut for MaybeRules {
    fn deref_mut(&mut self) -> &mut Rules {
        self.0.get_or_insert_default()
    }
}

/// A choice among alternatives; each is a node whose types and rules are used, but not its structure.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// True for `oneOf`: exactly one; false for `anyOf`: at least one.
    pub(crate) exactly_one: bool,
    pub(crate) branches: Vec<Node>,
}

/// Rules that only schemas of custom resources have. The nodes of `allOf`, `anyOf`, `oneOf` and `not` validate the same
/// value and describe no structure.
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomRules {
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Node>,
    /// Whether keys that are not properties are errors: `additionalProperties: false`.
    pub(crate) refuses_unknown: bool,
    /// The `required` fields that are not properties.
    pub(crate) required: Vec<String>,
    /// The rules of the schema for `apiVersion`, `kind` and `metadata` of an object, besides those of every object.
    pub(crate) declared: Vec<Property>,
}

impl CustomRules {
    /// All nodes.
    fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let junctors = [&mut self.all_of, &mut self.any_of, &mut self.one_of];
        junctors.into_iter().flatten().chain(&mut self.not)
    }

    /// Whether `apiVersion`, `kind` or `metadata` have defaults.
    #[inline]
    pub(crate) fn has_defaults(&self) -> bool {
        self.declared
            .iter()
            .any(|property| property.node.has_defaults)
    }
}

/// Structure and rules of one value of a document.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The types of the value.
    pub types: Types,
    /// Whether null is a value; otherwise it means absent.
    pub nullable: bool,
    /// `format`.
    pub format: Option<String>,
    /// Whether a custom resource has a format here that Kubernetes does not know: it validates nothing, but an apply takes
    /// any scalar.
    pub has_unknown_format: bool,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// The Rust type, for the texts of type errors.
    pub type_name: Option<String>,

    /// Properties in declared order.
    pub properties: Vec<Property>,
    /// Indexes of `properties`, sorted by name; set by [`Node::index`].
    pub(super) sorted: Vec<u32>,
    /// Values of the keys that are not properties.
    pub additional: Option<Box<Node>>,
    /// Rules for keys.
    pub(crate) keys: Option<Box<Node>>,
    /// Items of a list.
    pub items: Option<Box<Node>>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// Whether it keeps unknown fields because a list around it does, and says nothing of them itself.
    pub(crate) is_open_by_list: bool,
    /// Whether the type contains itself, so that the tree ends here.
    pub(crate) is_end: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// Whether an empty list or map, or a zero value, means that the field is absent, as with Go's `omitempty`.
    pub omits_empty: bool,
    /// Whether the value is secret, and shown in no record of a request.
    pub(crate) is_sensitive: bool,
    /// For times, durations and bytes, the type whose canonical form is stored.
    pub(crate) canonical: Option<Canonical>,
    /// Whether documents in memory hold the object as a string with its JSON: `fieldsV1` of the object's metadata, which
    /// as a tree would need a multiple of the memory.
    pub is_json_text: bool,
    /// Whether the value is not validated with the schema: `managedFields` of the object's metadata, which the server
    /// writes itself, as a string with its JSON, and `managed_fields` checks.
    pub(crate) is_checked_apart: bool,

    /// Whether the value is a schema of a CustomResourceDefinition, in which unknown keywords are unknown fields.
    pub is_json_schema: bool,
    /// Whether the value is a schema in such a schema, and has the same keywords.
    pub is_inner_schema: bool,

    /// The identity of the items of a list; `None` is atomic too, but not said.
    pub list_type: Option<ListType>,
    /// Whether duplicates in a list of type set or map are allowed: in ObjectMeta, and where `#[api(duplicates)]` says so.
    pub twins_allowed: bool,
    /// Whether `x-kubernetes-map-type` is `atomic`; `None` without the keyword.
    pub atomic_map: Option<bool>,
    /// How a strategic merge patch changes the value; `None` merges objects and replaces lists.
    pub patch: Option<Box<PatchStrategy>>,

    /// The value of an absent field.
    pub default: Option<Value>,
    pub(crate) known_values: Vec<Value>,
    pub(crate) rules: MaybeRules,
    pub(crate) update: UpdateRules,
    pub(crate) choices: Vec<Choice>,
    pub(crate) not: Option<Box<Node>>,
    /// Other `x-kubernetes-*` keywords, which are only printed.
    pub(crate) extensions: Vec<(String, Value)>,

    /// How the value is read and written. Properties are sorted by name if fields are.
    pub dialect: DocumentDialect,
    /// Rules that only schemas of custom resources have.
    pub(crate) custom: Option<Box<CustomRules>>,

    pub(crate) checks: Vec<CheckFn>,
    /// Functions of absent fields, by their names, that compute a default of the object.
    pub computed: Vec<(&'static str, DefaultFn)>,
    /// Whether there is a default here or below; other subtrees are not walked.
    pub has_defaults: bool,
    /// Whether [`Node::index`] was called.
    pub(crate) is_indexed: bool,
}

/// A value that may be anything, but of which no field is kept: what a custom resource has under
/// `additionalProperties: true`, and as items of what is no list.
static CLOSED: LazyLock<Node> = LazyLock::new(|| Node {
    nullable: true,
    dialect: DocumentDialect::CUSTOM,
    is_indexed: true,
    ..Node::default()
});

/// A value of any type in a compiled kind.
static OPAQUE: LazyLock<Node> = LazyLock::new(|| Node {
    nullable: true,
    is_indexed: true,
    ..Node::default()
});

/// Maximum number of properties for which linear search is faster than binary search.
const LINEAR: usize = 16;

impl Node {
    /// A node of one type without rules.
    pub fn of(types: Types) -> Self {
        Self {
            types,
            ..Self::default()
        }
    }

    /// Whether documents in memory may hold the value as a string with its JSON.
    #[inline]
    pub fn may_be_text(&self) -> bool {
        self.is_json_text || self.is_checked_apart
    }

    /// What the schema of a custom resource says of `apiVersion`, `kind` or `metadata`, besides what every object has.
    #[inline]
    pub fn declared(&self, name: &str) -> Option<&Property> {
        let declared = &self.custom.as_deref()?.declared;
        declared.iter().find(|property| property.name == name)
    }

    /// Whether [`Node::declared`] fields have defaults.
    #[inline]
    pub fn has_declared_defaults(&self) -> bool {
        let custom = self.custom.as_deref();
        custom.is_some_and(CustomRules::has_defaults)
    }

    /// A node of objects of any kind, with any fields and values: only `managedFields` and its `fieldsV1` have types.
    pub fn of_any_object() -> Self {
        let free = || Self {
            nullable: true,
            ..Self::default()
        };
        let with = |name: &str, node: Self| Self {
            properties: vec![Property {
                name: name.to_owned(),
                required: false,
                node: node.into(),
            }],
            preserve_unknown: true,
            ..free()
        };
        let fields = Self {
            types: Types::OBJECT,
            is_json_text: true,
            ..free()
        };
        let entries = Self {
            types: Types::ARRAY,
            items: Some(Box::new(with("fieldsV1", fields))),
            is_checked_apart: true,
            ..free()
        };
        with("metadata", with("managedFields", entries))
    }

    /// The property with this name.
    #[inline]
    pub fn property(&self, name: &str) -> Option<&Property> {
        // The index does not exist while the tree is being built.
        if self.properties.len() <= LINEAR || self.sorted.len() != self.properties.len() {
            return self.properties.iter().find(|p| p.name == name);
        }
        let found = self
            .sorted
            .binary_search_by(|i| self.properties[*i as usize].name.as_str().cmp(name))
            .ok()?;
        Some(&self.properties[self.sorted[found] as usize])
    }

    /// The property with this name, mutable.
    pub(crate) fn property_mut(&mut self, name: &str) -> Option<&mut Property> {
        self.properties.iter_mut().find(|p| p.name == name)
    }

    /// The schema of a document's value under this key.
    #[inline]
    pub fn child(&self, name: &str) -> Child<'_> {
        match (self.property(name), &self.additional) {
            (Some(property), _) => Child::Node(&property.node),
            (None, Some(additional)) => Child::Node(additional),
            (None, None) if self.is_open() => Child::Free,
            (None, None) => Child::Unknown,
        }
    }

    /// The schema of the items of a list; `None` if they may be anything.
    #[inline]
    pub fn item(&self) -> Option<&Node> {
        match self.items.as_deref() {
            None if !self.dialect.keeps_undescribed && !self.preserve_unknown => {
                Some(Self::closed())
            }
            items => items,
        }
    }

    /// A value that may be anything, but of which no field is kept.
    pub(crate) fn closed() -> &'static Node {
        &CLOSED
    }

    /// Whether it says nothing of the value, and keeps none of its fields.
    pub(crate) fn is_closed(&self) -> bool {
        let says_nothing = self.types.is_any() && !self.preserve_unknown && !self.int_or_string;
        says_nothing && !self.dialect.keeps_undescribed
    }

    /// Whether unknown fields are kept.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // A node without types and structure is that of serde_json::Value.
        let is_undescribed =
            || self.types.is_any() && self.properties.is_empty() && self.items.is_none();
        self.preserve_unknown || (self.dialect.keeps_undescribed && is_undescribed())
    }

    /// Passes the flag of a list that keeps unknown fields on to its items, and to those of lists in it. Fields and values of
    /// maps do not inherit it.
    pub(crate) fn pass_on_unknown(&mut self) {
        let Some(items) = self.items.as_deref_mut().filter(|_| self.preserve_unknown) else {
            return;
        };
        if !items.preserve_unknown {
            items.preserve_unknown = true;
            items.is_open_by_list = true;
        }
        items.pass_on_unknown();
    }

    /// The node of a field for which this one has none: that of a value of any type, if this is a type of a compiled kind.
    #[inline]
    pub fn free(&self) -> Option<&'static Node> {
        (self.dialect.keeps_undescribed && !self.is_end).then_some(&*OPAQUE)
    }

    /// Whether Go's decoder takes the value as it is, without a look at the fields in it: one of any type of a compiled kind.
    #[inline]
    pub fn is_opaque(&self) -> bool {
        self.types.is_any()
            && self.dialect.is_typed
            && !self.is_inner_schema
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.items.is_none()
    }

    /// Whether it says itself that unknown fields are kept.
    pub(crate) fn says_open(&self) -> bool {
        self.preserve_unknown && !self.is_open_by_list
    }

    /// Whether it is a map, whose keys are data, rather than a struct.
    #[inline]
    pub fn is_map(&self) -> bool {
        self.properties.is_empty() && self.additional.is_some()
    }

    /// Whether it is a struct, whose fields are all known.
    fn is_struct(&self) -> bool {
        let is_open = self.additional.is_some() || self.preserve_unknown || self.types.is_any();
        !self.properties.is_empty() || !is_open
    }

    /// Whether a value counts as unset, like Go's zero values. A struct without fields is set, as behind a pointer in
    /// Go; an empty map is not.
    pub fn is_unset(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty() && !self.is_struct(),
            Value::String(text) => text.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Whether Go omits a value from JSON where that is asked for.
    pub fn is_omitted(&self, value: &Value) -> bool {
        self.omits_empty
            && match value {
                Value::Bool(is_true) => !is_true,
                Value::Number(number) => number.as_f64() == Some(0.0),
                _ => self.is_unset(value),
            }
    }

    /// Computes the lookup of properties and the positions of defaults. Called once, when the tree is complete.
    pub(crate) fn index(&mut self) {
        let mut has_defaults = self.default.is_some() || !self.computed.is_empty();
        for property in &mut self.properties {
            // A node shared with other schemas was indexed before.
            if !property.node.is_indexed {
                Arc::make_mut(&mut property.node).index();
            }
            has_defaults |= property.node.has_defaults;
        }
        for child in [
            &mut self.additional,
            &mut self.keys,
            &mut self.items,
            &mut self.not,
        ]
        .into_iter()
        .flatten()
        {
            child.index();
            has_defaults |= child.has_defaults;
        }
        for branch in self.choices.iter_mut().flat_map(|c| &mut c.branches) {
            branch.index();
        }
        if let Some(custom) = &mut self.custom {
            custom.nodes_mut().for_each(Node::index);
            for property in &mut custom.declared {
                Arc::make_mut(&mut property.node).index();
                has_defaults |= property.node.has_defaults;
            }
        }
        self.has_defaults = has_defaults;
        self.is_indexed = true;
        let mut sorted: Vec<u32> = (0..).take(self.properties.len()).collect();
        sorted.sort_by(|a, b| {
            self.properties[*a as usize]
                .name
                .cmp(&self.properties[*b as usize].name)
        });
        self.sorted = sorted;
    }
}

/// The schema of one key of an object.
#[derive(Clone, Copy)]
pub enum Child<'a> {
    /// The schema of the key's value.
    Node(&'a Node),
    /// Any value is allowed.
    Free,
    /// The key is unknown.
    Unknown,
}

/// The node of a field, an item or an entry; `None` without a schema.
#[inline]
pub fn child<'a>(node: Option<&'a Node>, name: &str) -> Option<&'a Node> {
    match node?.child(name) {
        Child::Node(node) => Some(node),
        Child::Free | Child::Unknown => None,
    }
}

/// Whether a field of an object is present and set.
pub(crate) fn is_set(object: &Node, fields: &Map<String, Value>, name: &str) -> bool {
    let is_unset = |value: &Value| match object.property(name) {
        Some(property) => property.node.is_unset(value),
        None => value.is_null(),
    };
    fields.get(name).is_some_and(|value| !is_unset(value))
}
