//! How a kind is served where kube-apiserver has two ways: that of its compiled kinds, and that of custom resources.
//!
//! All code asks the answer that it needs, never where the kind is from. What a definition says of a single kind, such as
//! its deprecation, is data of [`CustomKind`](super::CustomKind) and no part of the dialect.

/// Which part of kube-apiserver publishes a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// The program, when it starts: `pkg/endpoints/installer.go` of `k8s.io/apiserver`.
    Program,
    /// A CustomResourceDefinition, at any time: the controllers of `k8s.io/apiextensions-apiserver`.
    Definition,
}

/// The answers to all questions that compiled kinds and custom resources answer differently. A kind starts with one of the
/// two constants, and may choose each answer.
///
/// ```
/// use apiloom_meta::kind::Dialect;
/// // Refuses finalizers without a domain nowhere, as custom resources.
/// let dialect = Dialect { warns_of_finalizers: true, ..Dialect::COMPILED };
/// assert_ne!(dialect, Dialect::COMPILED);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// When the kind is known. The program's kinds are in the order of their declaration, their groups have declared
    /// versions, and no definition can replace them. A definition's kinds come after them by name, add their versions to
    /// any group, and have APIServices that are kept up to date (`crdRegistrationController` of kube-aggregator).
    pub registration: Publication,
    /// Whether the versions of a group with only such kinds are preferred by their names, as
    /// `customresource_discovery_controller.go` sorts them; otherwise as declared.
    pub sorts_versions: bool,
    /// The order of the verbs in discovery, and whether the kind of responses has a group and a version there although they
    /// are those of the resource: `customresource_discovery_controller.go` for definitions.
    pub discovery: Publication,
    /// The content of OpenAPI documents: made of routes and types, with discovery of their groups; or of definitions, with
    /// their own descriptions and fewer details, as `pkg/controller/openapi/builder` of apiextensions-apiserver.
    pub openapi: Publication,

    /// Whether the verb of a request is that of its request info, so that a HEAD is a GET, and a refusal names the verb: one
    /// handler serves all paths (`customresource_handler.go`). Otherwise each path has routes for methods
    /// (`installer.go`).
    pub routes_by_verb: bool,
    /// Whether segments after the name of a subresource are ignored (`customresource_handler.go`); otherwise there is no
    /// such path.
    pub ignores_path_tail: bool,
    /// Whether an unknown path is answered with a plain `404 page not found`, and an unknown subresource with that of the
    /// object, as by `crdHandler` and its delegate; otherwise with a Status that the resource is unknown.
    pub hides_unknown_paths: bool,
    /// Whether media types are checked by the handler, after the object is known to exist; otherwise by the route, before
    /// (go-restful's `Consumes` and `Produces`).
    pub negotiates_in_handler: bool,
    /// Whether the Scale of an object takes strategic merge patches, as that of compiled kinds; that of custom resources takes
    /// none (`customresource_handler.go`).
    pub merges_scale: bool,

    /// Whether the fields of lists, of `managedFields` and of the type of an object are written sorted, as those of a map
    /// (`unstructured.Unstructured`); otherwise in the order of structs.
    pub sorts_fields: bool,
    /// Whether error texts name Go's type `unstructured.Unstructured` instead of that of the kind.
    pub is_unstructured: bool,
    /// Whether tables have no column after the name but those that the kind declares (`tableconvertor.New` of
    /// apiextensions-apiserver); otherwise a missing age is added, and a declared name is the first one.
    pub has_declared_columns: bool,
    /// Whether columns may show fields that the schema does not have: their cells are empty.
    pub has_unknown_columns: bool,

    /// Whether `apiVersion` and `kind` of an object are checked by its validation, with a 422
    /// (`customResourceValidator.validateTypeMeta`); otherwise while it is decoded, with a 400.
    pub validates_type: bool,
    /// Whether numbers are stored as Go's `interface{}` has them: integers of 64 bits and floats, which are written without a
    /// fraction if they have none.
    pub settles_numbers: bool,
    /// Whether an object is validated without the defaults of fields that a create resets, such as the status; they are
    /// applied when it is read. Otherwise they are applied at once.
    pub defaults_reset_fields_late: bool,
    /// Whether the validation of an apply sees unknown fields and nulls, which are dropped after it; otherwise they are
    /// dropped before.
    pub validates_dropped_fields: bool,
    /// Whether a subresource that writes one field validates only this field (`statusStrategy.ValidateUpdate` of
    /// apiextensions-apiserver); otherwise the whole object.
    pub validates_written_field: bool,
    /// Whether an update tells the errors of its metadata twice, as `customResourceStrategy` does.
    pub repeats_metadata_errors: bool,
    /// Whether finalizers without a domain are allowed, with a warning; otherwise they are refused (`ValidateFinalizers` of
    /// the kinds).
    pub warns_of_finalizers: bool,
}

impl Dialect {
    /// The dialect of Kubernetes' own kinds and of those of aggregated servers.
    pub const COMPILED: Self = Self {
        registration: Publication::Program,
        sorts_versions: false,
        discovery: Publication::Program,
        openapi: Publication::Program,
        routes_by_verb: false,
        ignores_path_tail: false,
        hides_unknown_paths: false,
        negotiates_in_handler: false,
        merges_scale: true,
        sorts_fields: false,
        is_unstructured: false,
        has_declared_columns: false,
        has_unknown_columns: false,
        validates_type: false,
        settles_numbers: false,
        defaults_reset_fields_late: false,
        validates_dropped_fields: false,
        validates_written_field: false,
        repeats_metadata_errors: false,
        warns_of_finalizers: false,
    };

    /// The dialect of custom resources.
    pub const CUSTOM: Self = Self {
        registration: Publication::Definition,
        sorts_versions: true,
        discovery: Publication::Definition,
        openapi: Publication::Definition,
        routes_by_verb: true,
        ignores_path_tail: true,
        hides_unknown_paths: true,
        negotiates_in_handler: true,
        merges_scale: false,
        sorts_fields: true,
        is_unstructured: true,
        has_declared_columns: true,
        has_unknown_columns: true,
        validates_type: true,
        settles_numbers: true,
        defaults_reset_fields_late: true,
        validates_dropped_fields: true,
        validates_written_field: true,
        repeats_metadata_errors: true,
        warns_of_finalizers: true,
    };

    /// Whether the program itself has the kind.
    pub fn is_of_program(&self) -> bool {
        self.registration == Publication::Program
    }
}
