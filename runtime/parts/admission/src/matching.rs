//! Which webhooks are asked about a write, and in which version of the resource.

use apiloom_cel::Failure;
use apiloom_kinds::admissionregistration::v1::{MutatingWebhook, RuleWithOperations};
use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::{ApiError, Object, Resource as _};
use apiloom_registry::{AdmissionRequest, Lister, Operation};
use serde_json::Value;

use super::hooks::Hook;
use super::review::{Shown, operation};

/// Most that the conditions of a webhook cost together, as in kube-apiserver.
const MAX_COST: u64 = 2_500_000;

/// All of something.
const ALL: &str = "*";

/// Whether webhooks are asked about the write at all: not about reviews, and not about what says which webhooks there are.
pub(crate) fn is_exempt(request: &AdmissionRequest<'_>) -> bool {
    const CONFIGURATIONS: [&str; 6] = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    let kind = request.kind;
    let is_configuration = kind.group == "admissionregistration.k8s.io"
        && CONFIGURATIONS.contains(&kind.kind.as_str());
    is_configuration || !request.has_store
}

/// The version in which a webhook is asked about the write; `None` if it is not asked. Its conditions are not looked at.
///
/// # Errors
/// NotFound for a namespace that is not there, and InternalError, if the webhook would be asked otherwise.
pub(crate) async fn version_for<'r>(
    hook: &Hook,
    request: &'r AdmissionRequest<'_>,
    namespaces: &Lister<Namespace>,
) -> Result<Option<&'r str>, ApiError> {
    let Some(version) = rule_version(&hook.webhook, request) else {
        return Ok(None);
    };
    // An error is told only if nothing else keeps the webhook from being asked.
    if !matches_object(hook, request)? {
        return Ok(None);
    }
    let is_matched = matches_namespace(hook, request, namespaces).await?;
    Ok(is_matched.then_some(version))
}

/// The version of the first rule that matches, of the request itself or, if that has none, of another version.
fn rule_version<'r>(
    webhook: &MutatingWebhook,
    request: &'r AdmissionRequest<'_>,
) -> Option<&'r str> {
    let matches = |version: &str| {
        let mut rules = webhook.rules.iter();
        rules.any(|rule| matches_rule(rule, request, version))
    };
    if matches(request.version) {
        return Some(request.version);
    }
    if webhook.match_policy.as_deref() != Some(MutatingWebhook::EQUIVALENT) {
        return None;
    }
    let others = request.versions();
    let mut rules = webhook.rules.iter();
    rules
        .find_map(|rule| {
            let mut others = others.iter();
            others.find(|version| matches_rule(rule, request, version))
        })
        .copied()
}

fn matches_rule(rule: &RuleWithOperations, request: &AdmissionRequest<'_>, version: &str) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|one| one == ALL || one == wanted);
    let is_namespace = is_of_namespace(request);
    let in_namespace = !request.namespace.is_empty() && !is_namespace;
    let in_scope = match rule.rule.scope.as_deref() {
        None | Some(ALL) => true,
        Some("Namespaced") => in_namespace,
        Some("Cluster") => !in_namespace,
        Some(_) => false,
    };
    in_scope
        && has(&rule.operations, operation(request.operation))
        && has(&rule.rule.api_groups, &request.resource.group)
        && has(&rule.rule.api_versions, version)
        && rule.rule.resources.iter().any(|written| {
            let (resource, subresource) = written.split_once('/').unwrap_or((written, ""));
            let one = |written: &str, wanted: &str| written == ALL || written == wanted;
            one(resource, &request.resource.resource) && one(subresource, request.subresource)
        })
}

/// Whether the request is about a namespace or a subresource of it.
fn is_of_namespace(request: &AdmissionRequest<'_>) -> bool {
    request.resource.group == Namespace::GROUP && request.resource.resource == Namespace::PLURAL
}

fn matches_object(hook: &Hook, request: &AdmissionRequest<'_>) -> Result<bool, ApiError> {
    let selector = hook.objects.as_ref();
    let selector = selector.map_err(|why| ApiError::internal(why.clone()))?;
    if selector.is_everything() {
        return Ok(true);
    }
    let matches = |object: &Object| selector.matches(|key| object.label(key));
    let new = request.object.as_deref();
    Ok(new.is_some_and(matches) || request.old_object.is_some_and(matches))
}

async fn matches_namespace(
    hook: &Hook,
    request: &AdmissionRequest<'_>,
    namespaces: &Lister<Namespace>,
) -> Result<bool, ApiError> {
    let is_namespace = is_of_namespace(request);
    if request.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = hook.namespaces.as_ref();
    let selector = selector.map_err(|why| ApiError::internal(why.clone()))?;
    if selector.is_everything() {
        return Ok(true);
    }
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    if is_namespace
        && request.subresource.is_empty()
        && is_written
        && let Some(object) = request.object.as_deref()
    {
        return Ok(selector.matches(|key| object.label(key)));
    }
    let name = if request.namespace.is_empty() {
        request.name
    } else {
        request.namespace
    };
    let Some(namespace) = namespaces.get_live("", name).await? else {
        let resource = apiloom_meta::GroupResource::new(Namespace::GROUP, Namespace::PLURAL);
        return Err(ApiError::not_found(&resource, name));
    };
    let labels = &namespace.metadata.labels;
    Ok(selector.matches(|key| labels.get(key).map(String::as_str)))
}

/// Whether all conditions of a webhook are true; without any it is asked.
///
/// # Errors
/// Forbidden if one cannot be evaluated, none is false, and the webhook has to be asked.
pub(crate) fn meets_conditions(
    hook: &Hook,
    request: &AdmissionRequest<'_>,
    shown: &Shown,
) -> Result<bool, ApiError> {
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let about = shown.request(request);
    let values = [&shown.object, &shown.old_object, &Value::Null, &about];
    let mut budget = MAX_COST;
    let mut problems = Vec::new();
    for condition in &hook.conditions {
        let met = match condition {
            Ok(condition) => condition.is_true(&values, &mut budget),
            Err(why) => Err(Failure::Evaluation(why.clone())),
        };
        match met {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(Failure::Cost(why)) => {
                problems = vec![why];
                break;
            }
            Err(Failure::Evaluation(why)) => problems.push(why),
        }
    }
    if problems.is_empty() {
        return Ok(true);
    }
    if hook.is_ignored() {
        return Ok(false);
    }
    let why = match &problems[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    Err(request.forbidden(&why))
}
