//! The strategy of apiextensions.k8s.io/v1 CustomResourceDefinition. The texts of errors are those of kube-apiserver.

pub mod accepted;
mod conversion;
mod names;
mod quota;
mod registration;
mod schema;
mod strategy;
mod versions;

use apiloom_meta::{Condition, Conditions as _, FieldError, FieldPath, ObjectMeta};
use apiloom_registry::{RequestContext, Strategy};
use serde_json::Value;

use self::conversion::authorities_error;
use self::names::{name_errors, names_errors};
pub use self::strategy::take_schemas;
use self::versions::version_errors;
use crate::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionStatus,
};
use crate::webhook::{client_config, client_errors};

/// The strategy of definitions, but for its warnings.
struct DefinitionRules;

/// The strategy of conversion that changes the apiVersion alone.
const NONE: &str = "None";

/// The strategy of conversion by a webhook.
const WEBHOOK: &str = "Webhook";

/// The versions of ConversionReview that this server knows.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The finalizer that keeps a definition until its objects are deleted.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

const IMMUTABLE: &str = "field is immutable";

/// The annotation of kinds in the groups of Kubernetes: the URL of the approval, or a text that begins with `unapproved`.
pub const APPROVAL: &str = "api-approved.kubernetes.io";

impl Strategy<CustomResourceDefinition> for DefinitionRules {
    fn default(&self, object: &mut CustomResourceDefinition) {
        let CustomResourceDefinitionSpec {
            names, conversion, ..
        } = &mut object.spec;
        if !names.kind.is_empty() {
            let kind = &names.kind;
            set_if_empty(&mut names.singular, || kind.to_lowercase());
            set_if_empty(&mut names.list_kind, || format!("{kind}List"));
        }
        let conversion = conversion.get_or_insert_with(|| CustomResourceConversion {
            strategy: NONE.to_owned(),
            webhook: None,
        });
        let config = conversion.webhook.as_mut();
        let config = config.and_then(|webhook| webhook.client_config.as_mut());
        if let Some(service) = config.and_then(|config| config.service.as_mut()) {
            service.port.get_or_insert(443);
        }
        if object.status.stored_versions.is_empty() {
            add_storage_version(object);
        }
    }

    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut CustomResourceDefinition) {
        object.status = CustomResourceDefinitionStatus {
            accepted_names: Some(CustomResourceDefinitionNames::default()),
            ..CustomResourceDefinitionStatus::default()
        };
        add_storage_version(object);
    }

    fn prepare_for_update(
        &self,
        _ctx: &RequestContext,
        new: &mut CustomResourceDefinition,
        _old: &CustomResourceDefinition,
    ) {
        add_storage_version(new);
    }

    const PREPARES_DELETE: bool = true;

    fn prepare_for_delete(&self, _ctx: &RequestContext, object: &mut CustomResourceDefinition) {
        let finalizers = &mut object.metadata.finalizers;
        if !finalizers.iter().any(|known| known == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        let condition = Condition::new(
            "Terminating",
            true,
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        );
        object.status.conditions.set_condition(condition.into());
    }

    fn validate(&self, ctx: &RequestContext, object: &CustomResourceDefinition) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let expected = format!("{}.{}", object.spec.names.plural, object.spec.group);
        let prefix = object.metadata.generate_name.as_deref().unwrap_or_default();
        for (field, text) in [("generateName", prefix), ("name", name)] {
            // An absent name is an error of the metadata.
            if !text.is_empty() && text != expected {
                let path = FieldPath::new("metadata").child(field);
                let why = "must be spec.names.plural+\".\"+spec.group";
                errors.push(FieldError::invalid(&path, text, why));
            }
        }
        errors.extend(spec_errors(ctx, &object.spec));
        errors.extend(status_errors(object));
        if let Some(error) = approval_error(&object.spec.group, &object.metadata) {
            errors.push(error);
        }
        errors
    }

    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &CustomResourceDefinition,
        old: &CustomResourceDefinition,
    ) -> Vec<FieldError> {
        let path = FieldPath::new("spec");
        // What is stored may be of another release, whose rules allowed it.
        let mut errors = if new.spec == old.spec {
            Vec::new()
        } else {
            spec_errors(ctx, &new.spec)
        };
        let mut fixed = vec![
            (&new.spec.group, &old.spec.group, path.child("group")),
            (
                &new.spec.names.plural,
                &old.spec.names.plural,
                path.child("names").child("plural"),
            ),
        ];
        if is_established(old) {
            let kind = path.child("names").child("kind");
            fixed.push((&new.spec.scope, &old.spec.scope, path.child("scope")));
            fixed.push((&new.spec.names.kind, &old.spec.names.kind, kind));
        }
        let changed = fixed.into_iter().filter(|(new, old, _)| new != old);
        errors.extend(changed.map(|(new, _, path)| FieldError::invalid(&path, new, IMMUTABLE)));
        // What was stored before this rule may stay, and what was not used yet may be mended step by step.
        if is_established(old) && authorities_error(old).is_none() {
            errors.extend(authorities_error(new));
        }
        errors.extend(status_errors(new));
        let approval = |of: &CustomResourceDefinition| {
            let annotations = of.metadata.annotations.get(APPROVAL);
            annotations.cloned()
        };
        // A definition without an approval may stay without one.
        if approval(new) != approval(old) || new.spec.group != old.spec.group {
            errors.extend(approval_error(&new.spec.group, &new.metadata));
        }
        errors
    }
}

fn set_if_empty(text: &mut Option<String>, default: impl FnOnce() -> String) {
    if text.as_deref().is_none_or(str::is_empty) {
        *text = Some(default());
    }
}

/// Notes that objects may be stored in the storage version.
fn add_storage_version(object: &mut CustomResourceDefinition) {
    let stored = &mut object.status.stored_versions;
    if let Some(version) = object.spec.versions.iter().find(|version| version.storage)
        && !stored.contains(&version.name)
    {
        stored.push(version.name.clone());
    }
}

/// Whether the kind was served at some time.
fn is_established(object: &CustomResourceDefinition) -> bool {
    object.status.conditions.is_condition_true("Established")
}

/// Whether the authorities of its conversion webhook are malformed, so that its kind is not established.
pub fn has_invalid_authorities(object: &CustomResourceDefinition) -> bool {
    authorities_error(object).is_some()
}

fn spec_errors(ctx: &RequestContext, spec: &CustomResourceDefinitionSpec) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = group_errors(&spec.group, &path.child("group"));
    errors.extend(scope_error(&spec.scope, &path.child("scope")));
    if spec.preserve_unknown_fields == Some(true) {
        errors.push(FieldError::invalid(
            &path.child("preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    errors.extend(version_errors(ctx, spec, &path));
    errors.extend(name_errors(&spec.names, &path.child("names")));
    errors.extend(names_errors(&spec.names, &path.child("names")));
    if let Some(conversion) = &spec.conversion {
        errors.extend(conversion_errors(conversion, &path.child("conversion")));
    }
    errors
}

fn group_errors(group: &str, path: &FieldPath) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let complaints = apiloom_meta::names::dns_subdomain(group);
    if !complaints.is_empty() {
        return vec![FieldError::invalid(path, group, &complaints.join(","))];
    }
    if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        return vec![FieldError::invalid(path, group, why)];
    }
    Vec::new()
}

fn scope_error(scope: &str, path: &FieldPath) -> Option<FieldError> {
    match scope {
        "" => Some(FieldError::required(path, "")),
        "Cluster" | "Namespaced" => None,
        other => Some(FieldError::not_supported(
            path,
            other,
            &["Cluster", "Namespaced"],
        )),
    }
}

/// The errors of the names in a status.
fn accepted_names_errors(status: &CustomResourceDefinitionStatus) -> Vec<FieldError> {
    let path = FieldPath::new("status").child("acceptedNames");
    let names = status.accepted_names.as_ref();
    names.map_or_else(Vec::new, |names| names_errors(names, &path))
}

fn status_errors(object: &CustomResourceDefinition) -> Vec<FieldError> {
    let path = FieldPath::new("status");
    let status = &object.status;
    let mut errors = accepted_names_errors(status);
    let (stored, path) = (&status.stored_versions, path.child("storedVersions"));
    if stored.is_empty() {
        let why = "must have at least one stored version";
        errors.push(FieldError::invalid(&path, Value::Null, why));
        return errors;
    }
    let versions = &object.spec.versions;
    for version in versions.iter().filter(|version| version.storage) {
        if !stored.contains(&version.name) {
            let why = format!("must have the storage version {}", version.name);
            errors.push(FieldError::invalid(&path, stored, &why));
        }
    }
    let is_known = |name: &String| versions.iter().any(|version| version.name == *name);
    let missing = stored
        .iter()
        .enumerate()
        .filter(|(_, name)| !is_known(name));
    errors.extend(missing.map(|(at, name)| {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        FieldError::invalid(&path.index(at), name, &why)
    }));
    errors
}

fn conversion_errors(conversion: &CustomResourceConversion, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let strategy = path.child("strategy");
    match conversion.strategy.as_str() {
        "" => errors.push(FieldError::required(&strategy, "")),
        NONE | WEBHOOK => {}
        other => errors.push(FieldError::not_supported(
            &strategy,
            other,
            &[NONE, WEBHOOK],
        )),
    }
    let (config, reviews) = (
        path.child("webhookClientConfig"),
        path.child("conversionReviewVersions"),
    );
    let webhook = conversion.webhook.as_ref();
    let client = webhook.and_then(|webhook| webhook.client_config.as_ref());
    let versions = webhook.map_or(&[][..], |webhook| &webhook.conversion_review_versions);
    if conversion.strategy != WEBHOOK {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&config, why));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&reviews, why));
        }
        return errors;
    }
    match client {
        None => errors.push(FieldError::required(
            &config,
            "required when strategy is set to Webhook",
        )),
        Some(client) => errors.extend(client_errors(&client_config!(client), &config)),
    }
    errors.extend(review_errors(versions, &reviews));
    errors
}

fn review_errors(versions: &[String], path: &FieldPath) -> Vec<FieldError> {
    if versions.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let path = path.index(at);
        if versions[..at].contains(version) {
            errors.push(FieldError::invalid(&path, version, "duplicate version"));
            continue;
        }
        let complaints = apiloom_meta::names::dns1035_label(version);
        errors.extend(
            complaints
                .iter()
                .map(|why| FieldError::invalid(&path, version, why)),
        );
    }
    if !versions
        .iter()
        .any(|version| REVIEW_VERSIONS.contains(&version.as_str()))
    {
        let why = format!(
            "must include at least one of {}",
            REVIEW_VERSIONS.join(", ")
        );
        errors.push(FieldError::invalid(path, versions, &why));
    }
    errors
}

/// Whether a group belongs to Kubernetes.
pub fn is_protected(group: &str) -> bool {
    let is_below = |domain: &str| {
        let above = group.strip_suffix(domain);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    is_below("k8s.io") || is_below("kubernetes.io")
}

/// What the annotation of an approval says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is none.
    Missing,
    /// The kind is in a group of Kubernetes without its approval, on purpose.
    Bypassed,
    /// The URL of an approval.
    Approved,
    /// Another text.
    Invalid(String),
}

impl Approval {
    /// The approval that the annotation of a definition names.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let Some(text) = metadata.annotations.get(APPROVAL) else {
            return Self::Missing;
        };
        if text.starts_with("unapproved") {
            return Self::Bypassed;
        }
        let is_url = text.parse::<http::Uri>().is_ok_and(|uri| {
            uri.host().is_some_and(|host| !host.is_empty()) && uri.scheme().is_some()
        });
        if is_url {
            Self::Approved
        } else {
            Self::Invalid(text.clone())
        }
    }

    /// Why a kind in a group of Kubernetes may not have this annotation; `None` if it may.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Approved | Self::Bypassed => None,
            Self::Missing => Some(format!(
                "protected groups must have approval annotation {APPROVAL:?}, see https://github.com/kubernetes/enhancements/pull/1111"
            )),
            Self::Invalid(_) => Some(format!(
                "protected groups must have approval annotation {APPROVAL:?} with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            )),
        }
    }
}

/// The error of a kind in a group of Kubernetes without an approval.
fn approval_error(group: &str, metadata: &ObjectMeta) -> Option<FieldError> {
    if !is_protected(group) {
        return None;
    }
    let approval = Approval::of(metadata);
    let path = FieldPath::new("metadata")
        .child("annotations")
        .key(APPROVAL);
    let why = approval.problem()?;
    Some(match approval {
        Approval::Invalid(text) => FieldError::invalid(&path, text, &why),
        _ => FieldError::required(&path, &why),
    })
}

#[cfg(test)]
mod tests;
