//! The strategies of rbac.authorization.k8s.io/v1: roles and bindings. The texts of errors are those of kube-apiserver.
//!
//! That users grant only what they have is no rule of the kinds but of the part that authorizes by them.

use apiloom_meta::field::{FieldError, FieldPath};
use apiloom_meta::kind::Resource as _;
use apiloom_meta::names;
use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};
use serde_json::{Value, json};

use super::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
    Subject,
};
use crate::built_in::BuiltIn;

/// Registers roles and bindings with their strategies, whose only difference is the kind.
macro_rules! rules {
    ($($kind:ident: $rules:ident { $($method:item)+ })+) => {$(
        impl BuiltIn for $kind {
            fn register(registry: &mut RegistryBuilder) {
                registry.own_kind::<Self>($rules);
            }
        }

        #[doc = concat!("The strategy of ", stringify!($kind), ".")]
        struct $rules;

        impl Strategy<$kind> for $rules {
            $($method)+
        }
    )+};
}

rules! {
    Role: RoleRules {
        const HAS_DEFAULTS: bool = false;

        fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Role) {
            drop_empty(&mut object.rules);
        }

        fn prepare_for_update(&self, _ctx: &RequestContext, new: &mut Role, _old: &Role) {
            drop_empty(&mut new.rules);
        }

        fn validate(&self, _ctx: &RequestContext, object: &Role) -> Vec<FieldError> {
            rule_errors(object.rules.as_deref(), true)
        }
    }
    ClusterRole: ClusterRoleRules {
        const HAS_DEFAULTS: bool = false;

        fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut ClusterRole) {
            drop_empty(&mut object.rules);
        }

        fn prepare_for_update(&self, _ctx: &RequestContext, new: &mut ClusterRole, _old: &ClusterRole) {
            drop_empty(&mut new.rules);
        }

        fn validate(&self, _ctx: &RequestContext, object: &ClusterRole) -> Vec<FieldError> {
            let mut errors = rule_errors(object.rules.as_deref(), false);
            if let Some(aggregation) = &object.aggregation_rule {
                errors.extend(aggregation_errors(aggregation));
            }
            errors
        }
    }
    RoleBinding: RoleBindingRules {
        fn default(&self, object: &mut RoleBinding) {
            default_binding(&mut object.subjects, &mut object.role_ref);
        }

        fn validate(&self, _ctx: &RequestContext, object: &RoleBinding) -> Vec<FieldError> {
            binding_errors(&object.subjects, &object.role_ref, true)
        }

        fn validate_update(&self, ctx: &RequestContext, new: &RoleBinding, old: &RoleBinding) -> Vec<FieldError> {
            let mut errors = self.validate(ctx, new);
            errors.extend(role_error(&new.role_ref, &old.role_ref));
            errors
        }
    }
    ClusterRoleBinding: ClusterRoleBindingRules {
        fn default(&self, object: &mut ClusterRoleBinding) {
            default_binding(&mut object.subjects, &mut object.role_ref);
        }

        fn validate(&self, _ctx: &RequestContext, object: &ClusterRoleBinding) -> Vec<FieldError> {
            binding_errors(&object.subjects, &object.role_ref, false)
        }

        fn validate_update(
            &self,
            ctx: &RequestContext,
            new: &ClusterRoleBinding,
            old: &ClusterRoleBinding,
        ) -> Vec<FieldError> {
            let mut errors = self.validate(ctx, new);
            errors.extend(role_error(&new.role_ref, &old.role_ref));
            errors
        }
    }
}

/// An empty list of rules is none, as it is after kube-apiserver has stored it in Protobuf.
fn drop_empty(rules: &mut Option<Vec<PolicyRule>>) {
    if rules.as_ref().is_some_and(Vec::is_empty) {
        *rules = None;
    }
    for rule in rules.iter_mut().flatten() {
        if rule.verbs.as_ref().is_some_and(Vec::is_empty) {
            rule.verbs = None;
        }
    }
}

/// The groups of users and groups, and that of the role, are the group of these kinds.
fn default_binding(subjects: &mut [Subject], role: &mut RoleRef) {
    for subject in subjects {
        if subject.api_group.as_deref().unwrap_or_default().is_empty()
            && matches!(subject.kind.as_str(), Subject::USER | Subject::GROUP)
        {
            subject.api_group = Some(Role::GROUP.to_owned());
        }
    }
    if role.api_group.is_empty() {
        role.api_group = Role::GROUP.to_owned();
    }
}

fn rule_errors(rules: Option<&[PolicyRule]>, is_namespaced: bool) -> Vec<FieldError> {
    let path = FieldPath::new("rules");
    let rules = rules.unwrap_or_default().iter().enumerate();
    rules
        .flat_map(|(index, rule)| one_rule_errors(rule, is_namespaced, &path.index(index)))
        .collect()
}

fn one_rule_errors(rule: &PolicyRule, is_namespaced: bool, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if rule.verbs.as_deref().unwrap_or_default().is_empty() {
        let why = "verbs must contain at least one value";
        errors.push(FieldError::required(&path.child("verbs"), why));
    }
    if !rule.non_resource_urls.is_empty() {
        let mut refuse = |why: &str| {
            let path = path.child("nonResourceURLs");
            errors.push(FieldError::invalid(&path, &rule.non_resource_urls, why));
        };
        if is_namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        let of_resources = [&rule.api_groups, &rule.resources, &rule.resource_names];
        if of_resources.iter().any(|list| !list.is_empty()) {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return errors;
    }
    let mut require = |field: &str, why: &str| {
        errors.push(FieldError::required(&path.child(field), why));
    };
    if rule.api_groups.is_empty() {
        require(
            "apiGroups",
            "resource rules must supply at least one api group",
        );
    }
    if rule.resources.is_empty() {
        require(
            "resources",
            "resource rules must supply at least one resource",
        );
    }
    errors
}

fn aggregation_errors(aggregation: &AggregationRule) -> Vec<FieldError> {
    let path = FieldPath::new("aggregationRule").child("clusterRoleSelectors");
    if aggregation.cluster_role_selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        return vec![FieldError::required(&path, why)];
    }
    let mut errors = Vec::new();
    for (index, selector) in aggregation.cluster_role_selectors.iter().enumerate() {
        let path = path.index(index);
        let complaints = selector.validate(&path);
        let is_invalid = !complaints.is_empty();
        errors.extend(complaints);
        if is_invalid {
            // Go prints the selector that could not be made.
            errors.push(FieldError::invalid(
                &path,
                Value::Null,
                "invalid label selector.",
            ));
        }
    }
    errors
}

fn binding_errors(subjects: &[Subject], role: &RoleRef, is_namespaced: bool) -> Vec<FieldError> {
    let path = FieldPath::new("roleRef");
    let mut errors = Vec::new();
    if role.api_group != Role::GROUP {
        let path = path.child("apiGroup");
        errors.push(FieldError::not_supported(
            &path,
            &role.api_group,
            &[Role::GROUP],
        ));
    }
    let kinds: &[&str] = if is_namespaced {
        &[RoleRef::ROLE, RoleRef::CLUSTER_ROLE]
    } else {
        &[RoleRef::CLUSTER_ROLE]
    };
    if !kinds.contains(&role.kind.as_str()) {
        errors.push(FieldError::not_supported(
            &path.child("kind"),
            &role.kind,
            kinds,
        ));
    }
    let path = path.child("name");
    if role.name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    if !role.name.is_empty() {
        let complaints = names::path_segment(&role.name).into_iter();
        errors.extend(complaints.map(|why| FieldError::invalid(&path, &role.name, &why)));
    }
    let path = FieldPath::new("subjects");
    for (index, subject) in subjects.iter().enumerate() {
        errors.extend(subject_errors(subject, is_namespaced, &path.index(index)));
    }
    errors
}

fn subject_errors(subject: &Subject, is_namespaced: bool, path: &FieldPath) -> Vec<FieldError> {
    let Subject { kind, name, .. } = subject;
    let group = subject.api_group.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    let name_path = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    }
    let group_error = |expected: &str| {
        let error = || FieldError::not_supported(&path.child("apiGroup"), group, &[expected]);
        (group != expected).then(error)
    };
    match kind.as_str() {
        Subject::SERVICE_ACCOUNT => {
            if !name.is_empty() {
                let complaints = names::dns_subdomain(name).into_iter();
                errors.extend(complaints.map(|why| FieldError::invalid(&name_path, name, &why)));
            }
            errors.extend(group_error(""));
            if !is_namespaced && subject.namespace.as_deref().unwrap_or_default().is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        Subject::USER | Subject::GROUP => errors.extend(group_error(Role::GROUP)),
        _ => {
            let kinds = [Subject::SERVICE_ACCOUNT, Subject::USER, Subject::GROUP];
            errors.push(FieldError::not_supported(&path.child("kind"), kind, &kinds));
        }
    }
    errors
}

/// The error of a binding whose role changed; its value is Go's struct as JSON.
fn role_error(new: &RoleRef, old: &RoleRef) -> Option<FieldError> {
    let value = json!({"APIGroup": new.api_group, "Kind": new.kind, "Name": new.name});
    let path = FieldPath::new("roleRef");
    (new != old).then(|| FieldError::invalid(&path, value, "cannot change roleRef"))
}
