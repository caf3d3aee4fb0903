//! core/v1 Namespace, and the admission plugin that keeps objects out of namespaces that are missing or on their way out.
//!
//! A namespace ends in two steps. DELETE marks it: deletionTimestamp, phase Terminating. It goes when `spec.finalizers`
//! is emptied by a PUT to `/finalize` and `metadata.finalizers` is empty. Emptying a terminating namespace of its
//! objects and its finalizers is the work of the namespace controller, which comes with the garbage collector: until
//! then a deleted namespace stays Terminating until someone finalizes it.

use apiloom_meta::error::MAX_CAUSES;
use apiloom_meta::kind::{
    ApiType, CellSource, Column, ColumnType, DeletionRule, GenerationRule, NameFormat, Scope,
    SubresourceDef, Verb, Writes,
};
use apiloom_meta::schema::Schema;
use apiloom_meta::types::ObjectMeta;
use apiloom_meta::{
    ApiError, FieldError, FieldPath, GroupResource, JsonPath, Resource, ResourceDef, StatusCause,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admission::{Admission, AdmissionRequest, Operation};
use super::strategy::Strategy;
use crate::registry::options::RequestContext;
use crate::registry::reads::lister::Lister;

/// The namespace that exists after the first start.
pub(crate) const DEFAULT: &str = "default";

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = [DEFAULT, "kube-system", "kube-public"];

/// The finalizer by which the namespace controller empties a namespace first.
const KUBERNETES: &str = "kubernetes";

/// The label that holds a namespace's own name, so that selectors can name it.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

const ACTIVE: &str = "Active";
const TERMINATING: &str = DeletionRule::TERMINATING;

/// Namespace provides a scope for names. Use of multiple namespaces is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespace {
    /// Standard object's metadata.
    pub metadata: ObjectMeta,
    /// Spec defines the behavior of the Namespace.
    pub spec: NamespaceSpec,
    /// Status describes the current status of a Namespace.
    pub status: NamespaceStatus,
}

/// NamespaceSpec describes the attributes on a Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceSpec {
    /// Finalizers is an opaque list of values that must be empty to permanently remove object from storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

/// NamespaceStatus is information about the current status of a Namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceStatus {
    /// Phase is the current lifecycle phase of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Represents the latest available observations of a namespace's current state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<NamespaceCondition>,
}

/// NamespaceCondition contains details about state of namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceCondition {
    /// Type of namespace controller condition.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// Status of the condition, one of True, False, Unknown.
    pub status: String,
    /// Last time the condition transitioned from one status to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<apiloom_meta::Time>,
    /// Unique, one-word, CamelCase reason for the condition's last transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Human-readable message indicating details about last transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl ApiType for Namespace {}

impl Resource for Namespace {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Namespace";
    const PLURAL: &'static str = "namespaces";

    fn definition() -> ResourceDef {
        ResourceDef {
            group: Self::GROUP.into(),
            version: Self::VERSION.into(),
            kind: Self::KIND.into(),
            list_kind: "NamespaceList".into(),
            plural: Self::PLURAL.into(),
            singular: "namespace".into(),
            short_names: vec!["ns".into()],
            categories: Vec::new(),
            scope: Scope::Cluster,
            verbs: Verb::ALL
                .into_iter()
                .filter(|verb| *verb != Verb::DeleteCollection)
                .collect(),
            subresources: vec![
                SubresourceDef::new("finalize", &[Verb::Update], Writes::Also("spec".into())),
                SubresourceDef::status(),
            ],
            deletion: DeletionRule::Container {
                finalizers: JsonPath::new(["spec", "finalizers"]),
                phase: JsonPath::new(["status", "phase"]),
            },
            storage: true,
            served: true,
            conversion: None,
            columns: columns(),
            selectable: vec![JsonPath::new(["status", "phase"])],
            lifecycle: None,
            name_format: NameFormat::DnsLabel,
            generation: GenerationRule::None,
            unconditional_update: true,
            create_on_update: false,
            description:
                "Namespace provides a scope for names. Use of multiple namespaces is optional."
                    .into(),
            place: None,
            schema: || Schema::for_resource::<Self>(),
        }
    }
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn columns() -> Vec<Column> {
    let column = |name, column_type, description, path| Column {
        name,
        column_type,
        format: "".into(),
        priority: 0,
        description,
        source: CellSource::Path(JsonPath::new(path)),
    };
    let age = "CreationTimestamp is a timestamp representing the server time when this object was created.";
    vec![
        column(
            "Status".into(),
            ColumnType::String,
            "The status of the namespace".into(),
            ["status", "phase"],
        ),
        column(
            "Age".into(),
            ColumnType::Date,
            age.into(),
            ["metadata", "creationTimestamp"],
        ),
    ]
}

/// The rules of namespaces.
pub(crate) struct NamespaceRules;

impl Strategy<Namespace> for NamespaceRules {
    fn default(&self, object: &mut Namespace) {
        label(object);
    }
    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Namespace) {
        // Once more: a generated name is known only now.
        label(object);
        object.status = NamespaceStatus {
            phase: Some(ACTIVE.to_owned()),
            conditions: Vec::new(),
        };
        if !object.spec.finalizers.iter().any(|name| name == KUBERNETES) {
            object.spec.finalizers.push(KUBERNETES.to_owned());
        }
    }
    fn validate(&self, _ctx: &RequestContext, object: &Namespace) -> Vec<FieldError> {
        let path = FieldPath::new("spec").child("finalizers");
        let foreign = object
            .spec
            .finalizers
            .iter()
            .enumerate()
            .filter(|(_, name)| *name != KUBERNETES && !name.contains('/'));
        foreign
            .take(MAX_CAUSES)
            .map(|(i, name)| {
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                FieldError::invalid(&path.index(i), name, detail)
            })
            .collect()
    }
    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Namespace,
        _old: &Namespace,
    ) -> Vec<FieldError> {
        let mut errors = self.validate(ctx, new);
        let phase = new.status.phase.as_deref().unwrap_or_default();
        let path = FieldPath::new("status").child("phase");
        if new.metadata.deletion_timestamp.is_none() && phase != ACTIVE {
            errors.push(FieldError::invalid(
                &path,
                phase,
                "may only be 'Active' if `deletionTimestamp` is empty",
            ));
        }
        if new.metadata.deletion_timestamp.is_some() && phase != TERMINATING {
            errors.push(FieldError::invalid(
                &path,
                phase,
                "may only be 'Terminating' if `deletionTimestamp` is not empty",
            ));
        }
        errors
    }
}

fn label(object: &mut Namespace) {
    if let Some(name) = object.metadata.name.clone().filter(|name| !name.is_empty()) {
        object.metadata.labels.insert(NAME_LABEL.to_owned(), name);
    }
}

/// Keeps objects out of namespaces that do not exist or are on their way out, and immortal namespaces alive.
pub(crate) struct NamespaceLifecycle {
    namespaces: Lister<Namespace>,
}

impl NamespaceLifecycle {
    /// The name by which it is disabled.
    pub(crate) const NAME: &'static str = "NamespaceLifecycle";

    pub(crate) fn new(namespaces: Lister<Namespace>) -> Self {
        Self { namespaces }
    }

    async fn check_namespace(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let name = request.namespace;
        let Some(namespace) = self.namespaces.get("", name).await? else {
            return Err(ApiError::not_found(
                &GroupResource::new("", Namespace::PLURAL),
                name,
            ));
        };
        if request.operation != Operation::Create
            || namespace.status.phase.as_deref() != Some(TERMINATING)
        {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {name} because it is being terminated"
        );
        let mut error = request.forbidden(&why);
        if let Some(details) = &mut error.details {
            details.causes.push(StatusCause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {name} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        Err(error)
    }
}

#[async_trait]
impl Admission for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.is::<Namespace>() {
            if request.operation == Operation::Delete && IMMORTAL.contains(&request.name) {
                return Err(request.forbidden("this namespace may not be deleted"));
            }
            return Ok(());
        }
        // Objects that are left in a namespace may always be deleted.
        if request.namespace.is_empty() || request.operation == Operation::Delete {
            return Ok(());
        }
        self.check_namespace(request).await
    }
}
