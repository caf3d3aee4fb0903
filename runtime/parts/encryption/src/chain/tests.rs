//! The order of providers and keys.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::ciphers::{AesGcm, SecretBox};

const PATH: &str = "/registry/secrets/default/s";
const GCM: &str = "k8s:enc:aesgcm:v1:";
const BOX: &str = "k8s:enc:secretbox:v1:";

/// A provider with keys of these names and first bytes.
fn gcm(keys: &[(&str, u8)]) -> Provider {
    provider(GCM, keys, |key| Box::new(AesGcm::new(&key).unwrap()))
}

fn secretbox(keys: &[(&str, u8)]) -> Provider {
    provider(BOX, keys, |key| Box::new(SecretBox::new(&key).unwrap()))
}

fn provider(
    prefix: &'static str,
    keys: &[(&str, u8)],
    cipher: impl Fn([u8; 32]) -> Box<dyn KeyCipher>,
) -> Provider {
    let keys = keys.iter().map(|(name, byte)| Key {
        prefix: format!("{name}:"),
        cipher: cipher([*byte; 32]),
    });
    Provider::Keys(KeyProvider {
        prefix,
        no_key: "no matching key",
        keys: keys.collect(),
    })
}

fn chain<const N: usize>(providers: [Provider; N]) -> Chain {
    Chain {
        providers: providers.into(),
    }
}

fn sealed(chain: &Chain) -> Vec<u8> {
    chain.seal(PATH, b"value").unwrap().unwrap()
}

/// Whether a value is read, and whether it is stale then.
fn read(chain: &Chain, stored: &[u8]) -> Result<bool, String> {
    let opened = chain.open(PATH, stored).map_err(|error| error.why);
    opened.map(|(value, _)| {
        assert_eq!(&*value.bytes, b"value");
        value.is_stale
    })
}

#[test]
fn the_first_key_of_the_first_provider_encrypts() {
    let chain = chain([gcm(&[("a", 1), ("b", 2)]), Provider::Identity]);
    let stored = sealed(&chain);
    assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:a:"), "{stored:?}");
    assert_eq!(read(&chain, &stored), Ok(false));
    assert!(!chain.is_identity());
    assert_eq!(chain.written_prefix(), GCM);
}

#[test]
fn values_of_other_keys_and_providers_are_read_and_stale() {
    let old = sealed(&chain([gcm(&[("a", 1)])]));
    let boxed = sealed(&chain([secretbox(&[("a", 1)])]));
    let rotated = chain([
        gcm(&[("b", 2), ("a", 1)]),
        secretbox(&[("a", 1)]),
        Provider::Identity,
    ]);
    assert_eq!(read(&rotated, &old), Ok(true), "of the second key");
    assert_eq!(read(&rotated, &boxed), Ok(true), "of the second provider");
    assert_eq!(read(&rotated, b"value"), Ok(true), "plain");
    assert_eq!(read(&rotated, &sealed(&rotated)), Ok(false));
    let apart = chain([gcm(&[("b", 2)]), gcm(&[("a", 1)])]);
    assert_eq!(read(&apart, &old), Ok(true), "of a provider of its kind");
}

#[test]
fn a_key_that_was_replaced_under_its_name_does_not_hide_the_earlier_one() {
    let old = sealed(&chain([gcm(&[("a", 1)])]));
    assert_eq!(read(&chain([gcm(&[("a", 2), ("a", 1)])]), &old), Ok(true));
    let apart = chain([gcm(&[("a", 2)]), gcm(&[("a", 1)])]);
    assert_eq!(read(&apart, &old), Ok(true));
    let neither = chain([gcm(&[("a", 2)]), gcm(&[("a", 3), ("b", 1)])]);
    let refused = Err("cipher: message authentication failed".to_owned());
    assert_eq!(
        read(&neither, &old),
        refused,
        "equal problems are said once"
    );
    let mixed = chain([gcm(&[("a", 2)]), gcm(&[("b", 1)])]);
    let both = "[cipher: message authentication failed, no matching key]";
    assert_eq!(read(&mixed, &old), Err(both.to_owned()));
}

#[test]
fn identity_refuses_encrypted_values_and_leaves_them_to_those_behind_it() {
    let old = sealed(&chain([gcm(&[("a", 1)])]));
    let identity = chain([Provider::Identity]);
    let refused = || Err("no matching prefix found".to_owned());
    assert!(identity.is_identity());
    assert_eq!(identity.seal(PATH, b"value"), Ok(None));
    assert_eq!(read(&identity, b"value"), Ok(false));
    assert_eq!(read(&identity, &old), refused());
    assert_eq!(read(&identity, b"k8s:enc:"), refused());
    let leaving = chain([Provider::Identity, gcm(&[("a", 1)])]);
    assert!(!leaving.is_identity());
    assert_eq!(leaving.seal(PATH, b"value"), Ok(None));
    assert_eq!(read(&leaving, b"value"), Ok(false));
    assert_eq!(read(&leaving, &old), Ok(true));
}

#[test]
fn values_without_a_provider_or_a_key_are_refused() {
    let chain = chain([gcm(&[("a", 1)])]);
    let refused = |stored: &[u8]| read(&chain, stored).unwrap_err();
    for stored in ["value", "", "k8s:enc:", "k8s:enc:kms:v2:a:"] {
        assert_eq!(refused(stored.as_bytes()), "no matching prefix found");
    }
    assert_eq!(refused(b"k8s:enc:aesgcm:v1:"), "no matching key");
    assert_eq!(refused(b"k8s:enc:aesgcm:v1:b:x"), "no matching key");
    let short = "the stored data was shorter than the required size";
    assert_eq!(refused(b"k8s:enc:aesgcm:v1:a:x"), short);
}
