//! The strategy of apiregistration.k8s.io/v1 APIService. The texts of errors are those of kube-apiserver.

mod quota;

use apiloom_meta::field::go_quote;
use apiloom_meta::{Condition, Conditions as _, FieldError, FieldPath, names};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};

use self::quota::APIServiceQuota;
use crate::apiregistration::v1::{APIService, APIServiceSpec, APIServiceStatus, ServiceReference};
use crate::built_in::BuiltIn;

impl BuiltIn for APIService {
    fn register(registry: &mut RegistryBuilder) {
        if registry.own_kind::<Self>(APIServiceRules) {
            registry.admission(|context| Box::new(APIServiceQuota(context.lister())));
        }
    }
}

/// The strategy of APIServices.
struct APIServiceRules;

/// The statuses of conditions.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

const MAX_GROUP_PRIORITY: i32 = 20_000;
const MAX_VERSION_PRIORITY: i32 = 1_000;

impl Strategy<APIService> for APIServiceRules {
    const HAS_DEFAULTS: bool = false;

    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut APIService) {
        object.status = APIServiceStatus::default();
        if object.spec.service.is_none() {
            let condition = Condition::new(APIService::AVAILABLE, true, LOCAL.0, LOCAL.1);
            object.status.conditions.set_condition(condition.into());
        }
    }

    fn validate(&self, _ctx: &RequestContext, object: &APIService) -> Vec<FieldError> {
        let (spec, path) = (&object.spec, FieldPath::new("spec"));
        let mut errors = Vec::new();
        errors.extend(name_error(object));
        errors.extend(version_errors(spec, &path));
        match &spec.service {
            None => errors.extend(local_errors(spec, &path)),
            Some(service) => errors.extend(service_errors(spec, service, &path)),
        }
        let path = FieldPath::new("status").child("conditions");
        for (index, condition) in object.status.conditions.iter().enumerate() {
            let status = condition.status.as_str();
            if !STATUSES.contains(&status) {
                let path = path.index(index).child("status");
                errors.push(FieldError::not_supported(&path, status, &STATUSES));
            }
        }
        errors
    }
}

/// The reason and the message of the condition of a version that this server serves.
pub const LOCAL: (&str, &str) = ("Local", "Local APIServices are always available");

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// The name of an APIService is that of its version and group.
fn name_error(object: &APIService) -> Option<FieldError> {
    let name = text(&object.metadata.name);
    let wanted = format!(
        "{}.{}",
        text(&object.spec.version),
        text(&object.spec.group)
    );
    if name == wanted {
        return None;
    }
    let path = FieldPath::new("metadata").child("name");
    let why = format!(
        "must be `spec.version+\".\"+spec.group`: {}",
        go_quote(&wanted)
    );
    Some(FieldError::invalid(&path, name, &why))
}

fn version_errors(spec: &APIServiceSpec, path: &FieldPath) -> Vec<FieldError> {
    let (group, version) = (text(&spec.group), text(&spec.version));
    let mut errors = Vec::new();
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&path.child("group"), why));
    }
    if !group.is_empty() {
        let path = path.child("group");
        let complaints = names::dns_subdomain(group).into_iter();
        errors.extend(complaints.map(|why| FieldError::invalid(&path, group, &why)));
    }
    let complaints = names::dns1035_label(version).into_iter();
    let of_version = path.child("version");
    errors.extend(complaints.map(|why| FieldError::invalid(&of_version, version, &why)));
    let priorities = [
        (
            "groupPriorityMinimum",
            spec.group_priority_minimum,
            MAX_GROUP_PRIORITY,
        ),
        (
            "versionPriority",
            spec.version_priority,
            MAX_VERSION_PRIORITY,
        ),
    ];
    for (field, priority, most) in priorities {
        if priority <= 0 || priority > most {
            let why = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&path.child(field), priority, &why));
        }
    }
    errors
}

fn local_errors(spec: &APIServiceSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let bundle = spec.ca_bundle.as_deref().unwrap_or_default();
    if !bundle.is_empty() {
        errors.push(FieldError::invalid(
            &path.child("caBundle"),
            format!("{} bytes", bundle.len()),
            "local APIServices may not have a caBundle",
        ));
    }
    if spec.insecure_skip_tls_verify == Some(true) {
        errors.push(FieldError::invalid(
            &path.child("insecureSkipTLSVerify"),
            true,
            "local APIServices may not have insecureSkipTLSVerify",
        ));
    }
    errors
}

fn service_errors(
    spec: &APIServiceSpec,
    service: &ServiceReference,
    path: &FieldPath,
) -> Vec<FieldError> {
    let of_service = path.child("service");
    let mut errors = Vec::new();
    for (field, value) in [("namespace", &service.namespace), ("name", &service.name)] {
        if text(value).is_empty() {
            errors.push(FieldError::required(&of_service.child(field), ""));
        }
    }
    if !(1..=65_535).contains(&service.port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        let path = of_service.child("port");
        errors.push(FieldError::invalid(&path, service.port, why));
    }
    let has_bundle = spec.ca_bundle.as_ref().is_some_and(|pem| !pem.is_empty());
    if spec.insecure_skip_tls_verify == Some(true) && has_bundle {
        errors.push(FieldError::invalid(
            &path.child("insecureSkipTLSVerify"),
            true,
            "may not be true if caBundle is present",
        ));
    }
    errors
}

#[cfg(test)]
mod tests;
