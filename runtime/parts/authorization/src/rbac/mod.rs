//! Authorization by roles and bindings (RBAC), with the decisions, reasons and refusals of kube-apiserver.
//!
//! - `grants.rs` has all bindings by their subjects. It follows the listers of the four kinds when it is asked: a write that this server
//!   acknowledged is in the next decision.
//! - `rule.rs` says what one rule permits, `coverage.rs` whether rules permit all that others do.
//! - `escalation.rs` refuses roles and bindings that grant more than their writer has.
//! - `aggregation.rs` writes the rules of roles that have those of others.
//! - `bootstrap.rs` keeps the roles and bindings of Kubernetes, which a new server has from its start.

pub(crate) mod aggregation;
pub(crate) mod bootstrap;
mod coverage;
pub(crate) mod escalation;
mod grants;
mod rule;

use std::ops::ControlFlow;
use std::sync::Arc;

use apiloom_kinds::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
};
use apiloom_meta::ApiError;
use apiloom_registry::auth::{
    Answer, Attributes, Authorization, Authorizer, Decision, PathPermission, Permissions, Reason,
    ResourcePermission, UserInfo, aggregate,
};
use apiloom_registry::{Lister, SeenState};
use apiloom_server::Builder;
use parking_lot::{RwLock, RwLockWriteGuard};

use self::grants::{Found, Grants};

/// The roles and bindings of a server, as they are now.
#[derive(Debug)]
pub(crate) struct Rbac {
    cluster_roles: Lister<ClusterRole>,
    roles: Lister<Role>,
    cluster_bindings: Lister<ClusterRoleBinding>,
    bindings: Lister<RoleBinding>,
    seen: RwLock<Seen>,
}

/// What was read of the listers.
#[derive(Debug, Default)]
struct Seen {
    cluster_roles: SeenState,
    roles: SeenState,
    cluster_bindings: SeenState,
    bindings: SeenState,
    grants: Grants,
}

/// The rules of a user, and why there may be more.
pub(crate) struct UserRules {
    pub(crate) rules: Vec<PolicyRule>,
    /// Empty if there are no more.
    pub(crate) errors: Vec<String>,
}

impl Rbac {
    /// Reads the roles and bindings of the server that is built.
    pub(crate) fn new(builder: &Builder) -> Arc<Self> {
        Arc::new(Self {
            cluster_roles: builder.lister(),
            roles: builder.lister(),
            cluster_bindings: builder.lister(),
            bindings: builder.lister(),
            seen: RwLock::default(),
        })
    }

    /// Reads the present state.
    ///
    /// # Errors
    /// If a watch cache is not filled yet.
    fn read<T>(&self, read: impl FnOnce(&Grants) -> T) -> Result<T, ApiError> {
        let seen = self.seen.read();
        if self.is_current(&seen)? {
            return Ok(read(&seen.grants));
        }
        drop(seen);
        let mut seen = self.seen.write();
        self.update(&mut seen)?;
        Ok(read(&RwLockWriteGuard::downgrade(seen).grants))
    }

    fn is_current(&self, seen: &Seen) -> Result<bool, ApiError> {
        Ok(self.cluster_bindings.is_unchanged(&seen.cluster_bindings)?
            && self.bindings.is_unchanged(&seen.bindings)?
            && self.cluster_roles.is_unchanged(&seen.cluster_roles)?
            && self.roles.is_unchanged(&seen.roles)?)
    }

    fn update(&self, seen: &mut Seen) -> Result<(), ApiError> {
        let Seen { grants, .. } = seen;
        self.cluster_roles
            .changes(&mut seen.cluster_roles, |before, after| {
                grants.set_cluster_role(before, after);
            })?;
        self.roles.changes(&mut seen.roles, |before, after| {
            grants.set_role(before, after);
        })?;
        self.cluster_bindings
            .changes(&mut seen.cluster_bindings, |before, after| {
                grants.set_cluster_binding(before, after);
            })?;
        self.bindings.changes(&mut seen.bindings, |before, after| {
            grants.set_binding(before, after);
        })
    }

    /// All rules that a user has in a namespace; empty for those outside of namespaces.
    ///
    /// # Errors
    /// If a watch cache is not filled yet.
    pub(crate) fn rules_of(&self, user: &UserInfo, namespace: &str) -> Result<UserRules, ApiError> {
        self.read(|grants| {
            let mut found = UserRules {
                rules: Vec::new(),
                errors: Vec::new(),
            };
            let _: ControlFlow<()> = grants.visit(user, namespace, |one| {
                match one {
                    Found::Rule(granted) => found.rules.push(granted.rule.clone()),
                    Found::Missing(role) => found.errors.push(role.to_string()),
                }
                ControlFlow::Continue(())
            });
            found
        })
    }

    /// The rules of a role; `None` if it does not exist.
    ///
    /// # Errors
    /// If a watch cache is not filled yet.
    fn rules_of_role(
        &self,
        role: &RoleRef,
        namespace: &str,
    ) -> Result<Option<Vec<PolicyRule>>, ApiError> {
        self.read(|grants| grants.rules(role, namespace).map(<[PolicyRule]>::to_vec))
    }

    fn decide(&self, request: &Attributes<'_>) -> Result<Decision, ApiError> {
        self.read(|grants| {
            let mut missing = Vec::new();
            let namespace = if request.is_resource_request {
                request.namespace
            } else {
                ""
            };
            let allowed = grants.visit(request.user, namespace, |found| {
                match found {
                    Found::Rule(granted) if rule::permits(granted.rule, request) => {
                        return ControlFlow::Break(granted.grant());
                    }
                    Found::Rule(_) => {}
                    Found::Missing(role) if missing.contains(&role) => {}
                    Found::Missing(role) => missing.push(role),
                }
                ControlFlow::Continue(())
            });
            match (allowed, &missing[..]) {
                (ControlFlow::Break(grant), _) => Decision::Allow(Reason::shared(Arc::new(grant))),
                (_, []) => Decision::no_opinion(),
                (_, roles) => {
                    let roles: Vec<String> = roles.iter().map(ToString::to_string).collect();
                    Decision::NoOpinion(format!("RBAC: {}", aggregate(&roles)).into())
                }
            }
        })
    }
}

/// Allows what the rules of the user permit.
pub(crate) struct RbacAuthorizer(pub(crate) Arc<Rbac>);

impl Authorizer for RbacAuthorizer {
    fn authorize<'a>(&'a self, request: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        Answer::Now(self.0.decide(request).map_err(Into::into))
    }

    fn is_policy(&self) -> bool {
        true
    }

    fn permissions(&self, user: &UserInfo, namespace: &str, permissions: &mut Permissions) {
        let held = match self.0.rules_of(user, namespace) {
            Ok(held) => held,
            Err(error) => {
                permissions.is_incomplete = true;
                return permissions.errors.push(error.message);
            }
        };
        permissions.errors.extend(held.errors);
        for rule in held.rules {
            let verbs = rule.verbs.unwrap_or_default();
            if !rule.non_resource_urls.is_empty() {
                permissions.paths.push(PathPermission {
                    verbs: verbs.clone(),
                    paths: rule.non_resource_urls,
                });
            }
            if !rule.resources.is_empty() {
                permissions.resources.push(ResourcePermission {
                    verbs,
                    api_groups: rule.api_groups,
                    resources: rule.resources,
                    resource_names: rule.resource_names,
                });
            }
        }
    }
}
