//! What a kind declares about itself: the data from which routes, discovery, OpenAPI, columns and manifests follow.
//!
//! A capability is data here, never a cast at run time: `#[apiloom::resource]` writes a [`ResourceDef`], everything
//! else reads it.

mod api_type;
mod conversion;
mod deletion;
mod hooks;
mod name_format;
pub mod names;
mod place;
mod schema_source;
mod scope;
mod subresource;
mod verb;

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
use crate::path::JsonPath;
use crate::query::JsonQuery;
use crate::types::{ObjectMeta, OwnerReference};
pub use api_type::ApiType;
pub use conversion::{
    Conversion, ConversionMethod, ConvertJson, Converter, InMemoryConversion, JsonConversion,
};
pub use deletion::DeletionRule;
pub use hooks::{CheckFn, DefaultFn, Hooks};
pub use name_format::NameFormat;
pub use place::Place;
pub use schema_source::{SchemaFn, SchemaSource};
pub use scope::Scope;
/// The text of definitions: static in a compiled type, shared when it comes from a document. A clone copies no heap.
pub use smol_str::SmolStr;
pub use subresource::{SubresourceDef, Writes};
pub use verb::Verb;

/// A kind of one version, as a Rust type. Written by `#[apiloom::resource]` or `#[derive(Resource)]`.
///
/// The JSON form of the type holds neither `apiVersion` nor `kind`: the codec writes them.
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
    /// The CamelCase kind.
    const KIND: &'static str;
    /// The lower-case plural in the path.
    const PLURAL: &'static str;

    /// Everything the kind declares.
    fn definition() -> ResourceDef;
    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The object's metadata, to change.
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

/// The API-machinery release a kind's lifecycle compares with: `1.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// Major number.
    pub major: u32,
    /// Minor number; compared as a number, so 1.10 comes after 1.9.
    pub minor: u32,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// When a kind came, is discouraged and goes (Kubernetes' deprecation policy).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// First release that has it.
    pub introduced: Option<Release>,
    /// From this release on every request gets a `Warning` header.
    pub deprecated: Option<Release>,
    /// From this release on it is no longer served.
    pub removed: Option<Release>,
    /// What to use instead.
    pub replacement: Option<GroupVersionKind>,
}

/// A declared API group: its versions in order of preference and the release that lifecycles compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDef {
    /// The group's name, a DNS subdomain.
    pub name: SmolStr,
    /// Versions, preferred first.
    pub versions: Cow<'static, [SmolStr]>,
    /// The release this build is; `None` means that no lifecycle applies.
    pub release: Option<Release>,
    /// Where it is declared in the source.
    pub place: Option<Place>,
}

/// When `metadata.generation` counts up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GenerationRule {
    /// Starts at 1 and counts every change outside metadata and, with a status subresource, outside status.
    #[default]
    Spec,
    /// The kind has no generation.
    None,
}

/// The type of a printer column (`TableColumnDefinition.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// SmolStr.
    String,
    /// A whole number.
    Integer,
    /// A floating-point number.
    Number,
    /// true or false.
    Boolean,
    /// A time, shown as an age.
    Date,
}

/// The content of one table cell, as JSON: a string, number, boolean or null.
pub type Cell = Value;

/// Where a column's cells come from.
#[derive(Clone)]
pub enum CellSource {
    /// A value inside the object; a missing value is an empty cell.
    Path(JsonPath),
    /// The first value that a query finds, such as the status of one condition; a missing value as above.
    Query(JsonQuery),
    /// A function of the typed object: decodes, calls the user's function, and hands back its value.
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
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
    /// What the column shows.
    pub description: SmolStr,
    /// Where its cells come from.
    pub source: CellSource,
}

/// Everything a kind of one version declares.
#[derive(Clone, Debug)]
pub struct ResourceDef {
    /// API group; empty for core.
    pub group: SmolStr,
    /// Version.
    pub version: SmolStr,
    /// Kind.
    pub kind: SmolStr,
    /// Kind of its lists; `{kind}List` unless declared.
    pub list_kind: SmolStr,
    /// Resource, the lower-case plural.
    pub plural: SmolStr,
    /// Singular, for kubectl; the lower-case kind unless declared.
    pub singular: SmolStr,
    /// Short names for kubectl.
    pub short_names: Vec<SmolStr>,
    /// Categories such as `all`.
    pub categories: Vec<SmolStr>,
    /// Namespaced or not.
    pub scope: Scope,
    /// Served verbs, sorted.
    pub verbs: Vec<Verb>,
    /// The subresources, sorted by name.
    pub subresources: Vec<SubresourceDef>,
    /// How objects are deleted.
    pub deletion: DeletionRule,
    /// Whether objects are kept in a store. A kind without one serves `create` alone, which a handler answers.
    pub has_store: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether the version is served at all.
    pub served: bool,
    /// How to reach the hub; `None` for the hub itself.
    pub conversion: Option<Conversion>,
    /// Columns behind the name.
    pub columns: Vec<Column>,
    /// Fields that field selectors may name besides name and namespace.
    pub selectable: Vec<JsonPath>,
    /// Lifecycle, if declared.
    pub lifecycle: Option<Lifecycle>,
    /// How names are checked.
    pub name_format: NameFormat,
    /// When generation counts.
    pub generation: GenerationRule,
    /// Whether an update without a resourceVersion overwrites the present state. Default true.
    pub unconditional_update: bool,
    /// Whether PUT on a missing name creates. Default false.
    pub create_on_update: bool,
    /// The type's documentation.
    pub description: SmolStr,
    /// Where the type is declared in the source; `None` for a kind that has no source.
    pub place: Option<Place>,
    /// The structural schema of the version, apiVersion, kind and metadata included.
    pub schema: SchemaSource,
}

impl ResourceDef {
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
    /// The fields that only a subresource writes and no new object can give.
    pub fn fields_of_subresources(&self) -> impl Iterator<Item = &str> {
        self.subresources
            .iter()
            .filter_map(|sub| match &sub.writes {
                Writes::Only(field) => Some(field.as_str()),
                Writes::Nothing | Writes::Also(_) => None,
            })
    }
    /// The verbs of a subresource, sorted: a verb that the kind skips is skipped below its objects too.
    pub fn verbs_of<'a>(&'a self, sub: &'a SubresourceDef) -> impl Iterator<Item = Verb> + 'a {
        let verbs = sub.verbs.iter().copied();
        verbs.filter(|verb| self.has_verb(*verb))
    }
    /// The subresources that have a verb, sorted by name.
    pub fn served_subresources(&self) -> impl Iterator<Item = &SubresourceDef> {
        let subresources = self.subresources.iter();
        subresources.filter(|sub| self.verbs_of(sub).next().is_some())
    }
}

#[cfg(test)]
mod tests;
