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
use x509_parser::extensions::GeneralName;
use x509_parser::x509::X509Name;

use super::client_certificates::ClientCertificates;
use super::{Config, ServerError, kubeconfig, private_file};

/// The TLS configuration of the listener, and the authority for its clients.
pub(super) struct Certificates {
    /// The TLS configuration: HTTP/2 and HTTP/1.1 by ALPN, client certificates asked for but not required.
    pub(super) tls: Arc<ServerConfig>,
    /// `certificate-authority-data` for the kubeconfig, in PEM format.
    pub(super) authority_pem: String,
}

/// Loads the configured certificate, or that of an earlier start, or generates one.
///
/// A configured certificate is never changed; its problems are logged. A generated certificate is replaced when it has
/// expired or lacks a name that clients use; its key stays.
pub(super) fn load_or_make(config: &Config) -> Result<Certificates, ServerError> {
    if let Some(files) = &config.tls_files {
        let read = |path: &Path| {
            private_file::read(path)?.ok_or_else(|| bad(path, &"there is no such file"))
        };
        let (chain_pem, key_pem) = (read(&files.certificate)?, read(&files.private_key)?);
        let files = Files {
            certificate: &files.certificate,
            private_key: &files.private_key,
        };
        let loaded = files.load(chain_pem, &key_pem)?;
        files.warn_of(&loaded, config.bind_address);
        return Ok(loaded);
    }
    private_file::make_dir(&config.cert_dir)?;
    let certificate = config.cert_dir.join("apiserver.crt");
    let private_key = config.cert_dir.join("apiserver.key");
    let files = Files {
        certificate: &certificate,
        private_key: &private_key,
    };
    let chain_pem = private_file::read_own(&certificate)?;
    let key_pem = files.key(chain_pem.is_some())?;
    let needed = names(config.bind_address);
    if let Some(chain_pem) = chain_pem {
        let ours = Certificate::of_pem(&chain_pem).filter(|certificate| certificate.is_ours);
        let Some(why) = ours.and_then(|ours| ours.fault(&needed)) else {
            let loaded = files.load(chain_pem, &key_pem)?;
            files.warn_of(&loaded, config.bind_address);
            return Ok(loaded);
        };
        tracing::warn!(
            certificate = %certificate.display(),
            "the serving certificate {why}: generating a new one, whose authority is in admin.kubeconfig"
        );
    }
    let made = make(&key_pem, &needed, jiff::Timestamp::now());
    let chain_pem = made.map_err(|error| bad(&certificate, &error))?;
    private_file::write(&certificate, &chain_pem)?;
    files.load(chain_pem, &key_pem)
}

/// Paths of a certificate and its key.
struct Files<'a> {
    certificate: &'a Path,
    private_key: &'a Path,
}

impl Files<'_> {
    /// The private key; generates it if both files are missing. A key without a certificate, as an interrupted start
    /// leaves it, is used.
    fn key(&self, has_certificate: bool) -> Result<String, ServerError> {
        let present = || private_file::read_secret(self.private_key);
        if let Some(key_pem) = present()? {
            return Ok(key_pem);
        }
        if has_certificate {
            let reason = format!(
                "its private key {} is missing; bring that back, or remove the certificate so that both are made anew",
                self.private_key.display()
            );
            return Err(bad(self.certificate, &reason));
        }
        let key = KeyPair::generate().map_err(|error| bad(self.private_key, &error))?;
        let key_pem = key.serialize_pem();
        if private_file::write_new(self.private_key, &key_pem)? {
            return Ok(key_pem);
        }
        present()?.ok_or_else(|| bad(self.private_key, &"another process removes it"))
    }

    fn load(&self, chain_pem: String, key_pem: &str) -> Result<Certificates, ServerError> {
        let certificate = self.certificate;
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(chain_pem.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(|error| bad(certificate, &error))?;
        if chain.is_empty() {
            return Err(bad(
                certificate,
                &"there is no certificate in PEM form in it",
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|error| {
            bad(
                self.private_key,
                &format!("no private key in PEM form can be read from it: {error}"),
            )
        })?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients = ClientCertificates::new(&provider);
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(certificate, &error))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => bad(
                    certificate,
                    &format!(
                        "it is not for the private key {}",
                        self.private_key.display()
                    ),
                ),
                error => bad(certificate, &error),
            })?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Certificates {
            tls: Arc::new(tls),
            authority_pem: chain_pem,
        })
    }

    /// Logs a warning for a certificate that clients will not accept, or that expires soon. Of a configured
    /// certificate only the name that admin.kubeconfig uses is checked.
    fn warn_of(&self, loaded: &Certificates, bind_address: IpAddr) {
        let used = SanType::IpAddress(kubeconfig::reachable(bind_address));
        let certificate = Certificate::of_pem(&loaded.authority_pem);
        if let Some(why) = certificate.and_then(|certificate| certificate.fault(&[used])) {
            tracing::warn!(certificate = %self.certificate.display(), "the serving certificate {why}");
        }
    }
}

/// Remaining validity below which a generated certificate is replaced: 30 days, since the server may run for so long.
const RENEWAL_SECONDS: i64 = 30 * 24 * 3600;

/// Properties of a certificate that are checked before it is served.
struct Certificate {
    /// Whether it was generated by this server.
    is_ours: bool,
    not_before: i64,
    not_after: i64,
    /// Its DNS names and addresses.
    names: Vec<SanType>,
}

impl Certificate {
    /// Parses the first certificate of a chain; `None` if that fails, which loading the chain reports.
    fn of_pem(chain_pem: &str) -> Option<Self> {
        let der = CertificateDer::pem_slice_iter(chain_pem.as_bytes())
            .next()?
            .ok()?;
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
        let common_name = |name: &X509Name<'_>, prefix: &str| {
            name.iter_common_name()
                .any(|name| name.as_str().is_ok_and(|name| name.starts_with(prefix)))
        };
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map_or_else(Vec::new, |names| {
            let known = names
                .value
                .general_names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(SanType::DnsName((*name).try_into().ok()?)),
                    GeneralName::IPAddress(bytes) => address(bytes).map(SanType::IpAddress),
                    _ => None,
                });
            known.collect()
        });
        let validity = certificate.validity();
        Some(Self {
            is_ours: common_name(certificate.subject(), SERVER_NAME)
                && common_name(certificate.issuer(), AUTHORITY_NAME),
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
            names,
        })
    }

    /// Why clients that connect by one of these names would not accept it now.
    fn fault(&self, needed: &[SanType]) -> Option<String> {
        let now = jiff::Timestamp::now().as_second();
        let date = |seconds| jiff::Timestamp::from_second(seconds).unwrap_or_default();
        if now > self.not_after {
            return Some(format!("has expired at {}", date(self.not_after)));
        }
        if now + RENEWAL_SECONDS > self.not_after {
            return Some(format!("expires at {}", date(self.not_after)));
        }
        if now < self.not_before {
            return Some(format!("is not valid before {}", date(self.not_before)));
        }
        let missing = needed.iter().find(|name| !self.names.contains(name))?;
        let missing = match missing {
            SanType::IpAddress(address) => address.to_string(),
            SanType::DnsName(name) => name.to_string(),
            other => format!("{other:?}"),
        };
        Some(format!("is not for {missing}"))
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

fn bad(path: &Path, reason: &dyn std::fmt::Display) -> ServerError {
    ServerError::Certificate {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Common name of generated certificates, before a suffix.
const SERVER_NAME: &str = "apiloom@";
/// Common name of their authorities, before a suffix.
const AUTHORITY_NAME: &str = "apiloom-ca@";

/// The names and addresses by which clients connect to a server bound to this address.
fn names(bind_address: IpAddr) -> Vec<SanType> {
    let localhost = "localhost".try_into().map(SanType::DnsName);
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    if !bind_address.is_unspecified() && !addresses.contains(&bind_address) {
        addresses.push(bind_address);
    }
    let addresses = addresses.into_iter().map(SanType::IpAddress);
    localhost.into_iter().chain(addresses).collect()
}

/// Generates a certificate for these names and this key. It is signed by an authority whose key is discarded, because
/// some clients do not accept a self-signed server certificate as its own authority; and it cannot sign others.
fn make(key_pem: &str, names: &[SanType], now: jiff::Timestamp) -> Result<String, rcgen::Error> {
    let key = KeyPair::from_pem(key_pem)?;
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    // Valid from yesterday, for clocks that are behind, and for ten years, for a server that is never restarted; every
    // start after that generates a new one.
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
        .push(DnType::CommonName, format!("{AUTHORITY_NAME}{serial}"));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    (authority.not_before, authority.not_after) = (not_before, not_after);
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = rcgen::Issuer::new(authority, authority_key);

    let mut server = CertificateParams::new(Vec::new())?;
    server
        .distinguished_name
        .push(DnType::CommonName, format!("{SERVER_NAME}{serial}"));
    server.subject_alt_names = names.to_vec();
    server.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    (server.not_before, server.not_after) = (not_before, not_after);
    let certificate = server.signed_by(&key, &issuer)?;

    Ok(format!(
        "{}{}",
        certificate.pem(),
        authority_certificate.pem()
    ))
}

#[cfg(test)]
mod tests;
