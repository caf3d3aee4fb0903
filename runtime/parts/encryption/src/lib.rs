//! Encryption at rest, a part of a server: the values of resources are encrypted before they are stored, as an EncryptionConfiguration
//! says (the Kubernetes concept Encrypting Confidential Data at Rest).
//!
//! `configuration.rs` reads the file, `rules.rs` has what is in use, `chain.rs` chooses the provider and the key, and `ciphers.rs` encrypts.
//! The stored bytes are those of kube-apiserver, so that each reads what the other has written. The registry has plain values, and calls
//! the part by its trait [`Encryption`].

mod chain;
mod ciphers;
mod configuration;
mod metrics;
mod rules;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use apiloom_registry::{Encryption, Registry};
use apiloom_server::host::ControllerHost;
use apiloom_server::server::follow_files;
use apiloom_server::{Builder, Capability, Config, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};

use self::rules::ConfiguredEncryption;

/// The part: a server with it encrypts stored values, if its file is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Encryption flags")]
pub struct EncryptionAtRest {
    /// File with the resources to encrypt and the providers to do it with (kind EncryptionConfiguration of apiserver.config.k8s.io/v1).
    /// Without it values are stored as they are, and encrypted ones cannot be read.
    #[arg(
        id = "encryption-provider-config",
        long = "encryption-provider-config",
        value_name = "FILE"
    )]
    pub config_file: Option<PathBuf>,
    /// Whether the file is read again when it changes. One that is wrong is logged and counted, and the earlier one stays in use.
    #[arg(
        id = "encryption-provider-config-automatic-reload",
        long = "encryption-provider-config-automatic-reload"
    )]
    pub reloads_config: bool,
}

impl Part for EncryptionAtRest {
    fn name(&self) -> &'static str {
        "encryption"
    }

    fn add_flags(&self, command: Command) -> Command {
        Self::augment_args(command)
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches(matches)
    }

    fn register(self: Box<Self>, mut builder: Builder) -> Builder {
        let encryption = self.config_file.as_deref().map(ConfiguredEncryption::new);
        if let Some(encryption) = &encryption {
            builder = builder.metrics(encryption.clone());
        }
        builder.capability(move |_| ConfigurationFile {
            registry: OnceLock::new(),
            encryption,
            is_followed: self.reloads_config,
        })
    }
}

/// The file of the configuration.
#[derive(Debug)]
struct ConfigurationFile {
    encryption: Option<ConfiguredEncryption>,
    is_followed: bool,
    /// Set when the server starts.
    registry: OnceLock<Arc<Registry>>,
}

#[async_trait]
impl Capability for ConfigurationFile {
    async fn check(&self, _: &Config) -> Result<(), ServerError> {
        let read = match &self.encryption {
            Some(encryption) => encryption.read(),
            None if self.is_followed => Err(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
                    .to_owned(),
            ),
            None => Ok(()),
        };
        read.map_err(|problem| ServerError::Invalid(vec![problem]))
    }

    fn encryption(&self) -> Option<Arc<dyn Encryption>> {
        let encryption = self.encryption.clone()?;
        Some(Arc::new(encryption))
    }

    async fn start(&self, registry: &Arc<Registry>) -> Result<(), ServerError> {
        // A server starts once.
        let _ = self.registry.set(Arc::clone(registry));
        Ok(())
    }

    async fn run(&self, _: ControllerHost) {
        let Some(encryption) = self.encryption.clone().filter(|_| self.is_followed) else {
            return;
        };
        let registry = self.registry.get().cloned();
        let reload = move || {
            let is_changed = encryption.reload()?;
            if let Some(registry) = registry.as_ref().filter(|_| is_changed) {
                registry.refill_unreadable();
            }
            Ok(is_changed)
        };
        follow_files("encryption providers", reload).await;
    }
}
