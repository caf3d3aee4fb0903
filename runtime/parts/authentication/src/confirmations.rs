//! What credentials have been confirmed, by their digests: the credentials themselves are not kept.

use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use parking_lot::Mutex;

/// How many are known, whose check need not be repeated: a signature takes from ten to some hundred microseconds.
pub(crate) const MAX_KNOWN: usize = 1024;

/// A digest of credentials.
pub(crate) type Hash = [u8; SHA256_OUTPUT_LEN];

/// The digest of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    finish(context)
}

/// The digest of what a context was given.
pub(crate) fn finish(context: Context) -> Hash {
    let mut hash = [0; SHA256_OUTPUT_LEN];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Values by the digests of their credentials.
pub(crate) struct Confirmations<V> {
    known: Mutex<HashMap<Hash, V>>,
}

impl<V> Default for Confirmations<V> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
        }
    }
}

impl<V: Clone> Confirmations<V> {
    /// What is known of credentials.
    pub(crate) fn get(&self, hash: &Hash) -> Option<V> {
        self.known.lock().get(hash).cloned()
    }

    /// Keeps what is known. All others are forgotten when there are too many.
    pub(crate) fn insert(&self, hash: Hash, value: V) {
        let mut all = self.known.lock();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(hash, value);
    }

    /// How many are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.lock().len()
    }
}
