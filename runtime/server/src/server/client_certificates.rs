//! The certificates of clients, as TLS checks them: a client may send a chain, and proves that it has the key of the first
//! certificate. This is no authentication: whose certificate it is, an authenticator decides.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// The most certificates of a chain, and their most bytes: every connection keeps its chain, and clients without any rights
/// can open connections. A chain has two to four certificates of one to two KiB.
const MAX_CHAIN_LENGTH: usize = 10;
const MAX_CHAIN_BYTES: usize = 16 * 1024;

/// Asks every client for a certificate and requires none. A chain is refused, and the handshake with it, if it is too long, if
/// one of its certificates cannot be read, or if the client does not have the key of the first one. Issuers, times, usages
/// and names are not checked.
#[derive(Debug)]
pub(super) struct ClientCertificates {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertificates {
    /// Checks signatures with the algorithms of this provider.
    pub(super) fn new(provider: &CryptoProvider) -> Arc<Self> {
        Arc::new(Self {
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ClientCertVerifier for ClientCertificates {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No authorities: clients may send any certificate that they have.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let chain = || std::iter::once(end_entity).chain(intermediates);
        let bytes: usize = chain().map(|certificate| certificate.len()).sum();
        if chain().count() > MAX_CHAIN_LENGTH || bytes > MAX_CHAIN_BYTES {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        for certificate in chain() {
            ParsedCertificate::try_from(certificate)?;
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
