//! Kinds that come and go at run time: CustomResourceDefinitions are followed and served (`definitions`), converted by webhooks
//! (`webhooks`), and installed from files when the server starts (`installation`).

mod definitions;
mod installation;
mod webhooks;

use std::sync::Arc;

use apiloom_http::documents::health::Check;
use apiloom_http::observation::metrics::Metrics;
use apiloom_registry::Registry;
use async_trait::async_trait;

use self::installation::Installation;
use self::webhooks::Webhooks;
use crate::server::capability::Capability;
use crate::server::controllers::host::ControllerHost;
use crate::server::services::ServiceResolver;
use crate::server::{Config, ServerError};

/// The kinds of definitions, in a server that finds the services of their webhooks by `services`.
pub(super) fn part(config: &Config, services: &Arc<dyn ServiceResolver>) -> Arc<dyn Capability> {
    Arc::new(Extensions {
        webhooks: Webhooks::new(Arc::clone(services)),
        installation: Installation::new(config),
    })
}

/// The kinds of CustomResourceDefinitions.
#[derive(Debug)]
struct Extensions {
    webhooks: Webhooks,
    installation: Installation,
}

#[async_trait]
impl Capability for Extensions {
    async fn check(&self, config: &Config) -> Result<(), ServerError> {
        self.installation.read(config).await
    }

    async fn start(&self, registry: &Arc<Registry>) -> Result<(), ServerError> {
        let published = definitions::publish_stored(registry, &self.webhooks).await;
        published.map_err(|error| ServerError::Storage(error.message))
    }

    fn checks(&self) -> Vec<Check> {
        self.installation.check().into_iter().collect()
    }

    fn count_in(&self, metrics: &Metrics) {
        self.webhooks.count_in(metrics.conversions().clone());
    }

    /// Those of the definitions that are installed.
    fn adds_routes(&self) -> bool {
        true
    }

    async fn ready(&self, registry: &Registry) -> Result<(), ServerError> {
        self.installation.run(registry).await
    }

    async fn run(&self, host: ControllerHost) {
        let requests = host.requests(definitions::NAME);
        definitions::run(requests, host.shared.as_ref(), &self.webhooks).await;
    }
}
