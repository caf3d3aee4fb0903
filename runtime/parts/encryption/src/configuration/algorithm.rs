//! The providers with keys: their names, the prefixes of their values, and their ciphers.

use crate::ciphers::{AesCbc, AesGcm, KeyCipher, SecretBox};

/// The algorithms of providers with keys.
#[derive(Clone, Copy)]
pub(super) enum Algorithm {
    AesCbc,
    AesGcm,
    SecretBox,
}

impl Algorithm {
    /// The name of the provider in a configuration.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AesCbc => "aescbc",
            Self::AesGcm => "aesgcm",
            Self::SecretBox => "secretbox",
        }
    }

    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::AesCbc => "k8s:enc:aescbc:v1:",
            Self::AesGcm => "k8s:enc:aesgcm:v1:",
            Self::SecretBox => "k8s:enc:secretbox:v1:",
        }
    }

    pub(super) fn no_key(self) -> &'static str {
        match self {
            Self::AesCbc | Self::AesGcm => {
                "no matching key was found for the provided AES transformer"
            }
            Self::SecretBox => "no matching key was found for the provided Secretbox transformer",
        }
    }

    /// Lengths that a key may have, in bytes.
    pub(super) fn key_lengths(self) -> &'static [usize] {
        match self {
            Self::AesCbc | Self::AesGcm => &[16, 24, 32],
            Self::SecretBox => &[32],
        }
    }

    pub(super) fn cipher(self, key: &[u8]) -> Option<Box<dyn KeyCipher>> {
        Some(match self {
            Self::AesCbc => Box::new(AesCbc::new(key)?),
            Self::AesGcm => Box::new(AesGcm::new(key)?),
            Self::SecretBox => Box::new(SecretBox::new(key)?),
        })
    }
}
