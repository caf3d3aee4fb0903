//! The roles and bindings that Kubernetes has from its start: made where they are missing, and completed at every start, unless their
//! annotation says that they are the administrator's own.
//!
//! They are there before the first request is answered. If they cannot be written, such as on a full disk or over a slow network, the
//! server serves with those that it has; the health check [`CHECK`] fails, and they are tried again.

use std::sync::Arc;
use std::time::Duration;

use apiloom_http::documents::health::Check;
use apiloom_kinds::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use apiloom_meta::{ApiError, Object, ObjectMeta, Resource, SortedMap, StatusReason};
use apiloom_registry::{
    CreateOptions, DeleteOptions, Endpoint, Lister, Registry, RequestContext, UpdateOptions,
    WriteRequest,
};
use apiloom_server::host::ControllerHost;
use apiloom_server::{Capability, ServerError};
use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use super::{Rbac, coverage};
use crate::text::text;

/// The name of the health check, that of the hook of kube-apiserver.
const CHECK: &str = "poststarthook/rbac/bootstrap-roles";

/// The manager of the fields that are written.
const MANAGER: &str = "rbac-bootstrap";

/// How many objects are written at the same time: a disk takes several writes at once.
const AT_ONCE: usize = 16;

/// For how long the start of the server waits for them.
const START: Duration = Duration::from_secs(2);

/// Time until what could not be written is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// What says that an object is kept as it is here; `false` that it is not.
const KEPT: (&str, &str) = ("rbac.authorization.kubernetes.io/autoupdate", "true");

/// The label of these objects.
const LABEL: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

/// How often an object is read again that others write at the same time, such as a second server at its start.
const TRIES: usize = 5;

/// The roles and bindings of Kubernetes 1.36, without the label and the annotation of all of them.
const POLICY: &str = include_str!("policy.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    cluster_roles: Vec<ClusterRole>,
    cluster_role_bindings: Vec<ClusterRoleBinding>,
    roles: Vec<Role>,
    role_bindings: Vec<RoleBinding>,
}

/// Keeps the roles and bindings.
#[derive(Debug)]
pub(crate) struct Bootstrap {
    rbac: Arc<Rbac>,
    /// Why they are not there.
    problem: Arc<Mutex<Option<String>>>,
}

impl Bootstrap {
    pub(crate) fn new(rbac: Arc<Rbac>) -> Self {
        Self {
            rbac,
            problem: Arc::default(),
        }
    }

    /// Makes and completes them.
    async fn keep(&self, registry: &Registry) {
        let kept = keep_policy(&self.rbac, registry).await;
        if let Err(error) = &kept {
            tracing::error!(%error, "the roles and bindings of Kubernetes cannot be written");
        }
        *self.problem.lock() = kept.err().map(|error| error.message);
    }
}

#[async_trait]
impl Capability for Bootstrap {
    async fn start(&self, registry: &Arc<Registry>) -> Result<(), ServerError> {
        if timeout(START, self.keep(registry)).await.is_err() {
            *self.problem.lock() = Some("they are not written yet".to_owned());
        }
        Ok(())
    }

    fn checks(&self) -> Vec<Check> {
        let problem = Arc::clone(&self.problem);
        let check = move || problem.lock().clone().map_or(Ok(()), Err);
        vec![Check::new(CHECK, check)]
    }

    async fn run(&self, host: ControllerHost) {
        while self.problem.lock().is_some() {
            self.keep(&host.registry).await;
            if self.problem.lock().is_some() {
                sleep(RETRY).await;
            }
        }
    }
}

async fn keep_policy(rbac: &Rbac, registry: &Registry) -> Result<(), ApiError> {
    let policy: Policy =
        serde_json::from_str(POLICY).map_err(|error| ApiError::internal(error.to_string()))?;
    tokio::try_join!(
        keep_all(&rbac.cluster_roles, policy.cluster_roles, registry),
        keep_all(
            &rbac.cluster_bindings,
            policy.cluster_role_bindings,
            registry
        ),
        keep_all(&rbac.roles, policy.roles, registry),
        keep_all(&rbac.bindings, policy.role_bindings, registry),
    )?;
    Ok(())
}

/// A kind of the policy.
trait Kept: Resource + Clone {
    fn meta(&self) -> &ObjectMeta;
    fn meta_mut(&mut self) -> &mut ObjectMeta;

    /// Adds what is missing for this object to be the wanted one; returns whether something was.
    fn complete(&mut self, wanted: &Self) -> bool;

    /// Whether it has to be another object, since what differs cannot be changed.
    fn is_another(&self, wanted: &Self) -> bool {
        let _ = wanted;
        false
    }
}

/// The metadata of the kinds, which are alike, and what is their own.
macro_rules! kept {
    ($($kind:ident { $($method:item)+ })+) => {$(
        impl Kept for $kind {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
            $($method)+
        }
    )+};
}

kept! {
    ClusterRole {
        fn complete(&mut self, wanted: &Self) -> bool {
            let mut is_changed = add_rules(&mut self.rules, &wanted.rules);
            let Some(wanted) = &wanted.aggregation_rule else {
                return is_changed;
            };
            let rule = self.aggregation_rule.get_or_insert_default();
            for selector in &wanted.cluster_role_selectors {
                if !rule.cluster_role_selectors.contains(selector) {
                    rule.cluster_role_selectors.push(selector.clone());
                    is_changed = true;
                }
            }
            is_changed
        }
    }
    Role {
        fn complete(&mut self, wanted: &Self) -> bool {
            add_rules(&mut self.rules, &wanted.rules)
        }
    }
    ClusterRoleBinding {
        fn complete(&mut self, wanted: &Self) -> bool {
            add_subjects(&mut self.subjects, &wanted.subjects)
        }
        fn is_another(&self, wanted: &Self) -> bool {
            is_another_role(&self.role_ref, &wanted.role_ref)
        }
    }
    RoleBinding {
        fn complete(&mut self, wanted: &Self) -> bool {
            add_subjects(&mut self.subjects, &wanted.subjects)
        }
        fn is_another(&self, wanted: &Self) -> bool {
            is_another_role(&self.role_ref, &wanted.role_ref)
        }
    }
}

fn is_another_role(role: &RoleRef, wanted: &RoleRef) -> bool {
    (&role.kind, &role.name) != (&wanted.kind, &wanted.name)
}

fn add_rules(rules: &mut Option<Vec<PolicyRule>>, wanted: &Option<Vec<PolicyRule>>) -> bool {
    let held = rules.as_deref().unwrap_or_default();
    let missing = coverage::uncovered(held, wanted.as_deref().unwrap_or_default());
    let missing: Vec<PolicyRule> = missing.into_iter().cloned().collect();
    if missing.is_empty() {
        return false;
    }
    rules.get_or_insert_default().extend(missing);
    true
}

fn add_subjects(subjects: &mut Vec<Subject>, wanted: &[Subject]) -> bool {
    let is_same = |one: &Subject, other: &Subject| {
        let key = |of: &Subject| (of.kind.clone(), of.name.clone(), of.namespace.clone());
        key(one) == key(other)
    };
    let before = subjects.len();
    for subject in wanted {
        if !subjects.iter().any(|one| is_same(one, subject)) {
            subjects.push(subject.clone());
        }
    }
    subjects.len() > before
}

/// Adds entries that are missing; what an administrator has set stays.
fn add_entries(map: &mut SortedMap<String, String>, wanted: &SortedMap<String, String>) -> bool {
    let before = map.len();
    for (key, value) in wanted.iter() {
        if !map.contains_key(key) {
            map.insert(key.clone(), value.clone());
        }
    }
    map.len() > before
}

async fn keep_all<K: Kept>(
    lister: &Lister<K>,
    wanted: Vec<K>,
    registry: &Registry,
) -> Result<(), ApiError> {
    lister.ready().await?;
    let endpoint = registry.endpoint(K::GROUP, K::VERSION, K::PLURAL);
    let endpoint = endpoint.ok_or_else(ApiError::no_such_resource)?;
    let wanted = wanted.into_iter().map(|mut wanted| {
        let meta = wanted.meta_mut();
        meta.labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
        meta.annotations
            .insert(KEPT.0.to_owned(), KEPT.1.to_owned());
        keep(lister, wanted, &endpoint)
    });
    stream::iter(wanted)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// Makes or completes one object.
async fn keep<K: Kept>(lister: &Lister<K>, wanted: K, endpoint: &Endpoint) -> Result<(), ApiError> {
    let meta = wanted.meta();
    let (namespace, name) = (text(&meta.namespace), text(&meta.name));
    let own = Some(namespace).filter(|namespace| !namespace.is_empty());
    let (ctx, writes) = (RequestContext::default(), endpoint.writes());
    for _ in 0..TRIES {
        let Some(present) = lister.get_live(namespace, name).await? else {
            let options = CreateOptions {
                field_manager: MANAGER.to_owned(),
                ..CreateOptions::default()
            };
            match writes.create(&ctx, own, object(&wanted)?, &options).await {
                // Another server was faster.
                Err(error) if error.reason == Some(StatusReason::AlreadyExists) => continue,
                // Without its namespace it has nothing to permit.
                Err(error) if error.reason == Some(StatusReason::NotFound) => return Ok(()),
                done => return done.map(|_| ()),
            }
        };
        let meta = present.meta();
        if meta
            .annotations
            .get(KEPT.0)
            .is_some_and(|kept| kept == "false")
        {
            return Ok(());
        }
        if present.is_another(&wanted) {
            match writes
                .delete(&ctx, own, name, &DeleteOptions::default())
                .await
            {
                Err(error) if error.reason != Some(StatusReason::NotFound) => return Err(error),
                _ => continue,
            }
        }
        let mut completed = (*present).clone();
        let mut is_changed = completed.complete(&wanted);
        let meta = completed.meta_mut();
        is_changed |= add_entries(&mut meta.labels, &wanted.meta().labels);
        is_changed |= add_entries(&mut meta.annotations, &wanted.meta().annotations);
        if !is_changed {
            return Ok(());
        }
        let options = UpdateOptions {
            field_manager: MANAGER.to_owned(),
            ..UpdateOptions::default()
        };
        let request = WriteRequest::new(&ctx, own, name).with(&options);
        match writes.update(request, object(&completed)?).await {
            Err(error) if error.reason == Some(StatusReason::Conflict) => {}
            done => return done.map(|_| ()),
        }
    }
    let why = format!("{} {name} is written by others all the time", K::KIND);
    Err(ApiError::internal(why))
}

fn object<K: Kept>(of: &K) -> Result<Object, ApiError> {
    let object = serde_json::to_value(of).ok().and_then(Object::from_value);
    object.ok_or_else(|| ApiError::internal("a role is no object"))
}
