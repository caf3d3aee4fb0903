//! An HTTP server over TLS in the process of a test, which answers by a function.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// The names of its certificate: those of this machine, and of the service `default/hook`.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "hook.default.svc"];

/// Who signs the certificate of a server.
#[derive(Clone, Copy, Debug)]
pub enum SignedBy {
    /// An authority of its own.
    Authority,
    /// Its own key, so that the certificate is its own authority.
    Itself,
    /// Its own key, in a certificate that says that it is an authority, as `openssl req -x509` makes it.
    ItselfAsAuthority,
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct HttpsServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// The authority of its certificate, as `caBundle` has it.
    pub ca_bundle: String,
    serving: JoinHandle<()>,
}

/// The body of a response.
pub type Body = BoxBody<Bytes, Infallible>;

impl HttpsServer {
    /// Starts a server that answers by this function.
    pub async fn start<A>(
        signed_by: SignedBy,
        answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    ) -> Self
    where
        A: Future<Output = Response<Body>> + Send + 'static,
    {
        let (tls, ca_bundle) = identity(signed_by);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            address: listener.local_addr().unwrap(),
            ca_bundle,
            serving: tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), answer)),
        }
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A response with this text.
pub fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// The side of TLS of a server of HTTP/2 and HTTP/1.1 for these names: those of this machine, and of the service `default/hook`. Also
/// the authority of its certificate, as `caBundle` has it.
pub fn identity(signed_by: SignedBy) -> (rustls::ServerConfig, String) {
    let key = KeyPair::generate().unwrap();
    let names = NAMES.map(str::to_owned);
    let mut certificate = CertificateParams::new(names.to_vec()).unwrap();
    let (certificate, authority): (Certificate, String) = match signed_by {
        SignedBy::Authority => {
            let mut authority = CertificateParams::new(Vec::new()).unwrap();
            authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let authority_key = KeyPair::generate().unwrap();
            let pem = authority.self_signed(&authority_key).unwrap().pem();
            let issuer = Issuer::new(authority, authority_key);
            (certificate.signed_by(&key, &issuer).unwrap(), pem)
        }
        SignedBy::Itself | SignedBy::ItselfAsAuthority => {
            if matches!(signed_by, SignedBy::ItselfAsAuthority) {
                certificate.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }
            let certificate = certificate.self_signed(&key).unwrap();
            let pem = certificate.pem();
            (certificate, pem)
        }
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (config, STANDARD.encode(authority))
}

async fn serve<A>(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) where
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        let (acceptor, answer) = (acceptor.clone(), answer.clone());
        connections.spawn(async move {
            // A client that does not trust the certificate leaves here.
            let Ok(stream) = acceptor.accept(tcp).await else {
                return;
            };
            let service = service_fn(move |request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let _ = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
