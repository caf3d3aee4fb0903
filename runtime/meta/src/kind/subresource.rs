//! Subresources: paths below an object, with their own verbs.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use smol_str::SmolStr;

use super::Verb;
use crate::gvk::GroupVersionKind;
use crate::path::JsonPath;

/// A subresource of a kind: `/apis/GROUP/VERSION/RESOURCE/NAME/SUBRESOURCE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubresourceDef {
    /// Name; the last segment of the path.
    pub name: SmolStr,
    /// Verbs, sorted. Verbs that the kind does not serve are not served here either.
    pub verbs: Vec<Verb>,
    /// The part of the object that it writes.
    pub writes: Writes,
    /// The kind of request bodies; `None` for the object itself.
    pub input: Option<GroupVersionKind>,
    /// The kind of responses; `None` for the object itself.
    pub output: Option<GroupVersionKind>,
    /// A program's own code for its requests. Its verbs do not depend on those of the kind.
    pub handler: Option<SubresourceHandler>,
    /// Whether its requests open streams of any form, with further path segments and without a deadline (`connect`). It
    /// has a handler then.
    pub connects: bool,
}

/// A program's own code for the requests of a subresource. Its type is known to the server only, which serves the kind.
#[derive(Clone)]
pub struct SubresourceHandler {
    /// The type that the declaration of the subresource names.
    type_id: TypeId,
    type_name: &'static str,
    make: MakeHandler,
    code: Arc<dyn Any + Send + Sync>,
}

/// Makes the value of a handler.
type MakeHandler = fn() -> Arc<dyn Any + Send + Sync>;

impl SubresourceHandler {
    /// The handler of the type `H`, with its code in the server's terms.
    pub fn new<H: Default + Send + Sync + 'static>(code: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            type_id: TypeId::of::<H>(),
            type_name: std::any::type_name::<H>(),
            make: || Arc::new(H::default()),
            code,
        }
    }
    /// The type that the declaration of the subresource names.
    pub fn type_id(&self) -> TypeId {
        self.type_id
    }
    /// A new value of the type.
    pub fn make(&self) -> Arc<dyn Any + Send + Sync> {
        (self.make)()
    }
    /// The code; `None` if it is that of another server.
    pub fn code<C: 'static>(&self) -> Option<&C> {
        self.code.downcast_ref()
    }
}

/// Handlers of the same type are equal.
impl PartialEq for SubresourceHandler {
    fn eq(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }
}

impl Eq for SubresourceHandler {}

impl fmt::Debug for SubresourceHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SubresourceHandler({})", self.type_name)
    }
}

/// The part of an object that a subresource writes. A field named here is not written by updates of the object itself,
/// nor by other subresources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// No part of the object.
    Nothing,
    /// Only this field; all others stay unchanged, including metadata. On create the field has its default.
    Only(SmolStr),
    /// This field and the metadata; all others stay unchanged. On create the field has its default.
    WithMetadata(SmolStr),
    /// This field, and those that an update of the object itself writes.
    Also(SmolStr),
    /// The number of replicas, by an object of the kind Scale. Updates of the object itself write it too.
    Replicas(ScalePaths),
}

/// The fields of an object that its Scale shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The desired number of replicas, below `.spec`; the only field that is written.
    pub spec: JsonPath,
    /// The present number of replicas, below `.status`.
    pub status: JsonPath,
    /// The label selector of the replicas as text, below `.spec` or `.status`; autoscalers need it.
    pub selector: Option<JsonPath>,
}

impl Writes {
    /// The field of the subresource.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Nothing | Self::Replicas(_) => None,
            Self::Only(field) | Self::WithMetadata(field) | Self::Also(field) => Some(field),
        }
    }
}

impl SubresourceDef {
    /// Name of the status subresource.
    pub const STATUS: &'static str = "status";
    /// Name of the scale subresource.
    pub const SCALE: &'static str = "scale";

    /// A subresource whose requests and responses are objects of the kind itself.
    pub fn new(name: impl Into<SmolStr>, verbs: &[Verb], writes: Writes) -> Self {
        Self {
            name: name.into(),
            verbs: verbs.to_vec(),
            writes,
            input: None,
            output: None,
            handler: None,
            connects: false,
        }
    }

    /// The subresource `status`, which can be read, and writes only the field `status`.
    pub fn status() -> Self {
        Self::new(
            SmolStr::new_static(Self::STATUS),
            &[Verb::Get, Verb::Patch, Verb::Update],
            Writes::Only(SmolStr::new_static(Self::STATUS)),
        )
    }

    /// The subresource `scale`, by which autoscalers and `kubectl scale` read and write the number of replicas.
    pub fn scale(paths: ScalePaths) -> Self {
        let scale = GroupVersionKind::new("autoscaling", "v1", "Scale");
        Self {
            input: Some(scale.clone()),
            output: Some(scale),
            ..Self::new(
                SmolStr::new_static(Self::SCALE),
                &[Verb::Get, Verb::Patch, Verb::Update],
                Writes::Replicas(paths),
            )
        }
    }

    /// The kind of requests for discovery and OpenAPI: that of bodies, else that of responses; `None` for the object itself.
    pub fn listed_kind(&self) -> Option<&GroupVersionKind> {
        self.input.as_ref().or(self.output.as_ref())
    }

    /// The fields that its Scale shows, of the subresource `scale`.
    pub fn scale_paths(&self) -> Option<&ScalePaths> {
        match &self.writes {
            Writes::Replicas(paths) => Some(paths),
            Writes::Nothing | Writes::Only(_) | Writes::WithMetadata(_) | Writes::Also(_) => None,
        }
    }
}
