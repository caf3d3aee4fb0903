//! What a part does while the server runs: a [`Capability`]. The host starts, asks and stops all of them alike, and knows none by its
//! name.

use std::fmt;
use std::sync::Arc;

use apiloom_http::AddedSource;
use apiloom_http::documents::health::Check;
use apiloom_http::observation::metrics::Metrics;
use apiloom_registry::{Encryption, Registry};
use async_trait::async_trait;

use super::auditor::Auditor;
use super::host::ControllerHost;
use super::services::ServiceResolver;
use super::{Config, ServerError};

/// What the host has when it makes the capabilities of its parts.
#[derive(Clone, Debug)]
pub struct CapabilityContext {
    /// Finds the addresses of services.
    pub services: Arc<dyn ServiceResolver>,
}

/// Makes a capability once the parts of a server are registered.
pub(super) type MakeCapability = Box<dyn FnOnce(&CapabilityContext) -> Arc<dyn Capability> + Send>;

/// What a part does while the server runs. The methods that are not questions are called in this order, each once, but for `lead`; `ready` is
/// called while the controllers run. All have defaults that do nothing. A [`Part`](super::Part) adds it by
/// [`Builder::capability`](super::Builder::capability) when it is registered.
///
/// ```
/// use apiloom_server::host::ControllerHost;
/// use apiloom_server::server::Capability;
/// use apiloom_server::{Builder, Part, async_trait};
///
/// /// Counts something, in one of several servers over a store.
/// #[derive(Debug)]
/// struct Census;
///
/// #[async_trait]
/// impl Capability for Census {
///     fn elected(&self) -> Option<&'static str> {
///         Some("census-controller")
///     }
///
///     async fn lead(&self, host: ControllerHost) {
///         let _requests = host.requests("census");
///         std::future::pending::<()>().await;
///     }
/// }
///
/// impl Part for Census {
///     fn name(&self) -> &'static str {
///         "census"
///     }
///
///     fn register(self: Box<Self>, builder: Builder) -> Builder {
///         builder.capability(|_| Census)
///     }
/// }
/// ```
#[async_trait]
pub trait Capability: fmt::Debug + Send + Sync + 'static {
    /// Whether only the first server of a chain has it: it serves all of them.
    fn is_of_first(&self) -> bool {
        false
    }

    /// Checks what the configuration says of it, before a store is opened.
    ///
    /// # Errors
    /// All problems.
    async fn check(&self, config: &Config) -> Result<(), ServerError> {
        let _ = config;
        Ok(())
    }

    /// Encrypts stored values; asked once, after the check. A server has one encryption: the first that a capability has. Without one values
    /// are stored as they are.
    fn encryption(&self) -> Option<Arc<dyn Encryption>> {
        None
    }

    /// Reads what it needs before requests are answered. The registry is started.
    ///
    /// # Errors
    /// What keeps the server from its start.
    async fn start(&self, registry: &Arc<Registry>) -> Result<(), ServerError> {
        let _ = registry;
        Ok(())
    }

    /// Its health checks.
    fn checks(&self) -> Vec<Check> {
        Vec::new()
    }

    /// The source of what it serves, which is asked before all others.
    fn source(&self) -> Option<AddedSource> {
        None
    }

    /// Records requests; asked once, before requests are answered. A server has one auditor: the first that a capability has.
    fn auditor(&self) -> Option<Arc<dyn Auditor>> {
        None
    }

    /// Counts in these metrics from now on.
    fn count_in(&self, metrics: &Metrics) {
        let _ = metrics;
    }

    /// Whether it serves more paths once it is ready: a list of the routes waits for that, and for no other part.
    fn adds_routes(&self) -> bool {
        false
    }

    /// Completes when it has done what the server does before it is ready, while its controllers run.
    ///
    /// # Errors
    /// What the server refuses, and what is not done in time.
    async fn ready(&self, registry: &Registry) -> Result<(), ServerError> {
        let _ = registry;
        Ok(())
    }

    /// Its controller in every server; dropped when the server stops.
    async fn run(&self, host: ControllerHost) {
        drop(host);
    }

    /// The name of its controller that one server at a time runs, in `--controllers` and as the name of a lease. Without it the capability has
    /// no such controller; where [`Config::controllers`] leaves the name out, the server does not have the capability. Default none.
    fn elected(&self) -> Option<&'static str> {
        None
    }

    /// Runs that controller; dropped when another server may run it, and when the server stops.
    async fn lead(&self, host: ControllerHost) {
        drop(host);
    }
}
