//! Verifies the certificate of a server, with the rules of Go's `crypto/x509`: its chain ends at an authority, or it is itself
//! one of the given certificates, byte for byte. Names, dates and purposes hold for both. `tests/certificates` has what Go says of
//! about a hundred, with two that differ.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::X509Extension;
use x509_parser::x509::X509Version;

/// Authorities, and servers that are trusted by their own certificate. webpki alone refuses a self-signed certificate that is
/// also an authority, which `openssl req -x509` and Go's `generate_cert` make, and asks nothing of the certificates of
/// authorities: neither their dates, nor what they may be used for.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    authorities: Vec<Authority>,
    /// For the time in which all of them are valid.
    chains: Option<Arc<WebPkiServerVerifier>>,
    /// The given certificates that name a server: one without names can be no server's.
    servers: Vec<CertificateDer<'static>>,
}

/// A given certificate that may sign those of servers.
#[derive(Debug)]
struct Authority {
    certificate: CertificateDer<'static>,
    valid: Validity,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug)]
struct Validity {
    not_before: UnixTime,
    not_after: UnixTime,
}

impl Verifier {
    /// Trusts these certificates. One that cannot be read is left out, as in Go.
    ///
    /// # Errors
    /// If none can be read, and why.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut problem = Some("there is no certificate".to_owned());
        let (mut authorities, mut servers) = (Vec::new(), Vec::new());
        for certificate in trusted {
            if let Err(error) = RootCertStore::empty().add(certificate.clone()) {
                problem = problem.map(|_| error.to_string());
                continue;
            }
            problem = None;
            let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&certificate) else {
                continue;
            };
            if matches!(parsed.subject_alternative_name(), Ok(Some(_))) {
                servers.push(certificate.clone());
            }
            if may_sign(&parsed) {
                let valid = Validity::of(&parsed);
                authorities.push(Authority { certificate, valid });
            }
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        Ok(Self {
            chains: chains(authorities.iter(), &provider),
            provider,
            authorities,
            servers,
        })
    }

    fn is_trusted_server(&self, certificate: &CertificateDer<'_>) -> bool {
        self.servers.iter().any(|server| server == certificate)
    }

    /// What verifies chains that end at an authority which is valid now; `None` without any.
    fn chains_at(&self, now: UnixTime) -> Option<Arc<WebPkiServerVerifier>> {
        let is_valid = |authority: &&Authority| authority.valid.check(now).is_ok();
        if self.authorities.iter().all(|of| is_valid(&of)) {
            return self.chains.clone();
        }
        chains(self.authorities.iter().filter(is_valid), &self.provider)
    }
}

/// What verifies chains that end at these authorities; `None` without any.
fn chains<'a>(
    authorities: impl Iterator<Item = &'a Authority>,
    provider: &Arc<CryptoProvider>,
) -> Option<Arc<WebPkiServerVerifier>> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        // It was read before.
        let _ = roots.add(authority.certificate.clone());
    }
    let provider = Arc::clone(provider);
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    chains.build().ok()
}

/// Whether a certificate is that of an authority for servers. Those of version 1 say nothing of it.
fn may_sign(certificate: &X509Certificate<'_>) -> bool {
    let is_authority = match certificate.basic_constraints() {
        Ok(Some(constraints)) => constraints.value.ca,
        Ok(None) => certificate.version() != X509Version::V3,
        Err(_) => false,
    };
    let signs = certificate.key_usage();
    let signs = signs.is_ok_and(|usage| usage.is_none_or(|usage| usage.value.key_cert_sign()));
    let mut extensions = certificate.extensions().iter();
    let is_known = |extension: &X509Extension<'_>| {
        !extension.critical || !extension.parsed_extension().unsupported()
    };
    is_authority && signs && extensions.all(is_known) && check_purpose(certificate).is_ok()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.is_trusted_server(end_entity) {
            let chains = self.chains_at(now);
            let chains = chains.ok_or(CertificateError::UnknownIssuer)?;
            return chains.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        let (_, parsed) = x509_parser::parse_x509_certificate(end_entity)
            .map_err(|_| CertificateError::BadEncoding)?;
        Validity::of(&parsed).check(now)?;
        check_purpose(&parsed)?;
        // Also refuses extensions that are critical and unknown.
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

impl Validity {
    fn of(certificate: &X509Certificate<'_>) -> Self {
        let validity = certificate.validity();
        // Times before 1970 are long past.
        let time = |at: i64| {
            UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at).unwrap_or_default()))
        };
        Self {
            not_before: time(validity.not_before.timestamp()),
            not_after: time(validity.not_after.timestamp()),
        }
    }

    fn check(self, now: UnixTime) -> Result<(), CertificateError> {
        let Self {
            not_before,
            not_after,
        } = self;
        if now < not_before {
            return Err(CertificateError::NotValidYetContext {
                time: now,
                not_before,
            });
        }
        if now > not_after {
            return Err(CertificateError::ExpiredContext {
                time: now,
                not_after,
            });
        }
        Ok(())
    }
}

/// A certificate that lists its purposes has that of servers among them.
fn check_purpose(certificate: &X509Certificate<'_>) -> Result<(), CertificateError> {
    let purposes = certificate.extended_key_usage();
    let purposes = purposes.map_err(|_| CertificateError::BadEncoding)?;
    if purposes.is_none_or(|purposes| purposes.value.server_auth || purposes.value.any) {
        return Ok(());
    }
    Err(CertificateError::InvalidPurpose)
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa,
        Issuer, KeyPair, date_time_ymd,
    };

    use super::*;

    /// Parameters as `openssl req -x509 -addext subjectAltName=DNS:hook.test,IP:127.0.0.1` and Go's `generate_cert --ca` have
    /// them: an authority that is a server.
    fn params() -> CertificateParams {
        let names = ["hook.test".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    fn self_signed(params: CertificateParams) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn verify(
        trusted: &[&CertificateDer<'static>],
        shown: &CertificateDer<'static>,
        name: &str,
    ) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trusted = trusted.iter().map(|one| (*one).clone()).collect();
        let verifier = Verifier::new(trusted, provider).unwrap();
        let name = ServerName::try_from(name).unwrap();
        let verified = verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::now());
        verified.map(|_| ())
    }

    #[track_caller]
    fn check_refused(params: CertificateParams, name: &str, expected: &str) {
        let shown = self_signed(params);
        let error = verify(&[&shown], &shown, name).unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_self_signed_authority_is_accepted_as_the_server_that_it_names() {
        let shown = self_signed(params());
        for name in ["hook.test", "127.0.0.1"] {
            verify(&[&shown], &shown, name).unwrap();
        }
        let other = self_signed(params());
        let error = verify(&[&other], &shown, "hook.test").unwrap_err();
        assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
    }

    #[test]
    fn names_dates_purposes_and_critical_extensions_of_a_trusted_certificate_are_checked() {
        for name in ["other.test", "127.0.0.2"] {
            check_refused(params(), name, "NotValidForName");
        }
        let mut expired = params();
        expired.not_before = date_time_ymd(2020, 1, 1);
        expired.not_after = date_time_ymd(2021, 1, 1);
        check_refused(expired, "hook.test", "Expired");
        let mut later = params();
        later.not_before = date_time_ymd(4000, 1, 1);
        check_refused(later, "hook.test", "NotValidYet");
        let mut of_client = params();
        of_client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        check_refused(of_client, "hook.test", "InvalidPurpose");
        let mut unknown = params();
        let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        extension.set_criticality(true);
        unknown.custom_extensions = vec![extension];
        let shown = self_signed(unknown);
        let good = self_signed(params());
        verify(&[&good, &shown], &shown, "hook.test").unwrap_err();
    }

    #[test]
    fn a_certificate_is_trusted_without_its_issuer_and_by_its_issuer() {
        let (key, key_of_leaf) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let authority = params().self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(params(), key);
        let mut leaf = params();
        leaf.is_ca = IsCa::NoCa;
        let leaf = leaf.signed_by(&key_of_leaf, &issuer).unwrap().der().clone();
        verify(&[&leaf], &leaf, "hook.test").unwrap();
        verify(&[&authority], &leaf, "hook.test").unwrap();
        let other = self_signed(params());
        verify(&[&other], &leaf, "hook.test").unwrap_err();
    }

    #[test]
    fn one_certificate_that_can_be_read_is_enough() {
        let provider = || Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let malformed = CertificateDer::from(vec![0x30, 0]);
        let good = self_signed(params());
        verify(&[&malformed, &good], &good, "hook.test").unwrap();
        verify(&[&good, &malformed], &good, "hook.test").unwrap();
        assert!(Verifier::new(vec![malformed], provider()).is_err());
        assert!(Verifier::new(Vec::new(), provider()).is_err());
    }
}
