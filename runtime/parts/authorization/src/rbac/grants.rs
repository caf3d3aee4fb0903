//! Who has which rules: the bindings by their subjects, and the roles by their names. A change of an object changes its entries alone.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use apiloom_kinds::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use apiloom_meta::field::go_quote;
use apiloom_registry::auth::{UserInfo, service_account_name};

use crate::text::text;

/// The roles and bindings of a server.
#[derive(Debug, Default)]
pub(super) struct Grants {
    cluster_roles: HashMap<String, Arc<ClusterRole>>,
    /// By namespace and name.
    roles: HashMap<String, HashMap<String, Arc<Role>>>,
    everywhere: Bindings,
    /// By namespace.
    in_namespaces: HashMap<String, Bindings>,
}

/// The bindings of one namespace, or those of the cluster, by each of their subjects and by their names.
#[derive(Debug, Default)]
struct Bindings {
    users: HashMap<String, BTreeMap<String, Arc<Binding>>>,
    groups: HashMap<String, BTreeMap<String, Arc<Binding>>>,
}

/// A binding of either kind.
#[derive(Debug)]
struct Binding {
    /// Empty for one of the cluster.
    namespace: String,
    name: String,
    role: RoleRef,
    subjects: Vec<Subject>,
    /// What the subjects are compared with; none for one that no user is.
    identities: Vec<Option<Identity>>,
}

/// What a subject is compared with.
#[derive(Debug)]
enum Identity {
    User(String),
    Group(String),
}

impl Identity {
    fn of(subject: &Subject, namespace: &str) -> Option<Self> {
        match subject.kind.as_str() {
            Subject::USER => Some(Self::User(subject.name.clone())),
            Subject::GROUP => Some(Self::Group(subject.name.clone())),
            Subject::SERVICE_ACCOUNT => {
                let own = subject.namespace.as_deref().filter(|own| !own.is_empty());
                let namespace = own.unwrap_or(namespace);
                let user = || service_account_name(namespace, &subject.name);
                (!namespace.is_empty()).then(|| Self::User(user()))
            }
            _ => None,
        }
    }

    fn is(&self, user: &UserInfo) -> bool {
        match self {
            Self::User(name) => *name == user.name,
            Self::Group(name) => user.groups.contains(name),
        }
    }
}

/// Why a user has a rule: a binding, and which of its subjects the user is.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

/// As in the reasons of kube-apiserver.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding {
            namespace,
            name,
            role,
            subjects,
            ..
        } = &*self.binding;
        let (kind, name) = if namespace.is_empty() {
            ("ClusterRoleBinding", name.clone())
        } else {
            ("RoleBinding", format!("{name}/{namespace}"))
        };
        let (name, role_name) = (go_quote(&name), go_quote(&role.name));
        write!(
            f,
            "RBAC: allowed by {kind} {name} of {} {role_name} to ",
            role.kind
        )?;
        let Some(subject) = subjects.get(self.subject) else {
            return Ok(());
        };
        let name = match subject.kind.as_str() {
            Subject::SERVICE_ACCOUNT => {
                let own = subject.namespace.as_deref().filter(|own| !own.is_empty());
                format!("{}/{}", subject.name, own.unwrap_or(namespace))
            }
            _ => subject.name.clone(),
        };
        write!(f, "{} {}", subject.kind, go_quote(&name))
    }
}

/// A role that a binding names and that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingRole(RoleRef);

impl fmt::Display for MissingRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RoleRef { kind, name, .. } = &self.0;
        let kind = kind.to_ascii_lowercase();
        write!(
            f,
            "{kind}.rbac.authorization.k8s.io {} not found",
            go_quote(name)
        )
    }
}

/// What is found of a user: a rule, or that a role is missing.
pub(super) enum Found<'a> {
    Rule(GrantedRule<'a>),
    Missing(MissingRole),
}

/// A rule that a user has, and by what.
#[derive(Clone, Copy)]
pub(super) struct GrantedRule<'a> {
    pub(super) rule: &'a PolicyRule,
    binding: &'a Arc<Binding>,
    subject: usize,
}

impl GrantedRule<'_> {
    /// Why the user has it.
    pub(super) fn grant(&self) -> Grant {
        Grant {
            binding: Arc::clone(self.binding),
            subject: self.subject,
        }
    }
}

impl Grants {
    /// Replaces a ClusterRole.
    pub(super) fn set_cluster_role(
        &mut self,
        before: Option<Arc<ClusterRole>>,
        after: Option<Arc<ClusterRole>>,
    ) {
        if let Some(before) = before {
            self.cluster_roles.remove(text(&before.metadata.name));
        }
        if let Some(after) = after {
            let name = text(&after.metadata.name).to_owned();
            self.cluster_roles.insert(name, after);
        }
    }

    /// Replaces a Role.
    pub(super) fn set_role(&mut self, before: Option<Arc<Role>>, after: Option<Arc<Role>>) {
        if let Some(before) = before {
            let namespace = text(&before.metadata.namespace);
            if let Some(roles) = self.roles.get_mut(namespace) {
                roles.remove(text(&before.metadata.name));
                if roles.is_empty() {
                    self.roles.remove(namespace);
                }
            }
        }
        if let Some(after) = after {
            let namespace = text(&after.metadata.namespace).to_owned();
            let roles = self.roles.entry(namespace).or_default();
            roles.insert(text(&after.metadata.name).to_owned(), after);
        }
    }

    /// Replaces a ClusterRoleBinding.
    pub(super) fn set_cluster_binding(
        &mut self,
        before: Option<Arc<ClusterRoleBinding>>,
        after: Option<Arc<ClusterRoleBinding>>,
    ) {
        let binding = |of: &ClusterRoleBinding| {
            Binding::new("", text(&of.metadata.name), &of.role_ref, &of.subjects)
        };
        if let Some(before) = before {
            self.everywhere.remove(&binding(&before));
        }
        if let Some(after) = after {
            self.everywhere.insert(binding(&after));
        }
    }

    /// Replaces a RoleBinding.
    pub(super) fn set_binding(
        &mut self,
        before: Option<Arc<RoleBinding>>,
        after: Option<Arc<RoleBinding>>,
    ) {
        let binding = |of: &RoleBinding| {
            let namespace = text(&of.metadata.namespace);
            Binding::new(
                namespace,
                text(&of.metadata.name),
                &of.role_ref,
                &of.subjects,
            )
        };
        if let Some(before) = before {
            let before = binding(&before);
            if let Some(bindings) = self.in_namespaces.get_mut(&before.namespace) {
                bindings.remove(&before);
                if bindings.is_empty() {
                    self.in_namespaces.remove(&before.namespace);
                }
            }
        }
        if let Some(after) = after {
            let after = binding(&after);
            let bindings = self.in_namespaces.entry(after.namespace.clone());
            bindings.or_default().insert(after);
        }
    }

    /// Shows the rules that a user has in a namespace (empty: in all of them and outside of any): first those of the cluster. Each binding is
    /// shown once, by the first of its subjects that the user is.
    pub(super) fn visit<'a, T>(
        &'a self,
        user: &UserInfo,
        namespace: &str,
        mut visit: impl FnMut(Found<'a>) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        let own = self.in_namespaces.get(namespace);
        for bindings in std::iter::once(&self.everywhere).chain(own) {
            for (binding, subject) in bindings.of(user) {
                let Some(rules) = self.rules(&binding.role, &binding.namespace) else {
                    visit(Found::Missing(MissingRole(binding.role.clone())))?;
                    continue;
                };
                for rule in rules {
                    visit(Found::Rule(GrantedRule {
                        rule,
                        binding,
                        subject,
                    }))?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The rules of a role, for a binding in this namespace; `None` if it does not exist.
    pub(super) fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&[PolicyRule]> {
        let rules = match role.kind.as_str() {
            RoleRef::CLUSTER_ROLE => &self.cluster_roles.get(&role.name)?.rules,
            _ => &self.roles.get(namespace)?.get(&role.name)?.rules,
        };
        Some(rules.as_deref().unwrap_or_default())
    }
}

impl Binding {
    fn new(namespace: &str, name: &str, role: &RoleRef, subjects: &[Subject]) -> Self {
        let identities = subjects.iter();
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            role: role.clone(),
            identities: identities
                .map(|subject| Identity::of(subject, namespace))
                .collect(),
            subjects: subjects.to_vec(),
        }
    }

    /// The first subject that the user is.
    fn subject_of(&self, user: &UserInfo) -> Option<usize> {
        let mut identities = self.identities.iter();
        identities.position(|one| one.as_ref().is_some_and(|one| one.is(user)))
    }
}

impl Bindings {
    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    fn of_identity(
        &mut self,
        identity: &Identity,
    ) -> (&mut HashMap<String, BTreeMap<String, Arc<Binding>>>, String) {
        match identity {
            Identity::User(name) => (&mut self.users, name.clone()),
            Identity::Group(name) => (&mut self.groups, name.clone()),
        }
    }

    fn insert(&mut self, binding: Binding) {
        let binding = Arc::new(binding);
        for identity in binding.identities.iter().flatten() {
            let (bindings, name) = self.of_identity(identity);
            let bindings = bindings.entry(name).or_default();
            bindings.insert(binding.name.clone(), Arc::clone(&binding));
        }
    }

    fn remove(&mut self, binding: &Binding) {
        for identity in binding.identities.iter().flatten() {
            let (bindings, name) = self.of_identity(identity);
            if let Some(named) = bindings.get_mut(&name) {
                named.remove(&binding.name);
                if named.is_empty() {
                    bindings.remove(&name);
                }
            }
        }
    }

    /// The bindings that have the user as a subject, each once, with the first such subject.
    fn of<'a>(&'a self, user: &UserInfo) -> impl Iterator<Item = (&'a Arc<Binding>, usize)> {
        let as_user = self
            .users
            .get(&user.name)
            .into_iter()
            .flat_map(BTreeMap::values);
        let as_user = as_user.filter_map(move |binding| {
            let subject = binding.subject_of(user)?;
            let is_this = matches!(binding.identities[subject], Some(Identity::User(_)));
            is_this.then_some((binding, subject))
        });
        let groups = user.groups.iter().filter_map(|group| {
            let bindings = self.groups.get(group)?.values();
            Some(bindings.map(move |binding| (group, binding)))
        });
        let as_member = groups.flatten().filter_map(move |(group, binding)| {
            let subject = binding.subject_of(user)?;
            let is_this = matches!(&binding.identities[subject], Some(Identity::Group(name)) if name == group);
            is_this.then_some((binding, subject))
        });
        as_user.chain(as_member)
    }
}
