//! The webhooks of all configurations of a kind.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use apiloom_cel::Condition;
use apiloom_kinds::admissionregistration::rules::conditions;
use apiloom_kinds::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use apiloom_meta::selector::LabelQuery;
use apiloom_meta::{ApiError, LabelSelector, Resource};
use apiloom_registry::{Lister, SeenState};
use apiloom_server::services::{DEFAULT_SERVICE_PORT, ServicePort, ServiceResolver};
use apiloom_server::webhook::{WebhookAddress, WebhookClient};
use parking_lot::Mutex;

/// A kind of configurations.
pub(crate) trait Configuration: Resource {
    /// Its webhooks, as mutating ones.
    fn webhooks(&self) -> Vec<MutatingWebhook>;

    /// The name of the configuration.
    fn name(&self) -> &str;
}

impl Configuration for MutatingWebhookConfiguration {
    fn webhooks(&self) -> Vec<MutatingWebhook> {
        self.webhooks.clone()
    }

    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn webhooks(&self) -> Vec<MutatingWebhook> {
        let webhooks = self.webhooks.iter().cloned();
        webhooks.map(MutatingWebhook::from).collect()
    }

    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Most bytes of the conditions of all webhooks of a kind that are compiled. Those of further ones cannot be evaluated.
const MAX_CONDITION_BYTES: usize = 2 * 1024 * 1024;

/// A webhook, ready to be asked.
#[derive(Debug)]
pub(crate) struct Hook {
    /// Unique among the webhooks of the kind, and the same after the server starts again.
    pub(crate) id: String,
    /// The name of its configuration.
    pub(crate) configuration: String,
    pub(crate) webhook: MutatingWebhook,
    pub(crate) namespaces: Result<LabelQuery, String>,
    pub(crate) objects: Result<LabelQuery, String>,
    /// The conditions, each or why it cannot be evaluated.
    pub(crate) conditions: Vec<Result<Condition, String>>,
    /// Its connections, or why it cannot be asked.
    pub(crate) client: Result<WebhookClient, String>,
}

impl Hook {
    fn new(
        configuration: &str,
        webhook: MutatingWebhook,
        services: &Services,
        room: &mut usize,
    ) -> Self {
        let mut compile = |condition: &str| {
            let left = room.checked_sub(condition.len());
            *room = left.ok_or_else(|| {
                format!("the conditions of all webhooks have more than {MAX_CONDITION_BYTES} bytes")
            })?;
            let compiled = conditions::compile(condition.trim());
            compiled.map_err(|why| format!("compilation error: {why}"))
        };
        let compiled = webhook.match_conditions.iter();
        Self {
            id: format!("{configuration}/{}", webhook.name),
            configuration: configuration.to_owned(),
            namespaces: query(webhook.namespace_selector.as_ref()),
            objects: query(webhook.object_selector.as_ref()),
            conditions: compiled.map(|one| compile(&one.expression)).collect(),
            client: client(&webhook.client_config, services),
            webhook,
        }
    }

    /// The bytes of its conditions that are compiled.
    fn condition_bytes(&self) -> usize {
        let written = self.webhook.match_conditions.iter();
        let compiled = written.zip(&self.conditions);
        let compiled = compiled.filter(|(_, compiled)| compiled.is_ok());
        compiled.map(|(written, _)| written.expression.len()).sum()
    }

    /// Whether a write goes on if the webhook cannot be asked.
    pub(crate) fn is_ignored(&self) -> bool {
        self.webhook.failure_policy.as_deref() == Some(MutatingWebhook::IGNORE)
    }
}

fn query(selector: Option<&LabelSelector>) -> Result<LabelQuery, String> {
    selector.map_or_else(|| Ok(LabelQuery::default()), LabelSelector::to_query)
}

fn client(config: &WebhookClientConfig, services: &Services) -> Result<WebhookClient, String> {
    let mut address = WebhookAddress {
        url: config.url.clone(),
        ca_bundle: config.ca_bundle.clone(),
        ..WebhookAddress::default()
    };
    if let Some(service) = &config.service {
        let port = service.port.unwrap_or(i32::from(DEFAULT_SERVICE_PORT));
        address.path.clone_from(&service.path);
        address.service = Some(ServicePort {
            namespace: service.namespace.clone(),
            name: service.name.clone(),
            port: u16::try_from(port).map_err(|_| format!("port {port} is not valid"))?,
        });
    }
    WebhookClient::new(&address, services.resolver()?)
}

/// What finds the services of webhooks; known once the server is built. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services(Arc<OnceLock<Arc<dyn ServiceResolver>>>);

impl Services {
    /// Finds services by this resolver from now on.
    pub(crate) fn find_by(&self, resolver: &Arc<dyn ServiceResolver>) {
        // A server is built once.
        let _ = self.0.set(Arc::clone(resolver));
    }

    fn resolver(&self) -> Result<Arc<dyn ServiceResolver>, String> {
        let resolver = self.0.get().map(Arc::clone);
        resolver.ok_or_else(|| "the server has not started yet".to_owned())
    }
}

/// The webhooks of a kind of configurations, in the order of the names of these.
#[derive(Debug)]
pub(crate) struct Hooks<K> {
    /// `None` for a server without this kind.
    configurations: Option<Lister<K>>,
    services: Services,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    state: SeenState,
    /// By the name of the configuration.
    by_configuration: BTreeMap<String, Vec<Arc<Hook>>>,
    all: Arc<[Arc<Hook>]>,
}

impl<K: Configuration> Hooks<K> {
    pub(crate) fn new(configurations: Option<Lister<K>>, services: Services) -> Self {
        Self {
            configurations,
            services,
            seen: Mutex::default(),
        }
    }

    /// The webhooks as they are now. Those of configurations that have not changed keep their connections.
    ///
    /// # Errors
    /// If the configurations are not known within ten seconds.
    pub(crate) async fn current(&self) -> Result<Arc<[Arc<Hook>]>, ApiError> {
        let Some(configurations) = &self.configurations else {
            return Ok(Arc::default());
        };
        if let Ok(hooks) = self.known(configurations) {
            return Ok(hooks);
        }
        configurations.ready().await?;
        self.known(configurations)
    }

    fn known(&self, configurations: &Lister<K>) -> Result<Arc<[Arc<Hook>]>, ApiError> {
        let mut seen = self.seen.lock();
        if configurations.is_unchanged(&seen.state)? {
            return Ok(Arc::clone(&seen.all));
        }
        let Seen {
            state,
            by_configuration,
            all,
        } = &mut *seen;
        let hooks = by_configuration.values().flatten();
        let used: usize = hooks.map(|hook| hook.condition_bytes()).sum();
        let mut room = MAX_CONDITION_BYTES.saturating_sub(used);
        configurations.changes(state, |before: Option<Arc<K>>, after: Option<Arc<K>>| {
            if let Some(before) = before {
                let hooks = by_configuration.remove(before.name());
                let bytes = hooks.iter().flatten().map(|hook| hook.condition_bytes());
                room += bytes.sum::<usize>();
            }
            if let Some(after) = after {
                let name = after.name();
                let hooks = after.webhooks().into_iter();
                let hooks = hooks
                    .map(|webhook| Hook::new(name, webhook, &self.services, &mut room))
                    .map(Arc::new)
                    .collect();
                by_configuration.insert(name.to_owned(), hooks);
            }
        })?;
        *all = by_configuration.values().flatten().cloned().collect();
        Ok(Arc::clone(all))
    }
}

#[cfg(test)]
mod tests {
    use apiloom_kinds::admissionregistration::v1::MatchCondition;

    use super::*;

    #[test]
    fn the_conditions_of_all_webhooks_have_a_bound_together() {
        let services = Services::default();
        let condition = |bytes: usize| MatchCondition {
            name: "c".to_owned(),
            expression: format!("'{}' != ''", "x".repeat(bytes - 8)),
        };
        let mut room = 100_000;
        let mut compiled = |bytes: usize, conditions: usize| {
            let webhook = MutatingWebhook {
                match_conditions: vec![condition(bytes); conditions],
                ..MutatingWebhook::default()
            };
            let hook = Hook::new("a", webhook, &services, &mut room);
            let compiled = hook.conditions.iter().filter(|one| one.is_ok()).count();
            assert_eq!(hook.condition_bytes(), compiled * bytes);
            for refused in hook.conditions.iter().filter_map(|one| one.as_ref().err()) {
                assert!(
                    refused.starts_with("the conditions of all webhooks have more than"),
                    "{refused}"
                );
            }
            compiled
        };
        assert_eq!(compiled(40_000, 3), 2);
        assert_eq!(compiled(30_000, 1), 0);
        assert_eq!(compiled(20_000, 2), 1);
        assert_eq!(compiled(20, 1), 0);
    }
}
