//! Users with client certificates, as administrators of clusters make them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempPath};

/// An authority that signs certificates of clients.
pub struct ClientAuthority {
    /// Its own certificate.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl ClientAuthority {
    /// A new one.
    #[allow(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self {
            pem: params.self_signed(&key).unwrap().pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// The certificate of a user in a group.
    pub fn client(&self, user: &str, group: &str) -> ClientCertificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        ClientCertificate {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A certificate of a client with its key, both as PEM.
pub struct ClientCertificate {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl ClientCertificate {
    /// A copy of a kubeconfig whose user has this certificate and nothing else.
    pub fn kubeconfig(&self, original: &Path) -> TempPath {
        let text = std::fs::read_to_string(original).unwrap();
        let mut config: Value = serde_saphyr::from_str(&text).unwrap();
        config["users"][0]["user"] = json!({
            "client-certificate-data": STANDARD.encode(&self.certificate),
            "client-key-data": STANDARD.encode(&self.key),
        });
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), config.to_string()).unwrap();
        file.into_temp_path()
    }
}
