//! Connections to a server: TLS, HTTP/1.1 or HTTP/2, credentials. Nothing is retried, since that would hide failures
//! from the measurement.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::options::Http;

/// Flow-control windows as in Go's client, so that the reader does not slow down lists.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// A server with credentials.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    tls: Arc<rustls::ClientConfig>,
    authorization: Option<HeaderValue>,
    http: Http,
}

#[derive(Deserialize)]
struct Kubeconfig {
    #[serde(rename = "current-context", default)]
    current: String,
    contexts: Vec<Named<Context>>,
    clusters: Vec<Named<Cluster>>,
    users: Vec<Named<User>>,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    value: T,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority_data: Option<String>,
    certificate_authority: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Target {
    /// The server of a kubeconfig's current context.
    pub(crate) fn from_kubeconfig(text: &str, http: Http) -> Result<Self> {
        let config: Kubeconfig =
            serde_saphyr::from_str(text).context("the kubeconfig is not valid")?;
        let context = named(&config.contexts, &config.current).context("no current context")?;
        let cluster = named(&config.clusters, &context.cluster).context("no such cluster")?;
        let user = named(&config.users, &context.user).context("no such user")?;
        let authority = match (
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
        ) {
            (Some(data), _) => STANDARD.decode(data)?,
            (None, Some(file)) => std::fs::read(file).with_context(|| file.clone())?,
            (None, None) => bail!("the cluster of the kubeconfig has no certificate authority"),
        };
        let identity = match (&user.client_certificate_data, &user.client_key_data) {
            (Some(certificate), Some(key)) => {
                Some((STANDARD.decode(certificate)?, STANDARD.decode(key)?))
            }
            _ => None,
        };
        Self::new(
            &cluster.server,
            &authority,
            user.token.as_deref(),
            identity,
            http,
        )
    }

    /// A server at this URL whose certificate is signed by this authority (PEM).
    pub(crate) fn new(
        url: &str,
        authority: &[u8],
        token: Option<&str>,
        identity: Option<(Vec<u8>, Vec<u8>)>,
        http: Http,
    ) -> Result<Self> {
        let url: Uri = url.parse().with_context(|| format!("not a URL: {url}"))?;
        let host = url.host().ok_or_else(|| anyhow!("no host in {url}"))?;
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut tls = match identity {
            Some((certificate, key)) => {
                let chain: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(&certificate).collect();
                config.with_client_auth_cert(chain?, PrivateKeyDer::from_pem_slice(&key)?)?
            }
            None => config.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![match http {
            Http::H1 => b"http/1.1".to_vec(),
            Http::H2 => b"h2".to_vec(),
        }];
        let authorization = match token {
            Some(token) => Some(format!("Bearer {token}").parse()?),
            None => None,
        };
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_u16().unwrap_or(443),
            tls: Arc::new(tls),
            authorization,
            http,
        })
    }

    /// Opens one connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let socket = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .with_context(|| format!("cannot connect to {}:{}", self.host, self.port))?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from(self.host.clone())?;
        let stream = tokio_rustls::TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, socket)
            .await?;
        let io = TokioIo::new(stream);
        let sender = match self.http {
            Http::H1 => {
                let (sender, connection) = http1::handshake(io).await?;
                // The request that needs the connection reports its error.
                tokio::spawn(async { connection.await.ok() });
                Sender::H1(sender)
            }
            Http::H2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .handshake(io)
                    .await?;
                // As above.
                tokio::spawn(async { connection.await.ok() });
                Sender::H2(sender)
            }
        };
        Ok(Connection {
            sender,
            authority: format!("{}:{}", self.host, self.port),
            authorization: self.authorization.clone(),
        })
    }

    /// One connection per worker, shared as far as HTTP/2 allows.
    pub(crate) async fn connect_workers(
        &self,
        workers: usize,
        connections: usize,
    ) -> Result<Vec<Connection>> {
        let mut shared = Vec::new();
        let mut all = Vec::new();
        for worker in 0..workers {
            if self.http == Http::H1 {
                all.push(self.connect().await?);
                continue;
            }
            if shared.len() < connections.max(1) {
                shared.push(self.connect().await?);
            }
            all.push(shared[worker % shared.len()].share()?);
        }
        Ok(all)
    }
}

fn named<'a, T>(all: &'a [Named<T>], name: &str) -> Option<&'a T> {
    all.iter()
        .find(|one| one.name == name)
        .or(all.first())
        .map(|one| &one.value)
}

/// A connection, or a handle to a shared one.
pub(crate) struct Connection {
    sender: Sender,
    authority: String,
    authorization: Option<HeaderValue>,
}

enum Sender {
    H1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
}

/// A request, before the connection adds credentials.
pub(crate) struct Call<'a> {
    /// Method.
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: &'a str,
    /// `Content-Type`, of a body.
    pub(crate) content_type: &'static str,
    /// `Accept`.
    pub(crate) accept: &'a str,
    /// Body.
    pub(crate) body: Bytes,
}

impl<'a> Call<'a> {
    /// GET of JSON.
    pub(crate) fn get(path: &'a str) -> Self {
        Self::new(Method::GET, path, Bytes::new())
    }

    /// A request with a JSON body.
    pub(crate) fn new(method: Method, path: &'a str, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            path,
            content_type: "application/json",
            accept: "application/json",
            body: body.into(),
        }
    }

    /// A JSON merge patch.
    pub(crate) fn merge_patch(path: &'a str, body: impl Into<Bytes>) -> Self {
        Self {
            content_type: "application/merge-patch+json",
            ..Self::new(Method::PATCH, path, body)
        }
    }

    /// A server-side apply; the path names its manager.
    pub(crate) fn apply(path: &'a str, body: impl Into<Bytes>) -> Self {
        Self {
            content_type: "application/apply-patch+yaml",
            ..Self::new(Method::PATCH, path, body)
        }
    }
}

impl Connection {
    /// Another handle to the same HTTP/2 connection.
    pub(crate) fn share(&self) -> Result<Self> {
        let Sender::H2(sender) = &self.sender else {
            bail!("a connection of HTTP/1.1 cannot be shared");
        };
        Ok(Self {
            sender: Sender::H2(sender.clone()),
            authority: self.authority.clone(),
            authorization: self.authorization.clone(),
        })
    }

    /// Sends a request; returns the head of the response, with any status code.
    pub(crate) async fn send(&mut self, call: Call<'_>) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(call.method)
            .header(header::ACCEPT, call.accept);
        request = match &self.sender {
            Sender::H1(_) => request
                .uri(call.path)
                .header(header::HOST, self.authority.as_str()),
            Sender::H2(_) => request.uri(format!("https://{}{}", self.authority, call.path)),
        };
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(call.body))?;
        let answer = match &mut self.sender {
            Sender::H1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::H2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        Ok(answer)
    }

    /// Sends a request and reads the whole response, which must be a success.
    pub(crate) async fn call(&mut self, call: Call<'_>) -> Result<Bytes> {
        let what = format!("{} {}", call.method, call.path);
        let (code, body) = self.try_call(call).await?;
        if !code.is_success() {
            bail!(
                "{what} was answered with {code}: {}",
                String::from_utf8_lossy(&body)
            );
        }
        Ok(body)
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn try_call(&mut self, call: Call<'_>) -> Result<(http::StatusCode, Bytes)> {
        let answer = self.send(call).await?;
        let code = answer.status();
        Ok((code, answer.into_body().collect().await?.to_bytes()))
    }

    /// Sends a request and reads the response without keeping it; returns its length. It must be a success.
    pub(crate) async fn drain(&mut self, call: Call<'_>) -> Result<u64> {
        let answer = self.send(call).await?;
        if !answer.status().is_success() {
            bail!("answered with {}", answer.status());
        }
        let mut body = answer.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame?.data_ref() {
                length += data.len() as u64;
            }
        }
        Ok(length)
    }
}

/// Runs a task for each connection, numbered from 0; returns their results when all have ended.
pub(crate) async fn each_worker<T, F>(
    connections: Vec<Connection>,
    work: impl Fn(usize, Connection) -> F,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let numbered = connections.into_iter().enumerate();
    let tasks: Vec<_> = numbered
        .map(|(number, connection)| tokio::spawn(work(number, connection)))
        .collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await??);
    }
    Ok(results)
}
