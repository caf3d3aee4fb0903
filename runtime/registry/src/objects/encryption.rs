//! Encryption of stored values: the traits that a part implements, and what kinds have without one.
//!
//! A value is encrypted after an object is encoded and decrypted before it is decoded; the watch cache and all other code have plain
//! values. Invariant: a write is compared with the plain value, since the same object is encrypted to other bytes each time.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use apiloom_meta::GroupResource;
use bytes::Bytes;

/// The first bytes of every encrypted value, as in kube-apiserver. No plain value begins with them: JSON begins with a brace, and
/// Protobuf has a NUL behind the first three bytes.
pub const ENCRYPTED_PREFIX: &[u8] = b"k8s:enc:";

/// Why the plain values of a kind cannot be read from encrypted bytes; the text is that of kube-apiserver.
pub const ENCRYPTED_DATA: &str = "identity transformer tried to read encrypted data";

/// Encrypts the stored values of resources. Given to a registry by [`RegistryBuilder::encryption`](crate::RegistryBuilder::encryption).
pub trait Encryption: Send + Sync + fmt::Debug + 'static {
    /// The cipher of a resource, which is that of its hub. Asked once for each kind, when it is built; what the cipher does may change
    /// later.
    fn cipher(&self, resource: &GroupResource) -> Arc<dyn ValueCipher>;
}

/// Encrypts and decrypts the stored values of one resource. Called for every write, and for every read that the watch cache does not
/// answer; must not block.
pub trait ValueCipher: Send + Sync + fmt::Debug + 'static {
    /// The bytes to store under a key.
    ///
    /// # Errors
    /// Why it is not possible; the text is shown to clients and logged, so it must not contain the value or a secret.
    fn encrypt(&self, key: &str, plain: &Bytes) -> Result<Bytes, String>;

    /// The plain value of the bytes that are stored under a key.
    ///
    /// # Errors
    /// If they were changed or moved, or no key fits; the text as for [`ValueCipher::encrypt`].
    fn decrypt<'s>(&self, key: &str, stored: &'s [u8]) -> Result<PlainValue<'s>, String>;

    /// Whether no value is encrypted now, neither of those that are written nor of those that can be read.
    fn is_identity(&self) -> bool;
}

/// A stored value as it was before it was encrypted.
pub struct PlainValue<'s> {
    /// The plain value; borrowed if it is stored as it is.
    pub bytes: Cow<'s, [u8]>,
    /// Whether a write would encrypt it with another key or in another way, so that an update without a change stores it again.
    pub is_stale: bool,
}

/// Without the bytes, which may be secret.
impl fmt::Debug for PlainValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainValue")
            .field("bytes", &self.bytes.len())
            .field("is_stale", &self.is_stale)
            .finish()
    }
}

/// Stores values as they are, and refuses to read encrypted ones.
#[derive(Debug)]
pub(crate) struct IdentityCipher;

impl ValueCipher for IdentityCipher {
    fn encrypt(&self, _: &str, plain: &Bytes) -> Result<Bytes, String> {
        Ok(plain.clone())
    }

    fn decrypt<'s>(&self, _: &str, stored: &'s [u8]) -> Result<PlainValue<'s>, String> {
        if stored.starts_with(ENCRYPTED_PREFIX) {
            return Err(ENCRYPTED_DATA.to_owned());
        }
        Ok(PlainValue {
            bytes: Cow::Borrowed(stored),
            is_stale: false,
        })
    }

    fn is_identity(&self) -> bool {
        true
    }
}
