//! Version v1 of the group rbac.authorization.k8s.io.

use apiloom_macros::{api, resource};
use apiloom_meta::{LabelSelector, ObjectMeta};

/// Role is a set of permissions in its namespace. Permissions are only ever added; there are none that deny.
#[resource(group = "rbac.authorization.k8s.io", version = "v1", namespaced, crate = apiloom_meta,
    proto(package = "k8s.io.api.rbac.v1"), store_path = "roles", generation = none, name_format = path_segment,
    create_on_update = true, strategic_merge_patch)]
#[derive(Default)]
pub struct Role {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// What the role permits.
    #[api(proto = 2, nullable, default = None, list = atomic)]
    pub rules: Option<Vec<PolicyRule>>,
}

/// ClusterRole is a set of permissions in all namespaces, for objects of the cluster and for other paths. A RoleBinding grants it in
/// its own namespace alone.
#[resource(group = "rbac.authorization.k8s.io", version = "v1", cluster, crate = apiloom_meta,
    proto(package = "k8s.io.api.rbac.v1"), store_path = "clusterroles", generation = none, name_format = path_segment,
    create_on_update = true, strategic_merge_patch)]
#[derive(Default)]
pub struct ClusterRole {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// What the role permits.
    #[api(proto = 2, nullable, default = None, list = atomic)]
    pub rules: Option<Vec<PolicyRule>>,
    /// The roles whose rules this one collects. A controller writes the rules then.
    #[api(proto = 3)]
    pub aggregation_rule: Option<AggregationRule>,
}

/// AggregationRule says of which roles a ClusterRole has the rules.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct AggregationRule {
    /// The ClusterRoles: those that one of these selects.
    #[api(proto = 1, list = atomic)]
    pub cluster_role_selectors: Vec<LabelSelector>,
}

/// PolicyRule permits verbs on resources, or on paths that are no resources.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct PolicyRule {
    /// The verbs; `*` for all.
    #[api(proto = 1, list = atomic, nullable, default = None)]
    pub verbs: Option<Vec<String>>,
    /// The groups of the resources; the empty one is core, `*` is all.
    #[api(proto = 2, list = atomic)]
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/log` for a subresource, `*/scale` for that of all resources; `*` for all with their subresources.
    #[api(proto = 3, list = atomic)]
    pub resources: Vec<String>,
    /// The names of the objects; none for all. A create, a list and a deletecollection have no name.
    #[api(proto = 4, list = atomic)]
    pub resource_names: Vec<String>,
    /// The paths, for ClusterRoles: `*` at the end is any rest.
    #[api(proto = 5, json = "nonResourceURLs", list = atomic)]
    pub non_resource_urls: Vec<String>,
}

/// RoleBinding grants a Role of its namespace, or a ClusterRole in its namespace, to users, groups and service accounts.
#[resource(group = "rbac.authorization.k8s.io", version = "v1", namespaced, crate = apiloom_meta,
    proto(package = "k8s.io.api.rbac.v1"), store_path = "rolebindings", generation = none, name_format = path_segment,
    create_on_update = true, strategic_merge_patch,
    printcolumn(name = "Role", with = RoleBinding::role, doc = "The role that is granted."),
    printcolumn(name = "Age", path = metadata.creation_timestamp, doc = "How long ago the server created the object."),
    printcolumn(name = "Users", with = RoleBinding::users, wide, doc = "The users that have the role."),
    printcolumn(name = "Groups", with = RoleBinding::groups, wide, doc = "The groups that have the role."),
    printcolumn(name = "ServiceAccounts", with = RoleBinding::service_accounts, wide, doc = "The service accounts that have the role."))]
#[derive(Default)]
pub struct RoleBinding {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// Who has the role.
    #[api(proto = 2, list = atomic)]
    pub subjects: Vec<Subject>,
    /// The role. It cannot be changed.
    #[api(proto = 3, default = RoleRef::default(), present)]
    pub role_ref: RoleRef,
}

/// ClusterRoleBinding grants a ClusterRole everywhere to users, groups and service accounts.
#[resource(group = "rbac.authorization.k8s.io", version = "v1", cluster, crate = apiloom_meta,
    proto(package = "k8s.io.api.rbac.v1"), store_path = "clusterrolebindings", generation = none, name_format = path_segment,
    create_on_update = true, strategic_merge_patch,
    printcolumn(name = "Role", with = ClusterRoleBinding::role, doc = "The role that is granted."),
    printcolumn(name = "Age", path = metadata.creation_timestamp, doc = "How long ago the server created the object."),
    printcolumn(name = "Users", with = ClusterRoleBinding::users, wide, doc = "The users that have the role."),
    printcolumn(name = "Groups", with = ClusterRoleBinding::groups, wide, doc = "The groups that have the role."),
    printcolumn(name = "ServiceAccounts", with = ClusterRoleBinding::service_accounts, wide, doc = "The service accounts that have the role."))]
#[derive(Default)]
pub struct ClusterRoleBinding {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// Who has the role.
    #[api(proto = 2, list = atomic)]
    pub subjects: Vec<Subject>,
    /// The role. It cannot be changed.
    #[api(proto = 3, default = RoleRef::default(), present)]
    pub role_ref: RoleRef,
}

/// Subject is a user, a group or a service account.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default, Eq)]
pub struct Subject {
    /// User, Group or ServiceAccount.
    #[api(proto = 1, default = String::new(), present)]
    pub kind: String,
    /// rbac.authorization.k8s.io for users and groups, which is the default; empty for service accounts.
    #[api(proto(number = 2, omit_empty))]
    pub api_group: Option<String>,
    /// The name.
    #[api(proto = 3, default = String::new(), present)]
    pub name: String,
    /// The namespace of a service account. In a RoleBinding that of the binding, if it is not set.
    #[api(proto(number = 4, omit_empty))]
    pub namespace: Option<String>,
}

impl Subject {
    /// The kind of users.
    pub const USER: &str = "User";
    /// The kind of groups.
    pub const GROUP: &str = "Group";
    /// The kind of service accounts.
    pub const SERVICE_ACCOUNT: &str = "ServiceAccount";
}

/// RoleRef names a role.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default, Eq)]
pub struct RoleRef {
    /// The group of the role: rbac.authorization.k8s.io, which is the default.
    #[api(proto = 1, default = String::new(), present)]
    pub api_group: String,
    /// Role or ClusterRole.
    #[api(proto = 2, default = String::new(), present)]
    pub kind: String,
    /// The name of the role.
    #[api(proto = 3, default = String::new(), present)]
    pub name: String,
}

impl RoleRef {
    /// The kind of roles of a namespace.
    pub const ROLE: &str = "Role";
    /// The kind of roles of the cluster.
    pub const CLUSTER_ROLE: &str = "ClusterRole";
}

/// What a binding prints: of both kinds the same.
macro_rules! columns {
    ($($binding:ident)+) => {$(
        impl $binding {
            fn role(&self) -> String {
                format!("{}/{}", self.role_ref.kind, self.role_ref.name)
            }

            fn users(&self) -> String {
                named(&self.subjects, Subject::USER)
            }

            fn groups(&self) -> String {
                named(&self.subjects, Subject::GROUP)
            }

            fn service_accounts(&self) -> String {
                named(&self.subjects, Subject::SERVICE_ACCOUNT)
            }
        }
    )+};
}

columns!(RoleBinding ClusterRoleBinding);

/// The names of the subjects of a kind, those of service accounts behind their namespaces.
fn named(subjects: &[Subject], kind: &str) -> String {
    let named = subjects.iter().filter(|subject| subject.kind == kind);
    let names: Vec<String> = named
        .map(|subject| match kind {
            Subject::SERVICE_ACCOUNT => {
                format!(
                    "{}/{}",
                    subject.namespace.as_deref().unwrap_or_default(),
                    subject.name
                )
            }
            _ => subject.name.clone(),
        })
        .collect();
    names.join(", ")
}
