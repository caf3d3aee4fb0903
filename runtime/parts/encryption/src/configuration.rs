//! The file of `--encryption-provider-config`: an EncryptionConfiguration of apiserver.config.k8s.io/v1, read strictly and checked with the
//! texts of kube-apiserver.
//!
//! Invariant: no error and no `Debug` has a secret or any other text of the file that may be one.

mod algorithm;
mod check;
mod document;

use std::path::Path;

use apiloom_meta::GroupResource;
use apiloom_meta::codec::{Decoder, Format};
use apiloom_meta::field::aggregate;
use zeroize::Zeroizing;

use self::algorithm::Algorithm;
use self::document::{Document, Entry, KeyDocument, ProviderDocument};
use super::chain::{Chain, Key, KeyProvider, Provider};

/// The type of a configuration, and the one under which an early documentation had it.
const TYPES: [(&str, &str); 2] = [
    ("apiserver.config.k8s.io/v1", "EncryptionConfiguration"),
    ("v1", "EncryptionConfig"),
];

/// Maximum size of the file, in bytes: some thousand keys.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The file and its entries.
pub(crate) struct Configuration {
    entries: Vec<Entry>,
}

impl Configuration {
    /// The bytes of a file.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, or is larger than 4 MiB.
    pub(crate) fn read_bytes(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
        let read = || {
            let len = std::fs::metadata(path)?.len();
            if len > MAX_BYTES {
                return Ok(Err(format!("it is larger than {MAX_BYTES} bytes")));
            }
            std::fs::read(path).map(|bytes| Ok(Zeroizing::new(bytes)))
        };
        let bytes = read().map_err(|error: std::io::Error| error.to_string())??;
        if bytes.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(bytes)
    }

    /// Parses a configuration in YAML or JSON and checks it.
    ///
    /// # Errors
    /// All that is wrong with it: unknown fields and wrong types, else what kube-apiserver refuses.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let decoded = Decoder::new(Format::Yaml).decode(bytes);
        let decoded = decoded.map_err(|error| not_yaml(&error.to_string()))?;
        let mut document = Document::new(decoded.strict);
        let (read_type, entries) = document.configuration(&decoded.value);
        if !TYPES.contains(&(&*read_type.0, &*read_type.1)) {
            let (api_version, kind) = TYPES[0];
            return Err(format!(
                "it is of another type; it must have apiVersion: {api_version} and kind: {kind}"
            ));
        }
        document.finish()?;
        let configuration = Self { entries };
        let errors = check::check(&configuration.entries);
        if !errors.is_empty() {
            return Err(aggregate(&errors));
        }
        match check::masked_resource(&configuration.entries) {
            Some(problem) => Err(problem),
            None => Ok(configuration),
        }
    }

    /// The resources with their providers, in order. A resource that is in several entries has the providers of all, in their order.
    ///
    /// # Errors
    /// A key that cannot be used, which the check has found before.
    pub(crate) fn chains(&self) -> Result<Vec<(GroupResource, Chain)>, String> {
        let mut chains: Vec<(GroupResource, Chain)> = Vec::new();
        for entry in &self.entries {
            for resource in entry.group_resources() {
                let found = chains.iter().position(|(known, _)| *known == resource);
                let index = found.unwrap_or_else(|| {
                    chains.push((resource, Chain::default()));
                    chains.len() - 1
                });
                for provider in &entry.providers {
                    chains[index].1.providers.push(provider.provider()?);
                }
            }
        }
        Ok(chains)
    }
}

impl ProviderDocument {
    fn provider(&self) -> Result<Provider, String> {
        let Some((algorithm, keys)) = self.lists().next() else {
            return Ok(Provider::Identity);
        };
        let keys = keys.iter().map(|key| key.usable(algorithm));
        Ok(Provider::Keys(KeyProvider {
            prefix: algorithm.prefix(),
            no_key: algorithm.no_key(),
            keys: keys.collect::<Result<_, _>>()?,
        }))
    }
}

impl KeyDocument {
    fn usable(&self, algorithm: Algorithm) -> Result<Key, String> {
        let unusable = || format!("the key {:?} cannot be used", self.name);
        let bytes = check::decoded(&self.secret).ok_or_else(unusable)?;
        Ok(Key {
            prefix: format!("{}:", self.name),
            cipher: algorithm.cipher(&bytes).ok_or_else(unusable)?,
        })
    }
}

/// The problem of a file that cannot be parsed: the line, and none of the text, which may have secrets.
fn not_yaml(error: &str) -> String {
    let digits = error.split_once("line ").map(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        &rest[..end.unwrap_or(rest.len())]
    });
    match digits {
        Some(line) if !line.is_empty() => format!("it is neither YAML nor JSON: line {line}"),
        _ => "it is neither YAML nor JSON".to_owned(),
    }
}

#[cfg(test)]
mod tests;
