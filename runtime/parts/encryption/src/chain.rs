//! The providers of a resource, in their order: the first one encrypts, and each decrypts the values with its prefix.
//!
//! A value is stale unless the first key of the first provider decrypts it. Of several providers and keys with the same prefix each is
//! tried, since keys of the same name may follow each other in a rotation. All of this is as in kube-apiserver.

use std::borrow::Cow;

use apiloom_registry::{ENCRYPTED_PREFIX, PlainValue};

use super::ciphers::KeyCipher;

/// Why a value cannot be decrypted that no provider has written.
const NO_PROVIDER: &str = "no matching prefix found";

/// One provider of a list.
pub(crate) enum Provider {
    /// Stores values as they are.
    Identity,
    /// Encrypts them.
    Keys(KeyProvider),
}

/// A provider that encrypts with keys.
pub(crate) struct KeyProvider {
    /// The first bytes of its values.
    pub(crate) prefix: &'static str,
    /// Why a value cannot be decrypted whose key it does not have.
    pub(crate) no_key: &'static str,
    /// Never empty; the first one encrypts.
    pub(crate) keys: Vec<Key>,
}

/// A key of a provider.
pub(crate) struct Key {
    /// Its name and a colon, which follow the prefix of the provider.
    pub(crate) prefix: String,
    pub(crate) cipher: Box<dyn KeyCipher>,
}

/// A decrypted value, and the prefix of the provider that has decrypted it.
type OpenedValue<'s> = (PlainValue<'s>, &'static str);

/// Why a value cannot be decrypted.
#[derive(Debug)]
pub(crate) struct OpenError {
    pub(crate) why: String,
    /// The prefix of the provider that it should be of.
    pub(crate) prefix: &'static str,
}

/// The name of the provider that stores values as they are, for metrics.
pub(crate) const IDENTITY: &str = "identity";

/// The name of the provider of values that none has written, for metrics.
const UNKNOWN: &str = "unknown";

/// The providers of a resource.
#[derive(Default)]
pub(crate) struct Chain {
    /// Never empty in a configuration.
    pub(crate) providers: Vec<Provider>,
}

impl Chain {
    /// Whether values are only stored as they are.
    pub(crate) fn is_identity(&self) -> bool {
        let mut providers = self.providers.iter();
        providers.all(|provider| matches!(provider, Provider::Identity))
    }

    /// The prefix of the provider that encrypts.
    pub(crate) fn written_prefix(&self) -> &'static str {
        match self.providers.first() {
            Some(Provider::Keys(provider)) => provider.prefix,
            Some(Provider::Identity) | None => IDENTITY,
        }
    }

    /// The value encrypted for the store; `None` if it is stored as it is.
    ///
    /// # Errors
    /// See [`KeyCipher::seal`].
    pub(crate) fn seal(&self, path: &str, plain: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
        let Some(Provider::Keys(provider)) = self.providers.first() else {
            return Ok(None);
        };
        let Some(key) = provider.keys.first() else {
            return Ok(None);
        };
        let head = provider.prefix.len() + key.prefix.len();
        let mut sealed = Vec::with_capacity(head + plain.len() + MAX_OVERHEAD);
        sealed.extend_from_slice(provider.prefix.as_bytes());
        sealed.extend_from_slice(key.prefix.as_bytes());
        key.cipher.seal(path, plain, &mut sealed)?;
        Ok(Some(sealed))
    }

    /// The value of stored bytes.
    ///
    /// # Errors
    /// Why no provider can decrypt them.
    pub(crate) fn open<'s>(
        &self,
        path: &str,
        stored: &'s [u8],
    ) -> Result<OpenedValue<'s>, OpenError> {
        let (mut problems, mut prefix) = (Vec::new(), UNKNOWN);
        for (index, provider) in self.providers.iter().enumerate() {
            match provider {
                // It leaves encrypted values to the providers behind it.
                Provider::Identity if stored.starts_with(ENCRYPTED_PREFIX) => {}
                Provider::Identity => {
                    let value = PlainValue {
                        bytes: Cow::Borrowed(stored),
                        is_stale: index > 0,
                    };
                    return Ok((value, IDENTITY));
                }
                Provider::Keys(provider) => {
                    let Some(sealed) = stored.strip_prefix(provider.prefix.as_bytes()) else {
                        continue;
                    };
                    match provider.open(path, sealed) {
                        Ok((plain, key)) => {
                            let value = PlainValue {
                                bytes: Cow::Owned(plain),
                                is_stale: index > 0 || key > 0,
                            };
                            return Ok((value, provider.prefix));
                        }
                        Err(problem) => {
                            problems.push(problem);
                            prefix = provider.prefix;
                        }
                    }
                }
            }
        }
        let why = joined(problems).unwrap_or_else(|| NO_PROVIDER.to_owned());
        Err(OpenError { why, prefix })
    }
}

/// Most bytes by which a cipher lengthens a value: the nonce and the tag of a secretbox.
const MAX_OVERHEAD: usize = 40;

impl KeyProvider {
    /// The value of the bytes behind the prefix, and the index of the key that has decrypted it.
    fn open(&self, path: &str, sealed: &[u8]) -> Result<(Vec<u8>, usize), String> {
        let mut problems = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            let Some(sealed) = sealed.strip_prefix(key.prefix.as_bytes()) else {
                continue;
            };
            match key.cipher.open(path, sealed) {
                Ok(plain) => return Ok((plain, index)),
                Err(problem) => problems.push(problem.to_owned()),
            }
        }
        Err(joined(problems).unwrap_or_else(|| self.no_key.to_owned()))
    }
}

/// Several problems as one text: a single one plain, several in brackets, equal ones only once; `None` if there are none.
fn joined(mut problems: Vec<String>) -> Option<String> {
    problems.dedup();
    if problems.len() > 1 {
        return Some(format!("[{}]", problems.join(", ")));
    }
    problems.pop()
}

#[cfg(test)]
mod tests;
