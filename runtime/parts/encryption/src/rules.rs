//! The configuration in use: which providers the values of a resource have, and how it is replaced while the server runs.
//!
//! Invariant: every operation uses the configuration that is in use when it begins, as a whole. A file that cannot be used changes nothing.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiloom_meta::GroupResource;
use apiloom_registry::{ENCRYPTED_DATA, ENCRYPTED_PREFIX, Encryption, PlainValue, ValueCipher};
use apiloom_server::server::{Collect, Samples};
use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;

use super::chain::Chain;
use super::configuration::Configuration;
use super::metrics::{EncryptionMetrics, Operation};

/// The providers of a file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredEncryption(Arc<State>);

#[derive(Debug)]
struct State {
    path: PathBuf,
    /// None before the file is read, which is before the store is opened.
    rules: ArcSwapOption<Rules>,
    metrics: EncryptionMetrics,
}

/// The providers of each resource and wildcard.
struct Rules {
    chains: HashMap<GroupResource, Chain>,
    /// Of the file, which has the keys: `sha256:` and hexadecimal digits.
    digest: String,
}

/// Without the keys.
impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl Rules {
    fn new(bytes: &[u8]) -> Result<Self, String> {
        Ok(Self {
            chains: Configuration::parse(bytes)?.chains()?.into_iter().collect(),
            digest: digest_of(bytes),
        })
    }

    /// The providers of a resource: its own, those of its group, or those of all resources.
    fn chain(&self, names: &ResourceNames) -> Option<&Chain> {
        let wildcards = [&names.own, &names.any_in_group, &names.any];
        wildcards.into_iter().find_map(|name| self.chains.get(name))
    }
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

impl ConfiguredEncryption {
    /// That of a file, which is not read yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self(Arc::new(State {
            path: path.to_owned(),
            rules: ArcSwapOption::empty(),
            metrics: EncryptionMetrics::default(),
        }))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// All that is wrong with it, with its name.
    pub(crate) fn read(&self) -> Result<(), String> {
        self.read_changes().map(|_| ())
    }

    /// Reads the file again; returns whether another configuration is in use now. Called at the start and every few seconds.
    ///
    /// # Errors
    /// As [`Self::read`]; the configuration stays as it was.
    pub(crate) fn reload(&self) -> Result<bool, String> {
        let changed = self.read_changes();
        if changed != Ok(false) {
            self.0.metrics.reload(changed.is_ok());
        }
        changed
    }

    fn read_changes(&self) -> Result<bool, String> {
        let State { path, rules, .. } = &*self.0;
        let read = || {
            let bytes = Configuration::read_bytes(path)?;
            let digest = digest_of(&bytes);
            let known = rules.load();
            if known.as_ref().is_some_and(|known| known.digest == digest) {
                return Ok(false);
            }
            rules.store(Some(Arc::new(Rules::new(&bytes)?)));
            Ok(true)
        };
        read().map_err(|why: String| {
            format!("--encryption-provider-config {}: {why}", path.display())
        })
    }
}

impl Collect for ConfiguredEncryption {
    fn collect(&self, samples: &mut Samples) {
        let rules = self.0.rules.load();
        let digest = rules.as_ref().map(|rules| rules.digest.as_str());
        self.0.metrics.collect(digest, samples);
    }
}

impl Encryption for ConfiguredEncryption {
    fn cipher(&self, resource: &GroupResource) -> Arc<dyn ValueCipher> {
        Arc::new(ResourceCipher {
            names: ResourceNames::new(resource),
            encryption: self.clone(),
        })
    }
}

/// The names under which a configuration may have a resource.
#[derive(Debug)]
struct ResourceNames {
    own: GroupResource,
    any_in_group: GroupResource,
    any: GroupResource,
    /// Its own name as a text, for metrics.
    shown: String,
}

impl ResourceNames {
    fn new(resource: &GroupResource) -> Self {
        Self {
            any_in_group: GroupResource::new(&resource.group, "*"),
            any: GroupResource::new("*", "*"),
            shown: resource.to_string(),
            own: resource.clone(),
        }
    }
}

/// The cipher of a resource, by the configuration in use.
#[derive(Debug)]
struct ResourceCipher {
    names: ResourceNames,
    encryption: ConfiguredEncryption,
}

impl ResourceCipher {
    /// Calls `then` with the providers of the resource; `None` if its values are plain.
    fn with_chain<T>(&self, then: impl FnOnce(Option<&Chain>) -> T) -> T {
        let rules = self.encryption.0.rules.load();
        then(rules.as_ref().and_then(|rules| rules.chain(&self.names)))
    }

    fn count(&self, operation: Operation, prefix: &'static str, is_ok: bool) {
        let metrics = &self.encryption.0.metrics;
        metrics.operation(&self.names.shown, operation, prefix, is_ok);
    }
}

impl ValueCipher for ResourceCipher {
    fn encrypt(&self, key: &str, plain: &Bytes) -> Result<Bytes, String> {
        self.with_chain(|chain| {
            let Some(chain) = chain else {
                return Ok(plain.clone());
            };
            let sealed = chain.seal(key, plain);
            self.count(Operation::ToStorage, chain.written_prefix(), sealed.is_ok());
            match sealed {
                Ok(Some(sealed)) => Ok(sealed.into()),
                Ok(None) => Ok(plain.clone()),
                Err(why) => {
                    tracing::error!(key, why, "failed to encrypt a value");
                    Err(why.to_owned())
                }
            }
        })
    }

    fn decrypt<'s>(&self, key: &str, stored: &'s [u8]) -> Result<PlainValue<'s>, String> {
        self.with_chain(|chain| {
            let Some(chain) = chain else {
                if stored.starts_with(ENCRYPTED_PREFIX) {
                    return Err(ENCRYPTED_DATA.to_owned());
                }
                return Ok(PlainValue {
                    bytes: stored.into(),
                    is_stale: false,
                });
            };
            match chain.open(key, stored) {
                Ok((value, prefix)) => {
                    self.count(Operation::FromStorage, prefix, true);
                    Ok(value)
                }
                Err(error) => {
                    self.count(Operation::FromStorage, error.prefix, false);
                    tracing::error!(key, why = error.why, "failed to decrypt a stored value");
                    Err(error.why)
                }
            }
        })
    }

    fn is_identity(&self) -> bool {
        self.with_chain(|chain| chain.is_none_or(Chain::is_identity))
    }
}

#[cfg(test)]
mod tests;
