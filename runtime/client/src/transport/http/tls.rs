//! TLS: authorities, the client's certificate, and the choice of the HTTP version (ALPN).

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;

use super::connect::BoxStream;
use super::origin::Origin;
use super::settings::Settings;
use super::verifier::Verifier;

/// Authorities, certificates and names of TLS.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates of the authorities that sign the server's, or the server's own, in PEM. Default: those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The client's certificate with its chain, in PEM.
    pub certificate: Option<Vec<u8>>,
    /// The key of the client's certificate, in PEM.
    pub key: Option<Vec<u8>>,
    /// The name that the server's certificate must have. Default: the host of the URL.
    pub server_name: Option<String>,
    /// Whether any certificate of the server is accepted. Default false. Only for tests: the credentials are sent to
    /// a server that can be any.
    pub accepts_any_certificate: bool,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("has_authorities", &self.authorities.is_some())
            .field("has_certificate", &self.certificate.is_some())
            .field("server_name", &self.server_name)
            .field("accepts_any_certificate", &self.accepts_any_certificate)
            .finish_non_exhaustive()
    }
}

/// TLS options that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// An authority's certificate is malformed, or there is none.
    #[error("the certificates of the authorities: {0}")]
    Authorities(String),
    /// The client's certificate or key is malformed, missing, or they do not belong together.
    #[error("the client's certificate and key: {0}")]
    Identity(String),
    /// The server's name is neither a host name nor an address.
    #[error("{0:?} is not the name of a TLS server")]
    ServerName(String),
}

/// What makes the TLS connections of one server.
pub(super) struct Tls {
    /// Offers HTTP/2 and HTTP/1.1.
    config: Arc<ClientConfig>,
    /// Offers HTTP/1.1 alone.
    http1: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    pub(super) fn new(
        options: &TlsOptions,
        origin: &Origin,
        settings: Settings,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Identity(error.to_string()))?;
        if options.accepts_any_certificate && options.authorities.is_some() {
            let problem = "they would not be used, because the server's certificate is not verified; leave one of both out";
            return Err(TlsError::Authorities(problem.to_owned()));
        }
        let verifier: Arc<dyn ServerCertVerifier> = if options.accepts_any_certificate {
            Arc::new(AnyCertificate(provider))
        } else {
            let trusted = trusted(options.authorities.as_deref())?;
            Arc::new(Verifier::new(trusted, provider).map_err(TlsError::Authorities)?)
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match (&options.certificate, &options.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let identity = |error: &dyn fmt::Display| TlsError::Identity(error.to_string());
                let chain = certificates(certificate).map_err(TlsError::Identity)?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| identity(&error))?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| identity(&error))?
            }
            (Some(_), None) => return Err(TlsError::Identity("there is no key".to_owned())),
            (None, Some(_)) => {
                return Err(TlsError::Identity("there is no certificate".to_owned()));
            }
        };
        let name = options.server_name.as_deref().unwrap_or(&origin.host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError::ServerName(name.to_owned()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let http1 = Arc::new(config.clone());
        if !settings.is_http1_only {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(Self {
            config: Arc::new(config),
            http1,
            name,
        })
    }

    /// Encrypts a connection. The second value is whether the server chose HTTP/2.
    pub(super) async fn connect(
        &self,
        tcp: TcpStream,
        http1_only: bool,
    ) -> io::Result<(BoxStream, bool)> {
        let config = if http1_only {
            &self.http1
        } else {
            &self.config
        };
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(self.name.clone(), tcp).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Box::pin(stream), is_http2))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match parsed {
        Ok(found) if found.is_empty() => Err("there is no certificate in PEM".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(error.to_string()),
    }
}

/// The certificates in PEM, or those of the system. Blocks that are malformed are left out if others are not.
fn trusted(pem: Option<&[u8]>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let Some(pem) = pem else {
        let found = rustls_native_certs::load_native_certs().certs;
        if found.is_empty() {
            let problem = "the system has none; give those of the server".to_owned();
            return Err(TlsError::Authorities(problem));
        }
        return Ok(found);
    };
    let blocks = CertificateDer::pem_slice_iter(pem);
    let found: Vec<_> = blocks.filter_map(Result::ok).collect();
    if found.is_empty() {
        // Says what is wrong with the first block, or that there is none.
        return certificates(pem).map_err(TlsError::Authorities);
    }
    Ok(found)
}

/// Accepts any certificate. The server still proves that it has the key of the one that it shows.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
