//! A conversion webhook over TLS in the process of the test, which answers as the test says.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// What the webhook does with a call.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Converts the objects.
    Convert,
    /// Converts them, and changes the review that is sent: its request is still in it.
    Change(Arc<dyn Fn(&mut Value) + Send + Sync>),
    /// Another response: code, body.
    Text(u16, &'static str),
    /// Asks to go elsewhere.
    Redirect(String),
    /// Never answers.
    Hang,
    /// A body that does not end.
    Endless,
}

impl Reply {
    pub(crate) fn change(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::Change(Arc::new(change))
    }
}

struct State {
    reply: Mutex<Reply>,
    calls: Mutex<Vec<Value>>,
}

/// A running webhook; it ends when this is dropped.
pub(crate) struct Webhook {
    pub(crate) address: SocketAddr,
    /// The authority of its certificate, as `caBundle` has it.
    pub(crate) ca_bundle: String,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Webhook {
    /// Starts a webhook whose certificate has the names of this machine and of the service `default/hook`.
    pub(crate) async fn start() -> Self {
        let (tls, ca_bundle) = identity();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            reply: Mutex::new(Reply::Convert),
            calls: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, tls, Arc::clone(&state)));
        Self {
            address,
            ca_bundle,
            state,
            serving,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}/convert", self.address)
    }

    /// Answers so from now on.
    pub(crate) fn reply(&self, reply: Reply) {
        *self.state.reply.lock().unwrap() = reply;
    }

    /// The reviews since the last time.
    pub(crate) fn calls(&self) -> Vec<Value> {
        std::mem::take(&mut self.state.calls.lock().unwrap())
    }

    /// The number of reviews since the last time.
    pub(crate) fn number_of_calls(&self) -> usize {
        self.state.calls.lock().unwrap().len()
    }

    /// The names of the objects of each call since the last time.
    pub(crate) fn names(&self) -> Vec<Vec<String>> {
        let calls = self.calls();
        let objects = |call: &Value| {
            let objects = call["request"]["objects"].as_array().unwrap().iter();
            let names = objects.map(|object| object["metadata"]["name"].as_str().unwrap());
            names.map(str::to_owned).collect()
        };
        calls.iter().map(objects).collect()
    }
}

/// A certificate and the authority that signed it.
fn identity() -> (Arc<rustls::ServerConfig>, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let names = ["127.0.0.1", "localhost", "hook.default.svc"].map(str::to_owned);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names.to_vec()).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (Arc::new(config), STANDARD.encode(authority_pem))
}

async fn serve(listener: TcpListener, tls: Arc<rustls::ServerConfig>, state: Arc<State>) {
    let acceptor = TlsAcceptor::from(tls);
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
        connections.spawn(async move {
            // A client that does not trust the certificate leaves here.
            let Ok(stream) = acceptor.accept(tcp).await else {
                return;
            };
            let service = service_fn(move |request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(answer(&state, request).await) }
            });
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let _ = builder
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<Body> {
    let target = request.uri().path_and_query().unwrap().to_string();
    assert_eq!(target, "/convert?timeout=30s");
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut review: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(review["kind"], "ConversionReview");
    state.calls.lock().unwrap().push(review.clone());
    let reply = state.reply.lock().unwrap().clone();
    match reply {
        Reply::Text(code, body) => return text(code, body),
        Reply::Redirect(location) => {
            let mut response = text(307, "");
            let headers = response.headers_mut();
            headers.insert("location", location.parse().unwrap());
            return response;
        }
        Reply::Hang => std::future::pending::<()>().await,
        Reply::Endless => {
            let piece = Bytes::from(vec![b' '; 1 << 16]);
            let pieces = futures_util::stream::repeat_with(move || Ok(Frame::data(piece.clone())));
            return Response::new(http_body_util::BodyExt::boxed(StreamBody::new(pieces)));
        }
        Reply::Convert => convert(&mut review),
        Reply::Change(change) => {
            convert(&mut review);
            change(&mut review);
        }
    }
    text(200, review.to_string())
}

/// Foos of v1 have a color, those of v2 a colour.
fn convert(review: &mut Value) {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap().to_owned();
    let mut objects = request["objects"].as_array().unwrap().clone();
    for object in &mut objects {
        assert_ne!(object["apiVersion"], to, "nothing to convert");
        let (old, new) = match &*to {
            "ex.io/v1" => ("colour", "color"),
            _ => ("color", "colour"),
        };
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(old)
        {
            spec.insert(new.to_owned(), value);
        }
        object["apiVersion"] = json!(to);
    }
    review["response"] = json!({
        "uid": request["uid"],
        "convertedObjects": objects,
        "result": {"status": "Success"},
    });
}
