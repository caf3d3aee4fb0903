//! The strategies of admissionregistration.k8s.io/v1: configurations of webhooks. The texts of errors are those of kube-apiserver.

pub mod conditions;

use std::collections::HashSet;

use apiloom_meta::{FieldError, FieldPath, LabelSelector, names};
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};

use super::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ValidatingWebhook, ValidatingWebhookConfiguration,
};
use crate::built_in::BuiltIn;
use crate::webhook::{client_config, client_errors};

impl BuiltIn for ValidatingWebhookConfiguration {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(ValidatingWebhookRules);
    }
}

impl BuiltIn for MutatingWebhookConfiguration {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(MutatingWebhookRules);
    }
}

/// The strategy of ValidatingWebhookConfigurations.
struct ValidatingWebhookRules;

/// The strategy of MutatingWebhookConfigurations.
struct MutatingWebhookRules;

impl Strategy<ValidatingWebhookConfiguration> for ValidatingWebhookRules {
    fn default(&self, object: &mut ValidatingWebhookConfiguration) {
        for webhook in &mut object.webhooks {
            let mut with_defaults = MutatingWebhook::from(std::mem::take(webhook));
            set_defaults(&mut with_defaults);
            *webhook = with_defaults.into();
        }
    }

    fn validate(
        &self,
        _ctx: &RequestContext,
        object: &ValidatingWebhookConfiguration,
    ) -> Vec<FieldError> {
        Tolerance::of_new().errors(&as_mutating(&object.webhooks))
    }

    fn validate_update(
        &self,
        _ctx: &RequestContext,
        new: &ValidatingWebhookConfiguration,
        old: &ValidatingWebhookConfiguration,
    ) -> Vec<FieldError> {
        let (new, old) = (as_mutating(&new.webhooks), as_mutating(&old.webhooks));
        Tolerance::of_update(&new, &old).errors(&new)
    }
}

impl Strategy<MutatingWebhookConfiguration> for MutatingWebhookRules {
    fn default(&self, object: &mut MutatingWebhookConfiguration) {
        for webhook in &mut object.webhooks {
            set_defaults(webhook);
            let never = || MutatingWebhook::NEVER.to_owned();
            webhook.reinvocation_policy.get_or_insert_with(never);
        }
    }

    fn validate(
        &self,
        _ctx: &RequestContext,
        object: &MutatingWebhookConfiguration,
    ) -> Vec<FieldError> {
        Tolerance::of_new().errors(&object.webhooks)
    }

    fn validate_update(
        &self,
        _ctx: &RequestContext,
        new: &MutatingWebhookConfiguration,
        old: &MutatingWebhookConfiguration,
    ) -> Vec<FieldError> {
        Tolerance::of_update(&new.webhooks, &old.webhooks).errors(&new.webhooks)
    }
}

fn as_mutating(webhooks: &[ValidatingWebhook]) -> Vec<MutatingWebhook> {
    webhooks
        .iter()
        .cloned()
        .map(MutatingWebhook::from)
        .collect()
}

/// The port of HTTPS.
const PORT: i32 = 443;

/// How long a call may take, in seconds, unless the webhook says it.
const TIMEOUT_SECONDS: i32 = 10;

/// Most conditions of a webhook.
const MAX_CONDITIONS: usize = 64;

/// The versions of AdmissionReview that this server knows.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

const ALL: &str = "*";

fn set_defaults(webhook: &mut MutatingWebhook) {
    let or = |field: &mut Option<String>, value: &str| {
        field.get_or_insert_with(|| value.to_owned());
    };
    or(&mut webhook.failure_policy, MutatingWebhook::FAIL);
    or(&mut webhook.match_policy, MutatingWebhook::EQUIVALENT);
    webhook
        .namespace_selector
        .get_or_insert_with(LabelSelector::default);
    webhook
        .object_selector
        .get_or_insert_with(LabelSelector::default);
    webhook.timeout_seconds.get_or_insert(TIMEOUT_SECONDS);
    for rule in &mut webhook.rules {
        or(&mut rule.rule.scope, ALL);
    }
    if let Some(service) = &mut webhook.client_config.service {
        service.port.get_or_insert(PORT);
    }
}

/// What webhooks may be: an update may leave what was there before.
struct Tolerance {
    are_conditions_unchanged: bool,
    has_side_effects: bool,
    has_unknown_versions: bool,
    has_equal_names: bool,
    has_malformed_selectors: bool,
}

impl Tolerance {
    fn of_new() -> Self {
        Self {
            are_conditions_unchanged: false,
            has_side_effects: false,
            has_unknown_versions: false,
            has_equal_names: false,
            has_malformed_selectors: false,
        }
    }

    fn of_update(new: &[MutatingWebhook], old: &[MutatingWebhook]) -> Self {
        let mut names = HashSet::new();
        let conditions = |webhooks: &'_ [MutatingWebhook]| -> Vec<Vec<MatchCondition>> {
            let all = webhooks.iter();
            all.map(|webhook| webhook.match_conditions.clone())
                .collect()
        };
        Self {
            are_conditions_unchanged: conditions(new) == conditions(old),
            has_side_effects: !old.iter().all(has_no_side_effects),
            has_unknown_versions: old.iter().any(|webhook| {
                let versions = &webhook.admission_review_versions;
                !versions.is_empty() && !has_known_version(versions)
            }),
            has_equal_names: !old
                .iter()
                .all(|webhook| names.insert(webhook.name.as_str())),
            has_malformed_selectors: old
                .iter()
                .any(|webhook| !selector_errors(webhook, &FieldPath::root()).is_empty()),
        }
    }

    fn errors(&self, webhooks: &[MutatingWebhook]) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut names = HashSet::new();
        for (index, webhook) in webhooks.iter().enumerate() {
            let path = FieldPath::new("webhooks").index(index);
            errors.extend(self.webhook_errors(webhook, &path));
            errors.extend(self.version_errors(
                &webhook.admission_review_versions,
                &path.child("admissionReviewVersions"),
            ));
            let name = webhook.name.as_str();
            if !self.has_equal_names && !name.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        errors
    }

    fn webhook_errors(&self, webhook: &MutatingWebhook, path: &FieldPath) -> Vec<FieldError> {
        let mut errors = Vec::new();
        errors.extend(name_error(&webhook.name, &path.child("name")));
        for (index, rule) in webhook.rules.iter().enumerate() {
            errors.extend(rule_errors(rule, &path.child("rules").index(index)));
        }
        let failure = &[MutatingWebhook::FAIL, MutatingWebhook::IGNORE];
        errors.extend(word_error(
            &webhook.failure_policy,
            failure,
            &path.child("failurePolicy"),
        ));
        let matching = &[MutatingWebhook::EQUIVALENT, MutatingWebhook::EXACT];
        errors.extend(word_error(
            &webhook.match_policy,
            matching,
            &path.child("matchPolicy"),
        ));
        let allowed: &[&str] = if self.has_side_effects {
            &MutatingWebhook::SIDE_EFFECTS
        } else {
            &MutatingWebhook::NO_SIDE_EFFECTS
        };
        let at = path.child("sideEffects");
        if webhook.side_effects.is_none() {
            let why = format!("must specify one of {}", allowed.join(", "));
            errors.push(FieldError::required(&at, &why));
        }
        errors.extend(word_error(&webhook.side_effects, allowed, &at));
        let timeout = webhook.timeout_seconds;
        if let Some(timeout) = timeout.filter(|seconds| !(1..=30).contains(seconds)) {
            let why = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(
                &path.child("timeoutSeconds"),
                timeout,
                why,
            ));
        }
        if !self.has_malformed_selectors {
            errors.extend(selector_errors(webhook, path));
        }
        let policies = &[MutatingWebhook::IF_NEEDED, MutatingWebhook::NEVER];
        let at = path.child("reinvocationPolicy");
        errors.extend(word_error(&webhook.reinvocation_policy, policies, &at));
        let client = client_config!(&webhook.client_config);
        errors.extend(client_errors(&client, &path.child("clientConfig")));
        if !self.are_conditions_unchanged {
            let path = path.child("matchConditions");
            errors.extend(condition_errors(&webhook.match_conditions, &path));
        }
        errors
    }

    fn version_errors(&self, versions: &[String], path: &FieldPath) -> Vec<FieldError> {
        if versions.is_empty() {
            let why = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
            return vec![FieldError::required(path, &why)];
        }
        let mut errors = Vec::new();
        let mut seen = HashSet::new();
        for (index, version) in versions.iter().enumerate() {
            let path = path.index(index);
            if !seen.insert(version) {
                errors.push(FieldError::invalid(&path, version, "duplicate version"));
                continue;
            }
            let complaints = names::dns1035_label(version).into_iter();
            errors.extend(complaints.map(|why| FieldError::invalid(&path, version, &why)));
        }
        if !self.has_unknown_versions && !has_known_version(versions) {
            let known = REVIEW_VERSIONS.join(", ");
            let why = format!("must include at least one of {known}");
            errors.push(FieldError::invalid(path, versions, &why));
        }
        errors
    }
}

fn has_known_version(versions: &[String]) -> bool {
    let mut versions = versions.iter();
    versions.any(|version| REVIEW_VERSIONS.contains(&version.as_str()))
}

fn has_no_side_effects(webhook: &MutatingWebhook) -> bool {
    let effects = webhook.side_effects.as_deref();
    effects.is_some_and(|effects| MutatingWebhook::NO_SIDE_EFFECTS.contains(&effects))
}

/// The error of a name that is not a domain with three segments.
fn name_error(name: &str, path: &FieldPath) -> Option<FieldError> {
    if name.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    let complaints = names::dns_subdomain(name);
    if !complaints.is_empty() {
        return Some(FieldError::invalid(path, name, &complaints.join(",")));
    }
    let why = "should be a domain with at least three segments separated by dots";
    (name.split('.').count() < 3).then(|| FieldError::invalid(path, name, why))
}

/// The error of a word that is not one of these.
fn word_error(word: &Option<String>, words: &[&str], path: &FieldPath) -> Option<FieldError> {
    let word = word.as_deref()?;
    (!words.contains(&word)).then(|| FieldError::not_supported(path, word, words))
}

fn selector_errors(webhook: &MutatingWebhook, path: &FieldPath) -> Vec<FieldError> {
    let selectors = [
        ("namespaceSelector", &webhook.namespace_selector),
        ("objectSelector", &webhook.object_selector),
    ];
    let errors = selectors.into_iter().flat_map(|(name, selector)| {
        let path = path.child(name);
        selector.iter().flat_map(move |one| one.validate(&path))
    });
    errors.collect()
}

fn rule_errors(rule: &RuleWithOperations, path: &FieldPath) -> Vec<FieldError> {
    const OPERATIONS: [&str; 5] = [ALL, "CONNECT", "CREATE", "DELETE", "UPDATE"];
    const SCOPES: [&str; 3] = [ALL, "Cluster", "Namespaced"];
    let mut errors = Vec::new();
    let at = path.child("operations");
    errors.extend(list_error(&rule.operations, "operations", &at));
    for (index, operation) in rule.operations.iter().enumerate() {
        if !OPERATIONS.contains(&operation.as_str()) {
            let path = at.index(index);
            errors.push(FieldError::not_supported(&path, operation, &OPERATIONS));
        }
    }
    let rule = &rule.rule;
    errors.extend(list_error(
        &rule.api_groups,
        "API groups",
        &path.child("apiGroups"),
    ));
    let at = path.child("apiVersions");
    errors.extend(list_error(&rule.api_versions, "API versions", &at));
    for (index, version) in rule.api_versions.iter().enumerate() {
        if version.is_empty() {
            errors.push(FieldError::required(&at.index(index), ""));
        }
    }
    errors.extend(resource_errors(&rule.resources, &path.child("resources")));
    errors.extend(word_error(&rule.scope, &SCOPES, &path.child("scope")));
    errors
}

/// The error of a list that is empty, or that has others beside `*`.
fn list_error(list: &[String], what: &str, path: &FieldPath) -> Option<FieldError> {
    if list.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    let why = format!("if '*' is present, must not specify other {what}");
    let has_others = list.len() > 1 && list.iter().any(|item| item == ALL);
    has_others.then(|| FieldError::invalid(path, list, &why))
}

fn resource_errors(resources: &[String], path: &FieldPath) -> Vec<FieldError> {
    if resources.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    // Resources whose subresources are all matched, and subresources of all resources.
    let (mut whole, mut everywhere) = (HashSet::new(), HashSet::new());
    let mut has_plain = false;
    for (index, written) in resources.iter().enumerate() {
        let path = path.index(index);
        if written.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((resource, subresource)) = written.split_once('/') else {
            has_plain = written != ALL;
            continue;
        };
        let mut refuse = |present: &str| {
            let why = format!("if '{present}' is present, must not specify {written}");
            errors.push(FieldError::invalid(&path, written, &why));
        };
        if whole.contains(resource) {
            refuse(&format!("{resource}/*"));
        }
        if everywhere.contains(subresource) {
            refuse(&format!("*/{subresource}"));
        }
        if subresource == ALL {
            whole.insert(resource);
        }
        if resource == ALL {
            everywhere.insert(subresource);
        }
    }
    let has = |wanted: &str| resources.iter().any(|resource| resource == wanted);
    if resources.len() > 1 && has("*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, resources, why));
    }
    if has(ALL) && has_plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, resources, why));
    }
    errors
}

fn condition_errors(conditions: &[MatchCondition], path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if conditions.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    let mut names = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let MatchCondition { name, expression } = condition;
        let (expression, at) = (expression.trim(), path.child("expression"));
        if expression.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if let Err(why) = conditions::compile(expression) {
            errors.push(FieldError::invalid(&at, expression, &why));
        }
        let at = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let complaints = names::qualified_name(name).into_iter();
        errors.extend(complaints.map(|why| FieldError::invalid(&at, name, &why)));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&at, name));
        }
    }
    errors
}
