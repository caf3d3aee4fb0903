//! The strategy of core/v1 Namespace, and the admission plugin NamespaceLifecycle.
//!
//! A namespace is deleted in two steps. DELETE sets deletionTimestamp and the phase Terminating. The object is removed
//! when `spec.finalizers` is emptied by a PUT to `/finalize` and `metadata.finalizers` is empty. Deleting the content
//! of a terminating namespace, and then that PUT, is the task of the namespace controller (`runtime/parts/namespaces`).

use apiloom_meta::error::MAX_CAUSES;
use apiloom_meta::kind::DeletionRule;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupResource, Resource, StatusCause};
use apiloom_registry::{
    Admission, AdmissionRequest, Lister, Operation, RegistryBuilder, RequestContext, Strategy,
};
use async_trait::async_trait;

use crate::built_in::BuiltIn;
use crate::core::v1::{Namespace, NamespaceStatus};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The finalizer of the namespace controller.
const KUBERNETES: &str = "kubernetes";

/// The label with a namespace's own name, for selectors.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

const ACTIVE: &str = "Active";
const TERMINATING: &str = DeletionRule::TERMINATING;

impl BuiltIn for Namespace {
    fn register(registry: &mut RegistryBuilder) {
        if registry.namespace_kind::<Self>(NamespaceRules) {
            registry.admission(|context| Box::new(NamespaceLifecycle::new(context.lister())));
        }
    }
}

/// The strategy of namespaces.
struct NamespaceRules;

impl Strategy<Namespace> for NamespaceRules {
    fn default(&self, object: &mut Namespace) {
        label(object);
    }
    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Namespace) {
        // Set again: a generated name is known only now.
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

/// Refuses creates in namespaces that do not exist or are terminating, and deletes of immortal namespaces.
struct NamespaceLifecycle {
    namespaces: Lister<Namespace>,
}

impl NamespaceLifecycle {
    /// The plugin's name in `--disable-admission-plugins`.
    const NAME: &'static str = "NamespaceLifecycle";

    fn new(namespaces: Lister<Namespace>) -> Self {
        Self { namespaces }
    }

    async fn check_namespace(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let name = request.namespace;
        let Some(namespace) = self.namespaces.get_live("", name).await? else {
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
        // Deletes are allowed in a terminating namespace, and a stream needs only its object. Objects without a store
        // need no namespace, and their responses must not reveal which namespaces exist.
        let creates_nothing = matches!(request.operation, Operation::Delete | Operation::Connect);
        if request.namespace.is_empty() || creates_nothing || !request.has_store {
            return Ok(());
        }
        self.check_namespace(request).await
    }
}
