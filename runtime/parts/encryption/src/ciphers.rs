//! The ciphers of single keys: AES in CBC and GCM, and XSalsa20 with Poly1305. The bytes are those of kube-apiserver: a random nonce, and
//! the encrypted value behind it.
//!
//! Invariant: the cryptography is that of aws-lc-rs and crypto_secretbox; errors tell nothing about keys and values.

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rand;
use crypto_secretbox::aead::AeadInPlace as _;
use crypto_secretbox::{KeyInit as _, XSalsa20Poly1305};

/// Length of the nonce of AES-GCM, in bytes.
const GCM_NONCE: usize = 12;

/// Length of the nonce of a secretbox, in bytes.
const BOX_NONCE: usize = 24;

/// Length of the tag of both, in bytes.
const TAG: usize = 16;

/// Length of a block of AES, and so of its initialization vector, in bytes.
const BLOCK: usize = 16;

const SHORT: &str = "the stored data was shorter than the required size";
const CHANGED: &str = "cipher: message authentication failed";
const NO_RANDOM: &str = "unable to read sufficient random bytes";
const NOT_ENCRYPTED: &str = "the cipher failed";

/// Encrypts and decrypts with one key. `path` is the key in the store of a value.
pub(crate) trait KeyCipher: Send + Sync + 'static {
    /// Appends the encrypted value to `sealed`.
    ///
    /// # Errors
    /// If the operating system's random source fails.
    fn seal(&self, path: &str, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), &'static str>;

    /// The value of encrypted bytes.
    ///
    /// # Errors
    /// If they are of another key, or were changed.
    fn open(&self, path: &str, sealed: &[u8]) -> Result<Vec<u8>, &'static str>;
}

/// AES-CBC with PKCS#7: the provider `aescbc`. It does not notice changes of the bytes, other than those that break the padding.
pub(crate) struct AesCbc {
    encrypting: PaddedBlockEncryptingKey,
    decrypting: PaddedBlockDecryptingKey,
}

impl AesCbc {
    /// The cipher of a key of 16, 24 or 32 bytes; `None` for another length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return None,
        };
        let key = || UnboundCipherKey::new(algorithm, key).ok();
        Some(Self {
            encrypting: PaddedBlockEncryptingKey::cbc_pkcs7(key()?).ok()?,
            decrypting: PaddedBlockDecryptingKey::cbc_pkcs7(key()?).ok()?,
        })
    }
}

impl KeyCipher for AesCbc {
    fn seal(&self, _: &str, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), &'static str> {
        let mut vector = [0; BLOCK];
        rand::fill(&mut vector).map_err(|_| NO_RANDOM)?;
        let context = EncryptionContext::Iv128(FixedLength::from(&vector));
        let mut padded = Vec::with_capacity(plain.len() + BLOCK);
        padded.extend_from_slice(plain);
        let encrypted = self.encrypting.less_safe_encrypt(&mut padded, context);
        encrypted.map_err(|_| NOT_ENCRYPTED)?;
        sealed.extend_from_slice(&vector);
        sealed.append(&mut padded);
        Ok(())
    }

    fn open(&self, _: &str, sealed: &[u8]) -> Result<Vec<u8>, &'static str> {
        let (vector, encrypted) = sealed.split_first_chunk::<BLOCK>().ok_or(SHORT)?;
        if !encrypted.len().is_multiple_of(BLOCK) {
            return Err("the stored data is not a multiple of the block size");
        }
        let context = DecryptionContext::Iv128(FixedLength::from(vector));
        let mut plain = encrypted.to_vec();
        let decrypted = self.decrypting.decrypt(&mut plain, context);
        let len = decrypted.map_err(|_| "invalid padding on input")?.len();
        plain.truncate(len);
        Ok(plain)
    }
}

/// AES-GCM: the provider `aesgcm`. A value is bound to its key in the store. With random nonces, a key should encrypt no more than 2^32
/// values.
pub(crate) struct AesGcm(LessSafeKey);

impl AesGcm {
    /// The cipher of a key of 16, 24 or 32 bytes; `None` for another length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            _ => return None,
        };
        let key = UnboundKey::new(algorithm, key).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }
}

impl KeyCipher for AesGcm {
    fn seal(&self, path: &str, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), &'static str> {
        let mut nonce = [0; GCM_NONCE];
        rand::fill(&mut nonce).map_err(|_| NO_RANDOM)?;
        sealed.extend_from_slice(&nonce);
        let begin = sealed.len();
        sealed.extend_from_slice(plain);
        let tag = self.0.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(path.as_bytes()),
            &mut sealed[begin..],
        );
        sealed.extend_from_slice(tag.map_err(|_| NOT_ENCRYPTED)?.as_ref());
        Ok(())
    }

    fn open(&self, path: &str, sealed: &[u8]) -> Result<Vec<u8>, &'static str> {
        let (nonce, encrypted) = sealed.split_first_chunk::<GCM_NONCE>().ok_or(SHORT)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut plain = encrypted.to_vec();
        let opened = self
            .0
            .open_in_place(nonce, Aad::from(path.as_bytes()), &mut plain);
        let len = opened.map_err(|_| CHANGED)?.len();
        plain.truncate(len);
        Ok(plain)
    }
}

/// XSalsa20 with Poly1305, as NaCl: the provider `secretbox`. A value is not bound to its key in the store.
pub(crate) struct SecretBox(XSalsa20Poly1305);

impl SecretBox {
    /// The cipher of a key of 32 bytes; `None` for another length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        XSalsa20Poly1305::new_from_slice(key).ok().map(Self)
    }
}

impl KeyCipher for SecretBox {
    fn seal(&self, _: &str, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), &'static str> {
        let mut nonce = [0; BOX_NONCE];
        rand::fill(&mut nonce).map_err(|_| NO_RANDOM)?;
        sealed.extend_from_slice(&nonce);
        let tag_at = sealed.len();
        sealed.extend_from_slice(&[0; TAG]);
        let begin = sealed.len();
        sealed.extend_from_slice(plain);
        let sealing = &mut sealed[begin..];
        let tag = self
            .0
            .encrypt_in_place_detached(&nonce.into(), b"", sealing);
        let tag = tag.map_err(|_| NOT_ENCRYPTED)?;
        sealed[tag_at..begin].copy_from_slice(&tag);
        Ok(())
    }

    fn open(&self, _: &str, sealed: &[u8]) -> Result<Vec<u8>, &'static str> {
        let (nonce, sealed) = sealed.split_first_chunk::<BOX_NONCE>().ok_or(SHORT)?;
        let (tag, encrypted) = sealed.split_first_chunk::<TAG>().ok_or(SHORT)?;
        let mut plain = encrypted.to_vec();
        let opened = self
            .0
            .decrypt_in_place_detached(nonce.into(), b"", &mut plain, tag.into());
        opened.map_err(|_| CHANGED)?;
        Ok(plain)
    }
}

#[cfg(test)]
mod tests;
