//! The definition of a kind: the data from which routes, discovery, OpenAPI, columns and manifests are derived.
//!
//! Capabilities are data, not traits to be cast to: `#[apiloom::resource]` generates a [`ResourceDef`], and all other
//! code reads it.

mod conversion;
mod custom;
mod deletion;
mod dialect;
pub mod names;
mod place;
mod proto_files;
mod schema_source;
mod scope;
mod selectable;
mod subresource;
mod subresource_output;
pub mod verbs;
mod version_order;

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

pub use apiloom_schema::{ApiType, CheckFn, DefaultFn, Hooks};
pub use apiloom_vocabulary::{
    ColumnType, Dependents, NameFormat, ObjectDeletion, Release, Scope, Verb,
};

use crate::gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
use crate::path::JsonPath;
pub use crate::protobuf;
pub use crate::protobuf::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};
use crate::query::JsonQuery;
use crate::types::{ObjectMeta, OwnerReference};
pub use conversion::{
    Conversion, ConversionMethod, ConvertJson, InMemoryConversion, JsonConversion,
};
#[cfg(feature = "schema")]
pub use conversion::{ConversionReport, ConversionResult, Converter};
pub use custom::CustomKind;
#[cfg(feature = "schema")]
pub use custom::{StoredDefinition, custom_definitions};
pub use deletion::DeletionRule;
pub use dialect::{Dialect, Publication};
pub use place::Place;
pub use proto_files::{ProtoField, ProtoFile, ProtoFiles, ProtoMessage};
pub use schema_source::{SchemaFn, SchemaSource};
pub use scope::{ClusterKind, NamespacedKind};
pub use selectable::SelectableField;
/// Text of definitions: static or short in a compiled type, shared if it is from a document. Cloning does not allocate.
pub use smol_str::SmolStr;
pub use subresource::{ScalePaths, SubresourceDef, SubresourceHandler, Writes};
pub use subresource_output::SubresourceOutput;
pub use version_order::compare_versions;

/// One version of a kind, as a Rust type. Implemented by `#[apiloom::resource]` or `#[derive(Resource)]`.
///
/// The JSON of the type has neither `apiVersion` nor `kind`: the codec adds them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    note = "put `#[apiloom::resource(group = .., version = .., namespaced)]` on the struct"
)]
pub trait Resource:
    Clone + fmt::Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// The API group; empty for the core group.
    const GROUP: &'static str;
    /// The version within the group.
    const VERSION: &'static str;
    /// The kind, in CamelCase.
    const KIND: &'static str;
    /// The plural name in paths, in lower case.
    const PLURAL: &'static str;

    /// The definition of the version.
    fn definition() -> ResourceDef;
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The object's metadata, mutable.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}

impl OwnerReference {
    /// A reference to an object that was read from the server, so that it has a name and a uid.
    ///
    /// ```no_run
    /// # fn example<K: apiloom_meta::Resource>(parent: &K, child: &mut K) {
    /// use apiloom_meta::OwnerReference;
    /// child.metadata_mut().owner_references.push(OwnerReference::to(parent).as_controller());
    /// # }
    /// ```
    pub fn to<K: Resource>(owner: &K) -> Self {
        let metadata = owner.metadata();
        Self {
            api_version: GroupVersion::new(K::GROUP, K::VERSION).to_string(),
            kind: K::KIND.to_owned(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            controller: None,
            block_owner_deletion: None,
        }
    }
}

/// The releases in which a version is introduced, deprecated and removed (Kubernetes' deprecation policy).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// First release with the version.
    pub introduced: Option<Release>,
    /// First release in which requests get a `Warning` header.
    pub deprecated: Option<Release>,
    /// First release without the version.
    pub removed: Option<Release>,
    /// The kind to use instead.
    pub replacement: Option<GroupVersionKind>,
}

/// A declared API group: its versions in order of preference, and its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDef {
    /// Name of the group, a DNS subdomain.
    pub name: SmolStr,
    /// Versions, preferred first.
    pub versions: Cow<'static, [SmolStr]>,
    /// Release of this build; with `None` no lifecycle applies.
    pub release: Option<Release>,
    /// Source location of the declaration.
    pub place: Option<Place>,
}

/// When `metadata.generation` is incremented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GenerationRule {
    /// Starts at 1; incremented by each change outside of metadata and, with a status subresource, outside of status.
    #[default]
    Spec,
    /// The kind has no generation.
    None,
}

/// The content of one table cell, as JSON: a string, number, boolean or null.
pub type Cell = Value;

/// Source of a column's cells.
#[derive(Clone)]
pub enum CellSource {
    /// The value at a path in the object; a missing value is an empty cell.
    Path(JsonPath),
    /// The first value of a query, such as the status of one condition; a missing value is an empty cell.
    Query(JsonQuery),
    /// A function that decodes the object, calls the user's function, and returns its value.
    With(fn(&Value) -> Result<Cell, String>),
}

impl fmt::Debug for CellSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "Path({path})"),
            Self::Query(query) => write!(f, "Query({query})"),
            Self::With(_) => f.write_str("With(fn)"),
        }
    }
}

/// A printer column of a kind.
#[derive(Clone, Debug)]
pub struct Column {
    /// The header, as declared; kubectl prints it in upper case.
    pub name: SmolStr,
    /// The type of its cells.
    pub column_type: ColumnType,
    /// Format hint, such as `name`; mostly empty.
    pub format: SmolStr,
    /// Priority: 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
    /// Description of the column.
    pub description: SmolStr,
    /// Source of its cells.
    pub source: CellSource,
}

/// The definition of one version of a kind.
#[derive(Clone, Debug)]
pub struct ResourceDef {
    /// API group; empty for core.
    pub group: SmolStr,
    /// Version within the group.
    pub version: SmolStr,
    /// Kind, in CamelCase.
    pub kind: SmolStr,
    /// Kind of its lists; `{kind}List` unless declared.
    pub list_kind: SmolStr,
    /// Plural name in paths, in lower case; the resource.
    pub plural: SmolStr,
    /// Singular name for kubectl; the kind in lower case unless declared.
    pub singular: SmolStr,
    /// Short names for kubectl.
    pub short_names: Vec<SmolStr>,
    /// Categories for kubectl, such as `all`.
    pub categories: Vec<SmolStr>,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// Served verbs, sorted.
    pub verbs: Vec<Verb>,
    /// The subresources, sorted by name.
    pub subresources: Vec<SubresourceDef>,
    /// How objects are deleted.
    pub deletion: DeletionRule,
    /// Whether objects are stored. The verbs of a kind without a store are answered by code of the program.
    pub has_store: bool,
    /// Path of the objects' keys in the store, below the prefix of all keys; `None` for `GROUP/PLURAL`, and `PLURAL` in the
    /// core group. All versions of a kind have the same.
    pub store_path: Option<SmolStr>,
    /// Whether this is the storage version.
    pub storage: bool,
    /// Whether the version is served.
    pub served: bool,
    /// Whether the version is served only if `--runtime-config` enables it, as alpha versions of kube-apiserver. Default
    /// false.
    pub disabled_by_default: bool,
    /// Conversion to and from the hub; `None` for the hub itself.
    pub conversion: Option<Conversion>,
    /// Printer columns after the name.
    pub columns: Vec<Column>,
    /// Fields for field selectors, in addition to name and namespace.
    pub selectable: Vec<SelectableField>,
    /// Lifecycle of the version; `None` if it is not declared.
    pub lifecycle: Option<Lifecycle>,
    /// Format of object names.
    pub name_format: NameFormat,
    /// When the generation is incremented.
    pub generation: GenerationRule,
    /// Whether an update without a resourceVersion overwrites the current state. Default true.
    pub unconditional_update: bool,
    /// Whether PUT on a name that does not exist creates the object. Default false.
    pub create_on_update: bool,
    /// Whether strategic merge patches are accepted. Default false: they are answered with 415, as of custom resources.
    pub strategic_merge_patch: bool,
    /// Documentation of the type.
    pub description: SmolStr,
    /// Source location of the type; `None` for a kind without source.
    pub place: Option<Place>,
    /// Protobuf form of the objects; `None` for a kind that is not accepted in Protobuf.
    pub protobuf: Option<&'static ProtobufMessage>,
    /// Structural schema of the version, including apiVersion, kind and metadata.
    pub schema: SchemaSource,
    /// How the kind is served where compiled kinds and custom resources differ.
    pub dialect: Dialect,
    /// What only a kind from a document has; `None` for a Rust type.
    pub custom: Option<CustomKind>,
}

impl ResourceDef {
    /// The definition of a kind as most are: in namespaces, stored and served in this version, with all verbs, and without
    /// subresources, columns and a description. What differs is set beside it:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use apiloom_meta::kind::{SchemaSource, Scope, SubresourceDef};
    /// use apiloom_meta::schema::Schema;
    /// use apiloom_meta::{GroupVersionKind, ResourceDef};
    ///
    /// let schema = Schema::of_resource(&serde_json::json!({"type": "object"}))?;
    /// let ship = ResourceDef {
    ///     scope: Scope::Cluster,
    ///     subresources: vec![SubresourceDef::status()],
    ///     ..ResourceDef::new(
    ///         &GroupVersionKind::new("example.com", "v1", "Ship"),
    ///         "ships",
    ///         SchemaSource::Document(Arc::new(schema)),
    ///     )
    /// };
    /// assert_eq!((&*ship.singular, &*ship.list_kind), ("ship", "ShipList"));
    /// # Ok::<(), apiloom_meta::schema::SchemaErrors>(())
    /// ```
    pub fn new(gvk: &GroupVersionKind, plural: impl Into<SmolStr>, schema: SchemaSource) -> Self {
        let [group, version, kind] = [&gvk.group, &gvk.version, &gvk.kind].map(SmolStr::new);
        Self::of_names([group, version, kind, plural.into()], schema)
    }

    /// The same for a Rust type, whose schema is made by a function.
    pub fn of_type<K: Resource>(schema: SchemaFn) -> Self {
        let names = [K::GROUP, K::VERSION, K::KIND, K::PLURAL].map(SmolStr::new_static);
        Self::of_names(names, SchemaSource::Type(schema))
    }

    fn of_names([group, version, kind, plural]: [SmolStr; 4], schema: SchemaSource) -> Self {
        Self {
            list_kind: smol_str::format_smolstr!("{kind}List"),
            singular: kind.to_lowercase().into(),
            group,
            version,
            kind,
            plural,
            short_names: Vec::new(),
            categories: Vec::new(),
            scope: Scope::Namespaced,
            verbs: Verb::DEFAULT.to_vec(),
            subresources: Vec::new(),
            deletion: DeletionRule::default(),
            has_store: true,
            store_path: None,
            storage: true,
            served: true,
            disabled_by_default: false,
            conversion: None,
            columns: Vec::new(),
            selectable: Vec::new(),
            lifecycle: None,
            name_format: NameFormat::default(),
            generation: GenerationRule::default(),
            unconditional_update: true,
            create_on_update: false,
            strategic_merge_patch: false,
            description: SmolStr::default(),
            place: None,
            protobuf: None,
            schema,
            dialect: Dialect::COMPILED,
            custom: None,
        }
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.kind)
    }
    /// Group, version and resource.
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&*self.group, &*self.version, &*self.plural)
    }
    /// Group and resource.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.plural)
    }
    /// Group and resource under which the objects are stored: those of the hub, if it is of another group.
    pub fn stored_resource(&self) -> GroupResource {
        let hub = self
            .conversion
            .as_ref()
            .and_then(|conversion| conversion.hub_resource.clone());
        hub.unwrap_or_else(|| self.group_resource())
    }
    /// Group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&*self.group, &*self.kind)
    }
    /// Group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&*self.group, &*self.version)
    }
    /// The `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }
    /// Whether the kind is served with this verb.
    pub fn has_verb(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }
    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceDef> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
    /// The names of the subresources, sorted.
    pub fn subresource_names(&self) -> impl Iterator<Item = &str> {
        self.subresources.iter().map(|sub| &*sub.name)
    }
    /// Whether there is a `status` subresource.
    pub fn has_status(&self) -> bool {
        self.subresource(SubresourceDef::STATUS).is_some()
    }
    /// The fields that are written only by a subresource, and cannot be set on create.
    pub fn fields_of_subresources(&self) -> impl Iterator<Item = &str> {
        self.subresources
            .iter()
            .filter_map(|sub| match &sub.writes {
                Writes::Only(field) | Writes::WithMetadata(field) => Some(field.as_str()),
                Writes::Nothing | Writes::Also(_) | Writes::Replicas(_) => None,
            })
    }
    /// The fields that the Scale of an object shows, of a kind with the subresource `scale`.
    pub fn scale_paths(&self) -> Option<&ScalePaths> {
        self.subresources
            .iter()
            .find_map(SubresourceDef::scale_paths)
    }
    /// The verbs of a subresource, sorted, without those that the kind itself does not serve; those of a handler do not
    /// depend on it.
    pub fn verbs_of<'a>(&'a self, sub: &'a SubresourceDef) -> impl Iterator<Item = Verb> + 'a {
        let verbs = sub.verbs.iter().copied();
        verbs.filter(|verb| sub.handler.is_some() || self.has_verb(*verb))
    }
    /// The subresources with at least one verb, sorted by name.
    pub fn served_subresources(&self) -> impl Iterator<Item = &SubresourceDef> {
        let subresources = self.subresources.iter();
        subresources.filter(|sub| self.verbs_of(sub).next().is_some())
    }
}

#[cfg(test)]
mod tests;
