//! The serving certificate: the user's own, or one made at the first start and kept.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Config, ServerError, private_file};

/// What the listener serves with and what clients trust.
pub(super) struct Certificates {
    /// The TLS configuration: HTTP/2 and HTTP/1.1 by ALPN, no client certificates.
    pub(super) tls: Arc<ServerConfig>,
    /// What goes into the kubeconfig as `certificate-authority-data`, in PEM form.
    pub(super) authority_pem: String,
}

/// Loads the certificate that the configuration names, or the one of an earlier start, or makes one.
pub(super) fn load_or_make(config: &Config) -> Result<Certificates, ServerError> {
    if let Some(files) = &config.tls_files {
        return load(&files.certificate, &files.private_key);
    }
    private_file::make_dir(&config.cert_dir)?;
    let certificate = config.cert_dir.join("apiserver.crt");
    let private_key = config.cert_dir.join("apiserver.key");
    if !(certificate.exists() && private_key.exists()) {
        let made = make(config.bind_address).map_err(|error| bad(&certificate, &error))?;
        // The key first: a start that is cut off between the two finds no certificate and makes both anew.
        private_file::write(&private_key, &made.key_pem)?;
        private_file::write(&certificate, &made.chain_pem)?;
    }
    load(&certificate, &private_key)
}

fn load(certificate: &Path, private_key: &Path) -> Result<Certificates, ServerError> {
    let chain_pem = private_file::read(certificate)?
        .ok_or_else(|| bad(certificate, &"there is no such file"))?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain_pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| bad(certificate, &error))?;
    if chain.is_empty() {
        return Err(bad(
            certificate,
            &"there is no certificate in PEM form in it",
        ));
    }
    let key = PrivateKeyDer::from_pem_file(private_key).map_err(|error| {
        bad(
            private_key,
            &format!("no private key in PEM form can be read from it: {error}"),
        )
    })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(certificate, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| bad(certificate, &error))?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Certificates {
        tls: Arc::new(tls),
        authority_pem: chain_pem,
    })
}

fn bad(path: &Path, reason: &dyn std::fmt::Display) -> ServerError {
    ServerError::Certificate {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

struct Made {
    chain_pem: String,
    key_pem: String,
}

/// A certificate for this machine, signed by an authority whose key is thrown away: clients that insist on the
/// difference between an authority and a server accept it, and nobody can sign another with it.
fn make(bind_address: IpAddr) -> Result<Made, rcgen::Error> {
    let now = jiff::Timestamp::now();
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    // A day back for clocks that are behind. Ten years ahead: renewing is the business of whoever brings a certificate,
    // a development server should just go on.
    let start_of = |date: jiff::civil::Date| {
        rcgen::date_time_ymd(
            date.year().into(),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        )
    };
    let not_before = start_of(today.yesterday().unwrap_or(today));
    let not_after = start_of(today.saturating_add(jiff::Span::new().years(10)));
    let serial = now.as_second();

    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority
        .distinguished_name
        .push(DnType::CommonName, format!("apiloom-ca@{serial}"));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    (authority.not_before, authority.not_after) = (not_before, not_after);
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = rcgen::Issuer::new(authority, authority_key);

    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(Vec::new())?;
    server
        .distinguished_name
        .push(DnType::CommonName, format!("apiloom@{serial}"));
    server.subject_alt_names = vec![SanType::DnsName("localhost".try_into()?)];
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    if !bind_address.is_unspecified() && !addresses.contains(&bind_address) {
        addresses.push(bind_address);
    }
    server
        .subject_alt_names
        .extend(addresses.into_iter().map(SanType::IpAddress));
    server.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    (server.not_before, server.not_after) = (not_before, not_after);
    let certificate = server.signed_by(&key, &issuer)?;

    Ok(Made {
        chain_pem: format!("{}{}", certificate.pem(), authority_certificate.pem()),
        key_pem: key.serialize_pem(),
    })
}
