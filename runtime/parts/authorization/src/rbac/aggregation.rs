//! ClusterRoles that have the rules of others: a controller writes them, by the rules of kube-controller-manager.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use apiloom_kinds::rbac::v1::{ClusterRole, PolicyRule};
use apiloom_meta::Resource as _;
use apiloom_meta::selector::LabelQuery;
use apiloom_registry::Lister;
use apiloom_server::Capability;
use apiloom_server::host::feed::{self, Counts, Reporter, Sink};
use apiloom_server::host::{
    ControllerHost, ObservedObject, RequestError, Requests, ServedKind, Uid,
};
use async_trait::async_trait;
use tokio::sync::Notify;

use crate::text::text;

/// The name of the controller in `--controllers`, in its lease and as the manager of the fields that it writes, that of
/// kube-controller-manager.
pub(crate) const CONTROLLER: &str = "clusterrole-aggregation-controller";

/// Time until a write that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The controller.
#[derive(Debug)]
pub(crate) struct Aggregation(pub(crate) Lister<ClusterRole>);

#[async_trait]
impl Capability for Aggregation {
    fn elected(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    async fn lead(&self, host: ControllerHost) {
        let requests = host.requests(CONTROLLER);
        let registry = requests.registry();
        let (group, version) = (ClusterRole::GROUP, ClusterRole::VERSION);
        let Some(endpoint) = registry.endpoint(group, version, ClusterRole::PLURAL) else {
            // The lease is kept: without a wait it would be taken and given up all the time.
            return std::future::pending().await;
        };
        let changed = Arc::new(ChangeSignal::default());
        let served = ServedKind::new(endpoint.def());
        let counts = format!("{CONTROLLER}/{}", ClusterRole::PLURAL);
        let counts = Counts::register(&host.metrics.registry, counts);
        let sink: Arc<dyn Sink> = Arc::clone(&changed) as _;
        tokio::join!(
            feed::follow(endpoint, sink, Reporter::unread(counts)),
            self.collect_always(&requests, &served, &changed.0)
        );
    }
}

/// Tells that a role has changed.
#[derive(Default)]
struct ChangeSignal(Notify);

impl Sink for ChangeSignal {
    fn observe(&self, _: ObservedObject) {
        self.0.notify_one();
    }

    fn remove(&self, _: Uid) {
        self.0.notify_one();
    }

    fn complete(&self, _: &str, _: &str, _: &HashSet<Uid>) {
        self.0.notify_one();
    }
}

impl Aggregation {
    /// Collects the rules whenever a role has changed.
    async fn collect_always(&self, requests: &Requests, served: &ServedKind, changed: &Notify) {
        loop {
            changed.notified().await;
            if let Err(why) = self.collect(requests, served).await {
                tracing::debug!(%why, "the rules of aggregated roles are to be collected again");
                tokio::time::sleep(RETRY).await;
                changed.notify_one();
            }
        }
    }

    /// Writes the roles whose rules are not those of the roles that they select.
    async fn collect(&self, requests: &Requests, served: &ServedKind) -> Result<(), RequestError> {
        let Ok(roles) = self.0.list() else {
            return Err(RequestError::NotListed);
        };
        for role in &roles {
            let Some(rules) = collected(role, &roles) else {
                continue;
            };
            if role.rules.as_deref().unwrap_or_default() == rules {
                continue;
            }
            let name = text(&role.metadata.name);
            let written = ClusterRole {
                rules: Some(rules),
                ..(**role).clone()
            };
            // One that is gone needs no rules.
            let path = served.object("", name)?;
            requests.put(&path, &written).await?;
        }
        Ok(())
    }
}

/// The rules that a role has to have: those of the others that it selects, in the order of their names, each once. `None` for a role
/// with rules of its own.
fn collected(role: &ClusterRole, roles: &[Arc<ClusterRole>]) -> Option<Vec<PolicyRule>> {
    let selectors = &role.aggregation_rule.as_ref()?.cluster_role_selectors;
    // One that cannot be read selects nothing.
    let queries = selectors
        .iter()
        .filter_map(|selector| selector.to_query().ok());
    let queries: Vec<LabelQuery> = queries.collect();
    let is_selected = |other: &&Arc<ClusterRole>| {
        let labels = &other.metadata.labels;
        let label = |key: &str| labels.get(key).map(String::as_str);
        other.metadata.name != role.metadata.name
            && queries.iter().any(|query| query.matches(label))
    };
    let mut collected: Vec<PolicyRule> = Vec::new();
    // A lister has them in the order of their names.
    let rules = roles
        .iter()
        .filter(is_selected)
        .flat_map(|other| &other.rules)
        .flatten();
    for rule in rules {
        if !collected.contains(rule) {
            collected.push(rule.clone());
        }
    }
    Some(collected)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn role(name: &str, labels: Value, rules: Value) -> Arc<ClusterRole> {
        let role = json!({"metadata": {"name": name, "labels": labels}, "rules": rules});
        Arc::new(serde_json::from_value(role).unwrap())
    }

    #[test]
    fn rules_are_those_of_the_selected_roles_each_once() {
        let rule =
            |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
        let view = json!({"to-view": "true"});
        let roles = [
            role("a", view.clone(), json!([rule("pods"), rule("secrets")])),
            role("b", view.clone(), json!([rule("pods"), rule("nodes")])),
            role("c", json!({}), json!([rule("events")])),
            role("view", view, json!([rule("old")])),
        ];
        let mut aggregated = (*roles[3]).clone();
        assert_eq!(collected(&aggregated, &roles), None);
        let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]});
        aggregated.aggregation_rule = serde_json::from_value(selector).unwrap();
        let found = collected(&aggregated, &roles).unwrap();
        let resources: Vec<&str> = found
            .iter()
            .map(|rule| rule.resources[0].as_str())
            .collect();
        assert_eq!(resources, ["pods", "secrets", "nodes"]);
    }
}
