//! An HTTP client that exposes everything: status, headers and body as received, over TLS with the kubeconfig's
//! authority.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

use crate::connections::Connections;

/// Timeout of a response: a test that hangs gives no information.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pause before a refused list is asked for again.
const AGAIN: Duration = Duration::from_millis(10);

/// A client of one server, or of two over the same store.
#[derive(Clone)]
pub struct Client {
    connections: Connections,
    url: String,
    token: String,
    /// The client for GET, if another server serves these.
    reader: Option<Box<Client>>,
}

/// The content of a kubeconfig: URL, authority and the user's credentials.
#[derive(Clone, Debug)]
pub struct Access {
    /// The URL of the server.
    pub url: String,
    /// The user's bearer token, empty for none.
    pub token: String,
    /// A TLS configuration that trusts the kubeconfig's authority, sends the user's certificate if there is one, and offers
    /// no ALPN protocol.
    pub tls: rustls::ClientConfig,
}

impl Access {
    /// Reads a kubeconfig.
    pub fn read(kubeconfig: &Path) -> Self {
        Self::of_versions(kubeconfig, rustls::DEFAULT_VERSIONS)
    }

    /// The same with these versions of TLS only.
    pub fn of_versions(
        kubeconfig: &Path,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Self {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let data = |value: &Value| STANDARD.decode(value.as_str()?).ok();
        let authority = data(&cluster["certificate-authority-data"]).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(
            CertificateDer::pem_slice_iter(&authority).map(|der| der.unwrap()),
        );
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let tls = match data(&user["client-certificate-data"]) {
            Some(chain) => {
                let chain = CertificateDer::pem_slice_iter(&chain).map(|der| der.unwrap());
                let key = data(&user["client-key-data"]).unwrap();
                let key = PrivateKeyDer::from_pem_slice(&key).unwrap();
                tls.with_client_auth_cert(chain.collect(), key).unwrap()
            }
            None => tls.with_no_client_auth(),
        };
        Self {
            url: cluster["server"].as_str().unwrap().to_owned(),
            token: user["token"].as_str().unwrap_or_default().to_owned(),
            tls,
        }
    }
}

/// A complete response.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status code.
    pub code: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Whether a request was not sent because its connection had got GOAWAY without an error. Other HTTP/2 clients send such a
/// request again on a new connection (RFC 9113, section 6.8).
fn is_goaway(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_go_away()
                && error.is_remote()
                && error.reason() == Some(h2::Reason::NO_ERROR);
        }
        cause = error.source();
    }
    false
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).map(|value| value.to_str().unwrap());
    value.unwrap_or_default()
}

/// Reads a complete response.
async fn read(response: http::Response<Incoming>) -> Result<Answer, String> {
    let (parts, body) = response.into_parts();
    let body = tokio::time::timeout(PATIENCE, body.collect())
        .await
        .expect("no body in time")
        .map_err(|error| error.to_string())?
        .to_bytes();
    Ok(Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body,
    })
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    /// A header, empty when absent.
    pub fn header(&self, name: &str) -> &str {
        text_of(&self.headers, name)
    }
    /// Every value of a header.
    pub fn header_all(&self, name: &str) -> Vec<&str> {
        self.headers
            .get_all(name)
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect()
    }
}

impl Client {
    /// A client with the credentials of a kubeconfig; HTTP/2 where the server offers it.
    pub fn new(kubeconfig: &Path) -> Self {
        Self::speaking(kubeconfig, true)
    }

    /// The same with HTTP/1.1 only.
    pub fn of_http1(kubeconfig: &Path) -> Self {
        Self::speaking(kubeconfig, false)
    }

    fn speaking(kubeconfig: &Path, http2: bool) -> Self {
        let Access { url, token, tls } = Access::read(kubeconfig);
        let server: Uri = url.parse().unwrap();
        let server = server.authority().unwrap().clone();
        Self {
            connections: Connections::new(server, tls, http2),
            url,
            token,
            reader: None,
        }
    }

    /// The same client, which sends GET, and with it watches and upgrades, to the server of another client.
    #[must_use]
    pub fn with_reader(mut self, reader: Self) -> Self {
        self.reader = Some(Box::new(reader));
        self
    }

    /// The client of the server for a method.
    fn of_method(&self, method: &Method) -> &Self {
        match &self.reader {
            Some(reader) if method == Method::GET => reader,
            _ => self,
        }
    }

    /// The same client without credentials.
    #[must_use]
    pub fn anonymous(self) -> Self {
        self.with_token("")
    }

    /// The same client with another token; no token is sent if it is empty.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self.reader = self.reader.map(|reader| Box::new(reader.with_token(token)));
        self
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<http::Response<Incoming>, String> {
        let Self {
            connections,
            url,
            token,
            ..
        } = self.of_method(&method);
        loop {
            let mut request = Request::builder()
                .method(method.clone())
                .uri(format!("{url}{path}"));
            if !token.is_empty() {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Full::new(body.clone())).unwrap();
            let answer = tokio::time::timeout(PATIENCE, connections.send(request));
            let answer = answer.await;
            match answer
                .unwrap_or_else(|_| panic!("{method} {url}{path}: no answer in {PATIENCE:?}"))
            {
                // The server has ended the connection in good order before it took this request.
                Err(error) if is_goaway(&*error) => {}
                answer => return answer.map_err(|error| format!("{error:?}")),
            }
        }
    }

    /// Sends a request and reads the complete response.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.try_call(method, path, headers, body).await.unwrap()
    }

    /// The same for a server that may be gone, which is an error. Panics if there is no response in time.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn try_call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        read(self.send(method, path, headers, body.into()).await?).await
    }

    /// Waits until the server is ready, with all that it makes at its start.
    pub async fn until_ready(&self) {
        let ready = async {
            while self.get("/readyz").await.code != 200 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ready = tokio::time::timeout(2 * PATIENCE, ready).await;
        ready.expect("the server gets ready");
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "").await
    }
    /// A list, asked for again while the server refuses it with 429 because its cache is still being filled: a server is
    /// ready before that.
    pub async fn list(&self, path: &str) -> Value {
        let started = Instant::now();
        loop {
            let answer = self.get(path).await;
            match answer.code {
                200 => return answer.json(),
                429 if started.elapsed() < PATIENCE => tokio::time::sleep(AGAIN).await,
                code => panic!("{path}: {code}: {}", answer.text()),
            }
        }
    }
    /// POST of a JSON document.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }
    /// PUT of a JSON document.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(
            "PUT",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }
    /// DELETE with options in the body; `null` sends none.
    pub async fn delete(&self, path: &str, options: &Value) -> Answer {
        let body = if options.is_null() {
            String::new()
        } else {
            options.to_string()
        };
        self.call(
            "DELETE",
            path,
            &[("content-type", "application/json")],
            body,
        )
        .await
    }
    /// JSON merge patch.
    pub async fn merge(&self, path: &str, patch: &Value) -> Answer {
        self.call(
            "PATCH",
            path,
            &[("content-type", "application/merge-patch+json")],
            patch.to_string(),
        )
        .await
    }
    /// Strategic merge patch.
    pub async fn strategic(&self, path: &str, patch: &Value) -> Answer {
        self.call(
            "PATCH",
            path,
            &[("content-type", "application/strategic-merge-patch+json")],
            patch.to_string(),
        )
        .await
    }

    /// JSON patch.
    pub async fn json_patch(&self, path: &str, patch: &Value) -> Answer {
        self.call(
            "PATCH",
            path,
            &[("content-type", "application/json-patch+json")],
            patch.to_string(),
        )
        .await
    }
    /// Opens a watch; the response must be 200.
    pub async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }
    /// The same with another `Accept` header.
    pub async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        self.try_watch_as(path, accept).await.unwrap()
    }
    /// The same for a server that may be gone.
    ///
    /// # Errors
    /// The error of the connection, or another status than 200.
    pub async fn try_watch_as(&self, path: &str, accept: &str) -> Result<Watch, NoWatch> {
        let headers = [("accept", accept)];
        let response = self.send(Method::GET, path, &headers, Bytes::new()).await;
        let response = response.map_err(NoWatch::Disconnected)?;
        if response.status() != 200 {
            return Err(NoWatch::Refused(response.status()));
        }
        let (parts, body) = response.into_parts();
        Ok(Watch {
            headers: parts.headers,
            body,
            buffer: Vec::new(),
        })
    }
}

/// Why a watch was not opened.
#[derive(Debug)]
pub enum NoWatch {
    /// The connection failed.
    Disconnected(String),
    /// The server answered with an error.
    Refused(StatusCode),
}

/// A WebSocket connection.
pub type WebSocket = tokio_tungstenite::WebSocketStream<TokioIo<Upgraded>>;

impl Client {
    /// Requests WebSocket over HTTP/1.1. Returns the response's code and headers, and with 101 the connection.
    pub async fn websocket(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (u16, HeaderMap, Option<WebSocket>) {
        let mut all = vec![
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (name, value) in headers {
            all.retain(|(other, _)| other != name);
            all.push((name, value));
        }
        let response = self.send(Method::GET, path, &all, Bytes::new()).await;
        let mut response = response.unwrap();
        let code = response.status().as_u16();
        let headers = response.headers().clone();
        if code != 101 {
            return (code, headers, None);
        }
        let upgraded = hyper::upgrade::on(&mut response).await.unwrap();
        let role = tokio_tungstenite::tungstenite::protocol::Role::Client;
        let socket = WebSocket::from_raw_socket(TokioIo::new(upgraded), role, None).await;
        (code, headers, Some(socket))
    }

    /// Switches to another protocol over HTTP/1.1.
    pub async fn upgrade(&self, path: &str, protocol: &str) -> TokioIo<Upgraded> {
        let headers = [("connection", "Upgrade"), ("upgrade", protocol)];
        let response = self.send(Method::GET, path, &headers, Bytes::new()).await;
        let mut response = response.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap())
    }

    /// Sends a CONNECT with this `:protocol` over HTTP/2 (none if empty). Returns the response, and with 200 the connection.
    pub async fn connect_over_http2(
        &self,
        path: &str,
        protocol: &str,
        headers: &[(&str, &str)],
    ) -> (Answer, Option<WebSocket>) {
        // It is the GET of another form of HTTP.
        let Self {
            connections,
            url,
            token,
            ..
        } = self.of_method(&Method::GET);
        // The server must have told its settings.
        self.get("/version").await;
        let mut request = Request::connect(format!("{url}{path}"));
        if !protocol.is_empty() {
            request = request.extension(hyper::ext::Protocol::from(protocol));
        }
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::default()).unwrap();
        let answer = tokio::time::timeout(PATIENCE, connections.send(request));
        let answer = answer.await;
        let mut response = answer
            .unwrap_or_else(|_| panic!("CONNECT {url}{path}: no answer in {PATIENCE:?}"))
            .unwrap();
        let mut socket = None;
        if response.status() == 200 {
            let upgraded = hyper::upgrade::on(&mut response).await.unwrap();
            let role = tokio_tungstenite::tungstenite::protocol::Role::Client;
            socket = Some(WebSocket::from_raw_socket(TokioIo::new(upgraded), role, None).await);
        }
        (read(response).await.unwrap(), socket)
    }

    /// The token that the client sends with GET.
    pub fn token(&self) -> &str {
        &self.of_method(&Method::GET).token
    }
}

/// An open watch.
pub struct Watch {
    headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
}

impl Watch {
    /// A header, empty when absent.
    pub fn header(&self, name: &str) -> &str {
        text_of(&self.headers, name)
    }

    /// The next event, `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        let line = self.line().await?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The next event as received, `None` at the end of the stream. Panics if the stream breaks.
    pub async fn line(&mut self) -> Option<String> {
        let line = self.try_line().await.unwrap();
        assert!(line.is_some() || self.buffer.is_empty(), "half an event");
        line
    }

    /// The next event as received, from a server that may end at any time.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn try_line(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(line) = self.taken() {
                return Ok(Some(line));
            }
            let more = tokio::time::timeout(PATIENCE, self.more());
            if !more.await.expect("no event in time")? {
                return Ok(None);
            }
        }
    }

    /// The same without a timeout: the caller limits the wait. Cancel-safe.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn line_or_end(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(line) = self.taken() {
                return Ok(Some(line));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// A buffered line, if there is one.
    fn taken(&mut self) -> Option<String> {
        let end = memchr::memchr(b'\n', &self.buffer)?;
        let rest = self.buffer.split_off(end + 1);
        let line = std::mem::replace(&mut self.buffer, rest);
        Some(String::from_utf8(line).unwrap())
    }

    /// Waits for more of the body; returns false at its end.
    async fn more(&mut self) -> Result<bool, String> {
        let Some(frame) = self.body.frame().await else {
            return Ok(false);
        };
        if let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() {
            self.buffer.extend_from_slice(&data);
        }
        Ok(true)
    }

    /// The next event of a watch in Protobuf, without its length; `None` at the end of the stream. Panics if the stream breaks.
    pub async fn frame(&mut self) -> Option<Vec<u8>> {
        let length = self.take(size_of::<u32>()).await?;
        let length = u32::from_be_bytes(length.try_into().unwrap());
        let event = self.take(length as usize).await;
        Some(event.expect("half an event"))
    }

    /// The next bytes, `None` at the end of the stream.
    async fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < len {
            let more = tokio::time::timeout(PATIENCE, self.more());
            if !more.await.expect("no event in time").unwrap() {
                assert!(self.buffer.is_empty(), "half an event");
                return None;
            }
        }
        Some(self.buffer.drain(..len).collect())
    }

    /// Every event up to the end of the stream.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// The next event that is not a bookmark; panics at the end of the stream.
    pub async fn event(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("the watch ended");
            if event["type"] != "BOOKMARK" {
                return event;
            }
        }
    }
}

/// Creates an object and returns it as in the server's response.
pub async fn created(client: &Client, path: &str, object: &Value) -> Value {
    let answer = client.post(path, object).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    answer.json()
}

/// The resourceVersion of an object or a list.
pub fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}
