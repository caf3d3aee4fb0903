//! Kinds that come and go at run time, a part of a server: CustomResourceDefinitions are followed and served (`definitions`), converted by
//! webhooks (`webhooks`), and installed from files when the server starts (`installation`).

mod definitions;
mod flags;
mod installation;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;

use apiloom_http::documents::health::Check;
use apiloom_http::observation::metrics::Metrics;
use apiloom_registry::Registry;
use apiloom_server::host::ControllerHost;
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches as _};

use self::flags::DefinitionFlags;
use self::installation::Installation;
use self::webhooks::Webhooks;

/// The part: a server with it serves CustomResourceDefinition, and the kinds of definitions.
#[derive(Clone, Debug, Default)]
pub struct CustomResources {
    /// CustomResourceDefinitions to install when the server starts: files of YAML or JSON, folders of such files, or `-` for
    /// standard input. Default none.
    pub definitions: Vec<PathBuf>,
    has_flags: bool,
}

impl CustomResources {
    /// The part with the flag `--crds`, which names the definitions to install. Default without.
    #[must_use]
    pub fn with_flags(mut self) -> Self {
        self.has_flags = true;
        self
    }
}

impl Part for CustomResources {
    fn name(&self) -> &'static str {
        "apiextensions"
    }

    fn add_flags(&self, command: Command) -> Command {
        if self.has_flags {
            DefinitionFlags::augment_args(command)
        } else {
            command
        }
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        if self.has_flags {
            self.definitions = DefinitionFlags::from_arg_matches(matches)?.crds;
        }
        Ok(())
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        builder.capability(move |context| Extensions {
            webhooks: Webhooks::new(Arc::clone(&context.services)),
            installation: Installation::new(self.definitions),
        })
    }
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
