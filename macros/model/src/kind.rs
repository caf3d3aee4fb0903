//! A kind as declared with `#[resource(..)]` on its root struct.

mod client;
mod deletion;
mod naming;
mod parse;
mod query;
mod subresource;
#[cfg(test)]
mod tests;

pub use apiloom_vocabulary::{
    ColumnType, Comparison, Dependents, NameFormat, ObjectDeletion, Release, Scope, Verb,
};

pub use crate::values::{FieldRef, SelectableField};
pub(crate) use naming::{check_group, check_label};
pub(crate) use parse::read_release;
pub use parse::{parse_derived_kind, parse_kind};
pub use query::{Literal, Query, QueryStep};

use crate::api::ApiStruct;
use crate::{Code, Name, SourceSpan, SpannedValue};

/// A kind of one version.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The root struct: its Rust name, its doc comment, its fields (`metadata` among them).
    pub root: ApiStruct,
    /// API group; empty for core.
    pub group: SpannedValue<String>,
    /// Version: `v1alpha1`.
    pub version: SpannedValue<String>,
    /// CamelCase kind; the struct's name unless declared.
    pub kind: SpannedValue<String>,
    /// Lower-case plural, the resource in the path.
    pub plural: SpannedValue<String>,
    /// Lower-case singular.
    pub singular: SpannedValue<String>,
    /// Kind of its lists.
    pub list_kind: SpannedValue<String>,
    /// Short names for kubectl.
    pub short_names: Vec<SpannedValue<String>>,
    /// Categories such as `all`.
    pub categories: Vec<SpannedValue<String>>,
    /// Namespaced or cluster.
    pub scope: Scope,
    /// Whether the kind is only the body of subresources of other kinds.
    pub is_simple: bool,
    /// The subresources, sorted by name.
    pub subresources: Vec<Subresource>,
    /// How objects are deleted.
    pub deletion: Deletion,
    /// Served verbs, sorted as discovery lists them.
    pub verbs: Vec<Verb>,
    /// Printer columns behind the name.
    pub columns: Vec<Column>,
    /// Fields that field selectors may name.
    pub selectable: Vec<SelectableField>,
    /// Whether the user marked the version as hub.
    pub hub: bool,
    /// The hub's Rust type, as written: `v1beta1::Flunder`.
    pub spoke_of: Option<Code>,
    /// The kind of another group whose objects these are, as written: `crate::core::v1::Event`.
    pub stored_as: Option<Code>,
    /// Whether objects are kept in a store; without one, code of the program answers its verbs.
    pub has_store: bool,
    /// The path of the objects' keys in the store, if it is not `GROUP/PLURAL`.
    pub store_path: Option<SpannedValue<String>>,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether the version is served.
    pub served: bool,
    /// Whether the version is served only if `--runtime-config` enables it.
    pub disabled_by_default: bool,
    /// Whether clients and informers are generated for the kind.
    pub has_client: bool,
    /// Whether its client has the verbs; without them it has only the methods below, and those of subresources.
    pub has_client_verbs: bool,
    /// The methods of its client besides those of the verbs.
    pub methods: Vec<Method>,
    /// The indexes of its local copies.
    pub indexes: Vec<Index>,
    /// The releases that introduce, deprecate and remove the kind.
    pub lifecycle: Option<Lifecycle>,
    /// How names are checked.
    pub name_format: NameFormat,
    /// Whether `metadata.generation` counts.
    pub generation: bool,
    /// Whether an update without a resourceVersion is allowed.
    pub unconditional_update: bool,
    /// Whether PUT on a missing name creates.
    pub create_on_update: bool,
    /// Whether strategic merge patches are accepted.
    pub strategic_merge_patch: bool,
    /// The static description of the Protobuf form, as written: `protobuf::FLUNDER`.
    pub protobuf: Option<Code>,
    /// The package of the kind's messages in `.proto` files; `None` for that of the group and version.
    pub proto_package: Option<SpannedValue<String>>,
    /// The `#[resource]` attribute.
    pub span: SourceSpan,
}

impl Kind {
    /// The type that objects are converted to before they are stored or validated: the hub, or a kind of another group.
    pub fn converts_to(&self) -> Option<&Code> {
        self.spoke_of.as_ref().or(self.stored_as.as_ref())
    }
    /// The `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        let (group, version) = (&self.group.value, &self.version.value);
        if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        }
    }
}

/// A subresource: a path below an object, with verbs of its own.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The name, the last part of the path.
    pub name: SpannedValue<String>,
    /// Its verbs, sorted; it serves those that the kind serves too.
    pub verbs: Vec<Verb>,
    /// The field that it writes; `None` for nothing.
    pub writes: Option<Writes>,
    /// The fields that its Scale shows; `None` for another subresource than `scale`.
    pub scale: Option<Scale>,
    /// The type with the code of its requests.
    pub handler: Option<Code>,
    /// Whether its requests open streams.
    pub connects: bool,
}

/// The fields of an object that its Scale shows.
#[derive(Clone, Debug)]
pub struct Scale {
    /// The desired number of replicas.
    pub spec: FieldRef,
    /// The present number of replicas.
    pub status: FieldRef,
    /// The label selector of the replicas, as text.
    pub selector: Option<FieldRef>,
}

/// The field that a subresource writes, by its JSON name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// This field only.
    Only(String),
    /// This field and the metadata.
    WithMetadata(String),
    /// This field besides what the object's own path writes.
    Also(String),
}

/// A method that the generated client has besides those of the verbs.
#[derive(Clone, Debug)]
pub struct Method {
    /// The name of the function.
    pub name: SpannedValue<String>,
    /// The request that it sends.
    pub verb: SpannedValue<MethodVerb>,
    /// The subresource that it is sent to; `None` for the objects themselves.
    pub subresource: Option<SpannedValue<String>>,
    /// The kind of its body; `None` for that of the subresource, or of the objects.
    pub input: Option<Code>,
    /// The type of the response; `None` for that of the subresource, or of the objects.
    pub output: Option<Code>,
}

/// The request of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the requests")]
pub enum MethodVerb {
    Get,
    List,
    Create,
    Update,
    Patch,
    Apply,
}

/// An index of local copies: finds objects by the value of a field.
#[derive(Clone, Debug)]
pub struct Index {
    /// The name, in lower case.
    pub name: SpannedValue<String>,
    /// The field.
    pub path: Vec<Name>,
}

/// How objects are deleted.
#[derive(Clone, Debug)]
pub enum Deletion {
    /// Removed, or marked while they have finalizers or a grace period.
    Object(ObjectDeletion),
    /// Marked until their content is gone.
    Container {
        /// The list of finalizers besides `metadata.finalizers`.
        finalizers: FieldRef,
        /// The text field that is `Terminating` in a marked object.
        phase: FieldRef,
    },
}

/// A printer column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The header.
    pub name: SpannedValue<String>,
    /// Where its cells come from.
    pub source: ColumnSource,
    /// The declared type; `None` lets rustc infer it from the field.
    pub column_type: Option<ColumnType>,
    /// Format hint; mostly empty.
    pub format: String,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
    /// What the column shows.
    pub description: String,
}

/// Where a column's cells come from.
#[derive(Clone, Debug)]
pub enum ColumnSource {
    /// A value inside the object.
    Field(FieldRef),
    /// The first value that a JSONPath with filters finds.
    Query(Query),
    /// A function of the typed object.
    With(Code),
}

/// The releases that introduce, deprecate and remove a kind.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// First release that has it.
    pub introduced: Option<SpannedValue<Release>>,
    /// First release that warns.
    pub deprecated: Option<SpannedValue<Release>>,
    /// First release without it.
    pub removed: Option<SpannedValue<Release>>,
    /// Group, version and kind to use instead.
    pub replacement: Option<(String, String, String)>,
}
