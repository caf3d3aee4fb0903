//! A server over TLS that records what it is sent, and answers as the paths say.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _, stream};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::pair::Authority;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Size of a large answer.
pub(super) const LARGE_BYTES: usize = 64 << 20;
const PIECE_BYTES: usize = 64 << 10;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) method: String,
    pub(super) uri: String,
    headers: HeaderMap,
    pub(super) body: String,
    /// The certificate of the client.
    pub(super) certificate: Option<Vec<u8>>,
}

impl Recorded {
    /// The values of a header.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let values = self.headers.get_all(name).iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }
}

/// See the module.
pub(super) struct Recorder {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    requests: Mutex<Vec<Recorded>>,
    /// One permit for each further piece of a stream.
    pieces: Semaphore,
    /// The bytes of large answers that were asked for.
    sent: AtomicUsize,
    /// The resources in discovery, and how often they changed.
    resources: Mutex<(usize, Value)>,
}

/// TLS with the certificate of the service `recorder`, for clients with any certificate or none.
pub(super) fn tls(authority: &Authority) -> rustls::ServerConfig {
    let files = authority.of_service("recorder");
    let chain = CertificateDer::pem_file_iter(files.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(files.private_key).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(Arc::new(AnyClient))
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap()
}

impl Recorder {
    pub(super) async fn start(authority: &Authority) -> Self {
        let mut tls = tls(authority);
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            pieces: Semaphore::new(0),
            sent: AtomicUsize::new(0),
            resources: Mutex::new((0, json!([]))),
        });
        let of_connections = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, shared) = (acceptor.clone(), Arc::clone(&of_connections));
                tokio::spawn(async move {
                    // A client may go at any time.
                    let Ok(stream) = acceptor.accept(tcp).await else {
                        return;
                    };
                    let certificates = stream.get_ref().1.peer_certificates();
                    let certificate = certificates.map(|chain| chain[0].to_vec());
                    let service = service_fn(move |request| {
                        answer(Arc::clone(&shared), certificate.clone(), request)
                    });
                    let builder =
                        hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection_with_upgrades(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { address, shared }
    }

    /// The requests with a part in their URI.
    pub(super) fn requests(&self, part: &str) -> Vec<Recorded> {
        let requests = self.shared.requests.lock().unwrap();
        let found = requests.iter().filter(|request| request.uri.contains(part));
        found.cloned().collect()
    }

    /// The requests of clients: without those of the server's controller, which looks at this one whenever it wants.
    pub(super) fn forwarded(&self) -> Vec<Recorded> {
        let of_controller =
            |request: &Recorded| request.all("x-remote-user") == ["system:kube-aggregator"];
        let mut all = self.requests("");
        all.retain(|request| !of_controller(request));
        all
    }

    pub(super) fn forget(&self) {
        self.shared.requests.lock().unwrap().clear();
    }

    /// How many bytes of large answers were sent.
    pub(super) fn sent(&self) -> usize {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// Lists other resources in discovery, and with them OpenAPI of another hash.
    pub(super) fn serve(&self, resources: Value) {
        let mut present = self.shared.resources.lock().unwrap();
        *present = (present.0 + 1, resources);
    }

    /// Sends the next piece of a stream.
    pub(super) fn next_piece(&self) {
        self.shared.pieces.add_permits(1);
    }
}

fn whole(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert("x-recorded", HeaderValue::from_static("1"));
    headers.insert("audit-id", HeaderValue::from_static("of the recorder"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    response
}

async fn answer(
    shared: Arc<Shared>,
    certificate: Option<Vec<u8>>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let upgrade = request.headers().get(UPGRADE).cloned();
    if let Some(protocol) = upgrade {
        shared.requests.lock().unwrap().push(Recorded {
            method: request.method().to_string(),
            uri: path,
            headers: request.headers().clone(),
            body: String::new(),
            certificate,
        });
        return Ok(switch(&mut request, protocol));
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let uri = parts.uri.path_and_query().unwrap().as_str().to_owned();
    shared.requests.lock().unwrap().push(Recorded {
        method: parts.method.to_string(),
        uri,
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
        certificate,
    });
    let last = path.rsplit('/').next().unwrap_or_default();
    let (changes, resources) = shared.resources.lock().unwrap().clone();
    Ok(match last {
        "v3" if changes > 0 => {
            let url = format!("/openapi/v3/apis/rec.example.com/v1?hash={changes}");
            let paths = json!({"apis/rec.example.com/v1": {"serverRelativeURL": url}});
            whole(StatusCode::OK, json!({"paths": paths}).to_string())
        }
        "v1" if path.starts_with("/openapi/v3/") => {
            let document = openapi(&resources);
            whole(StatusCode::OK, document.to_string())
        }
        // Without aggregated discovery and without OpenAPI.
        "apis" | "v2" | "v3" if !path.starts_with("/apis/") => whole(StatusCode::NOT_FOUND, ""),
        "v1" => {
            let version = path
                .trim_start_matches("/apis/")
                .trim_start_matches("/api/");
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
            whole(StatusCode::OK, list.to_string())
        }
        "redirect" => {
            let mut response = whole(StatusCode::FOUND, "");
            let elsewhere = HeaderValue::from_static("/api/v1/secrets");
            response.headers_mut().insert("location", elsewhere);
            response
        }
        "hang" => std::future::pending().await,
        "break" => {
            let first = Ok(Frame::data(Bytes::from_static(b"begun\n")));
            let then = async move {
                shared.pieces.acquire().await.unwrap().forget();
                Err(std::io::Error::other("broken"))
            };
            let body = StreamBody::new(stream::iter([first]).chain(stream::once(then)));
            whole(StatusCode::OK, "").map(|_| body.boxed_unsync())
        }
        "large" => {
            let pieces = stream::iter(0..LARGE_BYTES / PIECE_BYTES).map(move |_| {
                shared.sent.fetch_add(PIECE_BYTES, Ordering::SeqCst);
                Ok(Frame::data(Bytes::from_static(&[b'x'; PIECE_BYTES])))
            });
            whole(StatusCode::OK, "").map(|_| StreamBody::new(pieces).boxed_unsync())
        }
        "stream" => {
            let pieces = stream::iter(0..).then(move |number| {
                let shared = Arc::clone(&shared);
                async move {
                    if number > 0 {
                        shared.pieces.acquire().await.unwrap().forget();
                    }
                    Ok(Frame::data(Bytes::from(format!("piece {number}\n"))))
                }
            });
            whole(StatusCode::OK, "").map(|_| StreamBody::new(pieces).boxed_unsync())
        }
        _ if parts.method == "POST" => whole(StatusCode::CREATED, body),
        _ => whole(StatusCode::OK, "{}"),
    })
}

/// A document with a path for each resource, and with others that are not for clients of an aggregator.
fn openapi(resources: &Value) -> Value {
    let base = "/apis/rec.example.com/v1";
    let to = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let names = resources.as_array().unwrap().iter();
    let names = names.map(|resource| resource["name"].as_str().unwrap());
    let item = json!({"get": {"description": "x".repeat(PIECE_BYTES), "responses": {"200": {"schema": to("Used")}}}});
    let paths = names.map(|name| (format!("{base}/{name}"), item.clone()));
    let mut paths: serde_json::Map<String, Value> = paths.collect();
    for path in [
        "/apis/other.example.com/v1/",
        "/apis/rec.example.com/v10/",
        "/version",
    ] {
        paths.insert(path.to_owned(), item.clone());
    }
    for path in ["..", "a\nb", "a b"] {
        paths.insert(format!("{base}/{path}"), item.clone());
    }
    let used = json!({"properties": {"own": to("Used"), "lost": to("Lost"), "far": {"$ref": "https://elsewhere.test/"}}});
    let schemas = json!({"Used": used, "Unused": {}, "a\nb": {}});
    json!({"openapi": "3.0.0", "servers": [{"url": "https://elsewhere.test"}], "paths": paths, "components": {"schemas": schemas}})
}

/// Switches to a protocol in which everything comes back.
fn switch(request: &mut Request<Incoming>, protocol: HeaderValue) -> Response<Body> {
    let upgraded = hyper::upgrade::on(&mut *request);
    let is_websocket = protocol == "websocket";
    tokio::spawn(async move {
        let connection = TokioIo::new(upgraded.await.unwrap());
        if is_websocket {
            let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, None).await;
            while let Some(Ok(message)) = socket.next().await {
                // The client may be gone.
                let _ = socket.send(message).await;
            }
            return;
        }
        let (mut read, mut write) = tokio::io::split(connection);
        // Ends with the client.
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    let mut response = whole(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
    for (name, value) in request.headers() {
        if name == "sec-websocket-protocol" {
            headers.insert(name.clone(), value.clone());
        }
        if name == "sec-websocket-key" {
            let accept = derive_accept_key(value.as_bytes());
            headers.insert("sec-websocket-accept", accept.parse().unwrap());
        }
    }
    response
}

/// Asks for a certificate of the client, and takes any.
#[derive(Debug)]
struct AnyClient;

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let algorithms = &provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let algorithms = &provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
