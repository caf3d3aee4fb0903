//! The keys of tokens: PEM files as those of kube-apiserver, with keys of RSA, P-256 and P-384, and the public ones also in certificates.

use std::fmt;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use serde::Serialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::{Any, OctetString, Sequence};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as ParsedKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// What is said of a key of another kind.
const UNKNOWN_KEY: &str = "a key is none of RSA, P-256 or P-384";

/// A key by which tokens are checked.
pub(super) struct PublicKey {
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
    pub(super) published: PublishedKey,
}

/// A key as it is published for others that check tokens: a JSON Web Key (RFC 7517), in the order of fields of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PublishedKey {
    r#use: &'static str,
    kty: &'static str,
    /// The digest of the key, by which tokens name it.
    pub(super) kid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    pub(super) alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey")
            .field(&self.published.kid)
            .finish()
    }
}

/// A key that signs tokens, with its public half.
pub(super) struct SigningKey {
    pub(super) key: EncodingKey,
    pub(super) public: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public).finish()
    }
}

impl SigningKey {
    /// The first private key of a file.
    ///
    /// # Errors
    /// A file that cannot be read, or that has no such key.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mut keys = sections(path)?
            .into_iter()
            .filter_map(|(kind, der)| private_key(kind, &der));
        let key = keys.next();
        let key = key.unwrap_or_else(|| Err("it has no private key".to_owned()));
        key.map_err(|why| format!("the signing key of service accounts {shown}: {why}"))
    }
}

impl PublicKey {
    /// The keys of a file, of which private ones have their public half.
    ///
    /// # Errors
    /// A file that cannot be read, a key of another kind, and a file without keys.
    pub(super) fn read(path: &Path) -> Result<Vec<Self>, String> {
        let named = |why: String| format!("the keys of service accounts {}: {why}", path.display());
        let mut keys = Vec::new();
        for (kind, der) in sections(path)? {
            let read = match kind {
                SectionKind::PublicKey => Some(Self::from_der(&der)),
                SectionKind::Certificate => Some(of_certificate(&der)),
                _ => private_key(kind, &der).map(|key| key.map(|key| key.public)),
            };
            keys.extend(read.transpose().map_err(named)?);
        }
        if keys.is_empty() {
            return Err(named("it has no key".to_owned()));
        }
        Ok(keys)
    }

    /// A key in the form of X.509.
    fn from_der(der: &[u8]) -> Result<Self, String> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|error| error.to_string())?;
        let encoded = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
        let kid = URL_SAFE_NO_PAD.encode(digest(&SHA256, info.raw));
        let (algorithm, key, published) = match info.parsed().map_err(|error| error.to_string())? {
            ParsedKey::RSA(key) => {
                let (n, e) = (unsigned(key.modulus), unsigned(key.exponent));
                let published = PublishedKey {
                    n: encoded(n),
                    e: encoded(e),
                    ..PublishedKey::new("RSA", "RS256", kid)
                };
                let key = DecodingKey::from_rsa_raw_components(n, e);
                (Algorithm::RS256, key, published)
            }
            ParsedKey::EC(point) => {
                let coordinates = point.data().strip_prefix(&[4]).unwrap_or_default();
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                let (algorithm, alg, crv) = match x.len() {
                    32 => (Algorithm::ES256, "ES256", "P-256"),
                    48 => (Algorithm::ES384, "ES384", "P-384"),
                    _ => return Err(UNKNOWN_KEY.to_owned()),
                };
                let published = PublishedKey {
                    crv: Some(crv),
                    x: encoded(x),
                    y: encoded(y),
                    ..PublishedKey::new("EC", alg, kid)
                };
                (algorithm, DecodingKey::from_ec_der(point.data()), published)
            }
            _ => return Err(UNKNOWN_KEY.to_owned()),
        };
        Ok(Self {
            algorithm,
            key,
            published,
        })
    }
}

impl PublishedKey {
    fn new(kty: &'static str, alg: &'static str, kid: String) -> Self {
        Self {
            r#use: "sig",
            kty,
            kid,
            crv: None,
            alg,
            x: None,
            y: None,
            n: None,
            e: None,
        }
    }
}

/// The sections of a PEM file.
fn sections(path: &Path) -> Result<Vec<(SectionKind, Vec<u8>)>, String> {
    let shown = path.display();
    let text = std::fs::read(path)
        .map_err(|error| format!("cannot read the keys of service accounts {shown}: {error}"))?;
    let sections: Result<Vec<_>, _> = <(SectionKind, Vec<u8>)>::pem_slice_iter(&text).collect();
    sections.map_err(|error| format!("the keys of service accounts {shown}: {error}"))
}

/// The private key of a section; `None` if it has none.
fn private_key(kind: SectionKind, der: &[u8]) -> Option<Result<SigningKey, String>> {
    let (rsa, ec) = match kind {
        SectionKind::RsaPrivateKey => (Some(der), None),
        SectionKind::EcPrivateKey => (None, Some(der)),
        SectionKind::PrivateKey => (rsa_key(der), Some(der)),
        _ => return None,
    };
    Some(
        signing_key(rsa, ec)
            .ok_or_else(|| UNKNOWN_KEY.to_owned())
            .flatten(),
    )
}

/// The key of RSA or of an elliptic curve.
fn signing_key(rsa: Option<&[u8]>, ec: Option<&[u8]>) -> Option<Result<SigningKey, String>> {
    if let Some((der, pair)) = rsa.and_then(|der| Some((der, RsaKeyPair::from_der(der).ok()?))) {
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
        let public = PublicKey::from_der(public.as_ref());
        let key = EncodingKey::from_rsa_der(der);
        return Some(public.map(|public| SigningKey { key, public }));
    }
    let curves = [
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        &ECDSA_P384_SHA384_FIXED_SIGNING,
    ];
    let mut pairs = curves
        .into_iter()
        .filter_map(|curve| EcdsaKeyPair::from_private_key_der(curve, ec?).ok());
    let pair = pairs.next()?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
    let public = PublicKey::from_der(public.as_ref());
    let pkcs8 = pair.to_pkcs8v1().ok()?;
    let key = EncodingKey::from_ec_der(pkcs8.as_ref());
    Some(public.map(|public| SigningKey { key, public }))
}

/// The key of RSA within the form PKCS#8 (RFC 5958): a version, the algorithm, and the key as bytes.
fn rsa_key(pkcs8: &[u8]) -> Option<&[u8]> {
    let (_, sequence) = Sequence::from_der(pkcs8).ok()?;
    let inner: &[u8] = match sequence.content {
        std::borrow::Cow::Borrowed(inner) => inner,
        std::borrow::Cow::Owned(_) => return None,
    };
    let (rest, _version) = Any::from_der(inner).ok()?;
    let (rest, _algorithm) = Any::from_der(rest).ok()?;
    let (_, key) = Any::from_der(rest).ok()?;
    OctetString::try_from(key.clone()).ok()?;
    Some(key.data)
}

/// The key of a certificate.
fn of_certificate(der: &[u8]) -> Result<PublicKey, String> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
    PublicKey::from_der(certificate.public_key().raw)
}

/// A number without the zeros before it, which DER has to say that it is not negative.
fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A key that openssl has made.
    fn file(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/service_accounts/test_keys");
        folder.join(name)
    }

    /// The digests as openssl has them.
    const RSA: &str = "NvNoa1ikox7TvJ_7KPCZE_4MRS3pTo_GSfOznIjuQbw";
    const P256: &str = "Fwt0DeC2xb5yXTGbQTe-jO7pYCR-HKjDgOiTbAjoNAw";
    const P384: &str = "tHverG1Bq-KILs2gal1H7lzFZfk9ngxKoaO_gY86XlA";

    #[test]
    fn private_keys_sign_in_each_form() {
        for (name, kid, algorithm) in [
            ("rsa-pkcs1.pem", RSA, Algorithm::RS256),
            ("rsa-pkcs8.pem", RSA, Algorithm::RS256),
            ("p256-sec1.pem", P256, Algorithm::ES256),
            ("p256-pkcs8.pem", P256, Algorithm::ES256),
            ("p384-sec1.pem", P384, Algorithm::ES384),
        ] {
            let read = SigningKey::read(&file(name)).unwrap();
            assert_eq!(read.public.published.kid, kid, "{name}");
            assert_eq!(read.public.algorithm, algorithm, "{name}");
            let signature = jsonwebtoken::crypto::sign(b"text", &read.key, algorithm).unwrap();
            let verify = |key: &PublicKey, text: &[u8]| {
                jsonwebtoken::crypto::verify(&signature, text, &key.key, algorithm).unwrap()
            };
            assert!(verify(&read.public, b"text"), "{name}");
            assert!(!verify(&read.public, b"texd"), "{name}");
            let [public] = &PublicKey::read(&file(name)).unwrap()[..] else {
                panic!("{name} has one key");
            };
            assert!(verify(public, b"text"), "{name}");
            let shown = format!("{read:?}");
            assert!(shown.len() < 100 && shown.contains(kid), "{shown}");
        }
    }

    #[test]
    fn public_keys_stand_alone_and_in_certificates() {
        for (name, kid) in [("rsa-pkcs1.pub", RSA), ("p384-certificate.pem", P384)] {
            let keys = PublicKey::read(&file(name)).unwrap();
            let kids: Vec<_> = keys.iter().map(|key| &*key.published.kid).collect();
            assert_eq!(kids, [kid], "{name}");
        }
        let published = &PublicKey::read(&file("rsa-pkcs1.pub")).unwrap()[0].published;
        let text = serde_json::to_string(published).unwrap();
        let begin = format!(r#"{{"use":"sig","kty":"RSA","kid":"{RSA}","alg":"RS256","n":"oLvOyr"#);
        assert!(text.starts_with(&begin), "{text}");
        assert!(text.ends_with(r#","e":"AQAB"}"#), "{text}");
        let published = &PublicKey::read(&file("p256-sec1.pem")).unwrap()[0].published;
        let text = serde_json::to_string(published).unwrap();
        let begin =
            format!(r#"{{"use":"sig","kty":"EC","kid":"{P256}","crv":"P-256","alg":"ES256","x":""#);
        assert!(text.starts_with(&begin), "{text}");
    }

    #[test]
    fn other_keys_are_refused_with_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let refused = |path: &Path, expected: &str| {
            let error = SigningKey::read(path).unwrap_err();
            assert!(error.contains(&*path.to_string_lossy()), "{error}");
            assert!(error.ends_with(expected), "{error}");
        };
        refused(&file("p521-sec1.pem"), UNKNOWN_KEY);
        refused(&file("ed25519.pem"), UNKNOWN_KEY);
        refused(&file("rsa-pkcs1.pub"), "it has no private key");
        refused(&written("empty.pem", ""), "it has no private key");
        let cut = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n";
        refused(&written("cut.pem", cut), UNKNOWN_KEY);
        refused(
            Path::new("/none/key.pem"),
            "No such file or directory (os error 2)",
        );
        let error = PublicKey::read(&written("none.pem", "text")).unwrap_err();
        assert!(error.ends_with("none.pem: it has no key"), "{error}");
        assert!(PublicKey::read(&file("p521-sec1.pem")).is_err());
    }
}
