//! Users grant only what they have: roles and bindings with more than the rights of their writer are refused, unless the writer may
//! `escalate` the role, or `bind` it. Members of `system:masters` have all rights.

use std::sync::Arc;

use apiloom_kinds::rbac::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
};
use apiloom_meta::field::go_quote;
use apiloom_meta::{ApiError, Object, ObjectMeta, Resource};
use apiloom_registry::auth::{Access, Attributes};
use apiloom_registry::{Admission, AdmissionRequest, Operation};
use async_trait::async_trait;

use super::rule::ALL;
use super::{Rbac, coverage};

/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// The admission of roles and bindings.
#[derive(Debug)]
pub(crate) struct NoEscalation {
    pub(crate) rbac: Arc<Rbac>,
    pub(crate) access: Access,
}

/// What a write grants, and to whom nothing has to be asked.
enum Grant {
    /// Nothing that was not granted before.
    Nothing,
    /// The rules of a role.
    Rules {
        rules: Vec<PolicyRule>,
        /// Whether it has the rules of others too, or had them.
        aggregates: bool,
    },
    /// A role.
    Role(RoleRef),
}

#[async_trait]
impl Admission for NoEscalation {
    fn name(&self) -> &'static str {
        "RBACEscalation"
    }

    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        let is_write = matches!(request.operation, Operation::Create | Operation::Update);
        let user = &request.ctx.user;
        // The server itself has no name.
        let may_all = user.name.is_empty() || user.groups.iter().any(|group| group == MASTERS);
        if !is_write || may_all || !request.subresource.is_empty() {
            return Ok(());
        }
        match grant(request)? {
            Grant::Nothing => Ok(()),
            Grant::Rules { rules, aggregates } => {
                let resource = &request.resource.resource;
                if self
                    .may(request, "escalate", resource, request.name)
                    .await?
                {
                    return Ok(());
                }
                self.confirm(request, &rules)?;
                if aggregates {
                    self.confirm(request, &everything())?;
                }
                Ok(())
            }
            Grant::Role(role) => {
                let resource = match role.kind.as_str() {
                    RoleRef::CLUSTER_ROLE => ClusterRole::PLURAL,
                    RoleRef::ROLE => Role::PLURAL,
                    // Validation refuses it.
                    _ => return Ok(()),
                };
                if self.may(request, "bind", resource, &role.name).await? {
                    return Ok(());
                }
                let rules = self.rbac.rules_of_role(&role, request.namespace)?;
                // As kube-apiserver says it: in terms of what was asked for.
                let rules =
                    rules.ok_or_else(|| ApiError::not_found(request.resource, &role.name))?;
                self.confirm(request, &rules)
            }
        }
    }
}

impl NoEscalation {
    /// Whether the user may do this to a role.
    async fn may(
        &self,
        request: &AdmissionRequest<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> Result<bool, ApiError> {
        let mut attributes = Attributes::of_path(&request.ctx.user, verb, "");
        attributes.is_resource_request = true;
        attributes.api_group = Role::GROUP;
        attributes.api_version = ALL;
        attributes.resource = resource;
        attributes.namespace = request.namespace;
        attributes.name = match request.operation {
            // A create has no name in its path.
            Operation::Create if verb == "escalate" => "",
            _ => name,
        };
        Ok(self.access.judge(&attributes).await?.is_allowed)
    }

    /// Refuses rules that the user does not have.
    fn confirm(
        &self,
        request: &AdmissionRequest<'_>,
        rules: &[PolicyRule],
    ) -> Result<(), ApiError> {
        let user = &request.ctx.user;
        let held = self.rbac.rules_of(user, request.namespace)?;
        let missing = coverage::missing(&held.rules, rules);
        let Some(missing) = missing.map_err(|why| request.forbidden(&why))? else {
            return Ok(());
        };
        let groups: Vec<String> = user.groups.iter().map(|group| go_quote(group)).collect();
        let mut why = format!(
            "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{missing}",
            go_quote(&user.name),
            groups.join(" ")
        );
        if !held.errors.is_empty() {
            why += &format!("; resolution errors: [{}]", held.errors.join(", "));
        }
        Err(request.forbidden(&why))
    }
}

/// What a request grants.
fn grant(request: &AdmissionRequest<'_>) -> Result<Grant, ApiError> {
    let Some(object) = request.object.as_deref() else {
        return Ok(Grant::Nothing);
    };
    if request.is::<Role>() {
        let (new, old) = typed::<Role>(object, request.old_object)?;
        let is_same = |old: &Role| is_same(&new.metadata, &old.metadata) && new.rules == old.rules;
        return Ok(of_rules(
            old.as_deref().is_some_and(is_same),
            &new.rules,
            &[],
        ));
    }
    if request.is::<ClusterRole>() {
        let (new, old) = typed::<ClusterRole>(object, request.old_object)?;
        let aggregations = [
            new.aggregation_rule.as_ref(),
            old.as_ref().and_then(|old| old.aggregation_rule.as_ref()),
        ];
        let is_same = |old: &ClusterRole| {
            is_same(&new.metadata, &old.metadata)
                && new.rules == old.rules
                && new.aggregation_rule == old.aggregation_rule
        };
        let is_same = old.as_deref().is_some_and(is_same);
        return Ok(of_rules(is_same, &new.rules, &aggregations));
    }
    if request.is::<RoleBinding>() {
        let (new, old) = typed::<RoleBinding>(object, request.old_object)?;
        let is_same = |old: &RoleBinding| {
            is_same(&new.metadata, &old.metadata)
                && new.role_ref == old.role_ref
                && new.subjects == old.subjects
        };
        return Ok(of_role(old.as_deref().is_some_and(is_same), &new.role_ref));
    }
    if request.is::<ClusterRoleBinding>() {
        let (new, old) = typed::<ClusterRoleBinding>(object, request.old_object)?;
        let is_same = |old: &ClusterRoleBinding| {
            is_same(&new.metadata, &old.metadata)
                && new.role_ref == old.role_ref
                && new.subjects == old.subjects
        };
        return Ok(of_role(old.as_deref().is_some_and(is_same), &new.role_ref));
    }
    Ok(Grant::Nothing)
}

type NewAndOld<K> = (Arc<K>, Option<Arc<K>>);

fn typed<K: Resource>(new: &Object, old: Option<&Object>) -> Result<NewAndOld<K>, ApiError> {
    let typed = |object: &Object| {
        let typed = object.typed::<K>();
        typed.map_err(|error| ApiError::internal(error.to_string()))
    };
    // One that cannot be read is as good as none: then all is granted anew.
    Ok((typed(new)?, old.and_then(|old| typed(old).ok())))
}

/// Whether only what the garbage collector writes differs, which every user may write who may update.
fn is_same(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    new.labels == old.labels && new.annotations == old.annotations
}

fn of_rules(
    is_same: bool,
    rules: &Option<Vec<PolicyRule>>,
    aggregations: &[Option<&AggregationRule>],
) -> Grant {
    if is_same {
        return Grant::Nothing;
    }
    let selects = |rule: &&AggregationRule| !rule.cluster_role_selectors.is_empty();
    Grant::Rules {
        rules: rules.clone().unwrap_or_default(),
        aggregates: aggregations.iter().flatten().any(selects),
    }
}

fn of_role(is_same: bool, role: &RoleRef) -> Grant {
    if is_same {
        Grant::Nothing
    } else {
        Grant::Role(role.clone())
    }
}

/// The rules that permit everything.
fn everything() -> [PolicyRule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        PolicyRule {
            verbs: Some(all()),
            api_groups: all(),
            resources: all(),
            ..PolicyRule::default()
        },
        PolicyRule {
            verbs: Some(all()),
            non_resource_urls: all(),
            ..PolicyRule::default()
        },
    ]
}
