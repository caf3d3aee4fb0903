//! The parts that a server of Kubernetes has by default: one list, [`PartsConfig::parts`].
//!
//! [`builder`] begins a server with all of them. [`Builder::new`] begins one with none, to which a program adds those that it wants.

#[cfg(feature = "admissionregistration")]
pub use apiloom_admission::AdmissionWebhooks;
#[cfg(feature = "apiregistration")]
pub use apiloom_aggregator::ApiServices;
#[cfg(feature = "apiextensions")]
pub use apiloom_apiextensions::CustomResources;
pub use apiloom_audit::Audit;
#[cfg(feature = "authentication")]
pub use apiloom_authentication::Authentication;
#[cfg(feature = "authorization")]
pub use apiloom_authorization::{Authorization, Mode as AuthorizationMode};
pub use apiloom_encryption::EncryptionAtRest;
/// The name of the garbage collector in `--controllers`.
pub use apiloom_garbage::CONTROLLER as GARBAGE_COLLECTOR;
pub use apiloom_garbage::GarbageCollection;
/// The name of the controller that deletes the content of namespaces in `--controllers`.
pub use apiloom_namespaces::CONTROLLER as NAMESPACE_CONTROLLER;
pub use apiloom_namespaces::NamespaceDeletion;

use std::process::ExitCode;

use apiloom_server::{Builder, Config, Part, Program};

/// The parts of a server, each as it is configured in code. The default of each part is its own.
///
/// ```
/// use apiloom_parts::PartsConfig;
/// use apiloom_server::Config;
///
/// let mut parts = PartsConfig::default();
/// parts.garbage_collection.workers = std::num::NonZeroUsize::MIN;
/// let builder = apiloom_parts::builder_with(Config::new("zoo", "zoo-data"), parts);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PartsConfig {
    /// Records requests.
    pub audit: Audit,
    /// Says who is asking.
    #[cfg(feature = "authentication")]
    pub authentication: Authentication,
    /// Says who may do what.
    #[cfg(feature = "authorization")]
    pub authorization: Authorization,
    /// Asks webhooks about writes.
    #[cfg(feature = "admissionregistration")]
    pub admission_webhooks: AdmissionWebhooks,
    /// Encrypts stored values.
    pub encryption: EncryptionAtRest,
    /// Deletes objects whose owners are gone.
    pub garbage_collection: GarbageCollection,
    /// Deletes the content of deleted namespaces.
    pub namespace_deletion: NamespaceDeletion,
    /// Versions that other servers serve.
    #[cfg(feature = "apiregistration")]
    pub api_services: ApiServices,
    /// Kinds that come and go at run time.
    #[cfg(feature = "apiextensions")]
    pub custom_resources: CustomResources,
}

impl PartsConfig {
    /// The parts, in the order in which they start.
    pub fn parts(self) -> Vec<Box<dyn Part>> {
        vec![
            Box::new(self.audit),
            #[cfg(feature = "authentication")]
            Box::new(self.authentication),
            #[cfg(feature = "authorization")]
            Box::new(self.authorization),
            #[cfg(feature = "admissionregistration")]
            Box::new(self.admission_webhooks),
            Box::new(self.encryption),
            Box::new(self.garbage_collection),
            Box::new(self.namespace_deletion),
            #[cfg(feature = "apiregistration")]
            Box::new(self.api_services),
            #[cfg(feature = "apiextensions")]
            Box::new(self.custom_resources),
        ]
    }
}

/// Begins a server with the default parts.
///
/// ```
/// # use apiloom_server::{Config, Server, ServerError};
/// # async fn example() -> Result<Server, ServerError> {
/// let config = Config::new("zoo", "zoo-data");
/// apiloom_parts::builder(config).all_built_in().build().await
/// # }
/// ```
pub fn builder(config: Config) -> Builder {
    builder_with(config, PartsConfig::default())
}

/// As [`builder`], with parts that are configured.
pub fn builder_with(config: Config, parts: PartsConfig) -> Builder {
    Builder::new(config).parts(parts.parts())
}

/// Runs a server called `name` with the default parts and the process' arguments, as [`Program::main`].
pub fn main(name: &str, configure: impl FnOnce(Builder) -> Builder) -> ExitCode {
    let parts = PartsConfig::default().parts();
    Program::new(name).parts(parts).main(configure)
}

/// As [`main`], for the server of `apiloom serve`, without a package: it serves the built-in kinds and those of CustomResourceDefinitions,
/// which it installs from the files that `--crds` names. Unless its flags say otherwise, users are authorized by their roles (RBAC), and it
/// issues tokens of service accounts.
#[cfg(feature = "apiextensions")]
pub fn serve_definitions(name: &str) -> ExitCode {
    let mut parts = PartsConfig::default();
    #[cfg(feature = "authorization")]
    {
        parts.authorization.modes = vec![AuthorizationMode::Rbac];
    }
    #[cfg(feature = "authentication")]
    {
        let issuer = "https://kubernetes.default.svc.cluster.local";
        parts.authentication.service_accounts.issuers = vec![issuer.to_owned()];
    }
    parts.custom_resources = parts.custom_resources.with_flags();
    let program = Program::new(name).parts(parts.parts());
    program.command("apiloom serve").main(Builder::all_built_in)
}
