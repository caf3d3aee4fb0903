//! The attackers' protocols: TCP, TLS, raw HTTP/1.1, and HTTP/2 with open or closed windows.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use apiloom_tests::{Access, Server};
use bytes::Bytes;
use futures_util::future::try_join_all;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The receive buffer of a client that does not read: small, so that responses wait in the server and not in the
/// kernel.
const SMALL_BUFFER: u32 = 4096;

/// The maximum window of HTTP/2.
pub(crate) const OPEN: u32 = (1 << 31) - 1;
/// A window that allows no byte of a body.
pub(crate) const CLOSED: u32 = 0;

/// A connection with TLS.
pub(crate) type Tls = TlsStream<TcpStream>;

/// The attacked server, and the attackers' credentials.
#[derive(Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    url: String,
    token: String,
    tls: rustls::ClientConfig,
}

impl Target {
    pub(crate) fn of(server: &Server) -> Self {
        let Access { url, token, tls } = Access::read(server.kubeconfig());
        let address = url.strip_prefix("https://").unwrap().parse().unwrap();
        Self {
            address,
            url,
            token,
            tls,
        }
    }

    /// The same server for a client without credentials.
    pub(crate) fn anonymous(&self) -> Self {
        Self {
            token: String::new(),
            ..self.clone()
        }
    }

    /// A connection without TLS.
    pub(crate) async fn tcp(&self) -> io::Result<TcpStream> {
        TcpStream::connect(self.address).await
    }

    /// A TLS connection with this protocol, `http/1.1` or `h2`.
    pub(crate) async fn tls(&self, protocol: &str) -> io::Result<Tls> {
        self.tls_over(self.tcp().await?, protocol).await
    }

    /// The same for a client with a small receive buffer.
    pub(crate) async fn tls_of_slow_reader(&self, protocol: &str) -> io::Result<Tls> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(SMALL_BUFFER)?;
        self.tls_over(socket.connect(self.address).await?, protocol)
            .await
    }

    async fn tls_over(&self, stream: TcpStream, protocol: &str) -> io::Result<Tls> {
        stream.set_nodelay(true)?;
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![protocol.into()];
        let name = ServerName::from(self.address.ip());
        TlsConnector::from(Arc::new(tls))
            .connect(name, stream)
            .await
    }

    /// The head of an HTTP/1.1 request, with the credentials.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if !self.token.is_empty() {
            head += &format!("authorization: Bearer {}\r\n", self.token);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        head.into_bytes()
    }

    /// The fields of an HTTP/2 request, with the credentials.
    pub(crate) fn block(&self, method: &str, path: &str) -> Vec<u8> {
        let authority = self.address.to_string();
        let bearer = format!("Bearer {}", self.token);
        let mut fields = vec![
            (":method", method),
            (":scheme", "https"),
            (":authority", &authority),
            (":path", path),
        ];
        if !self.token.is_empty() {
            fields.push(("authorization", &bearer));
        }
        apiloom_tests::frames::block(&fields)
    }

    /// An HTTP/2 connection with this initial window for each response.
    pub(crate) async fn http2(&self, window: u32) -> io::Result<Http2> {
        let stream = match window {
            CLOSED => self.tls_of_slow_reader("h2").await?,
            _ => self.tls("h2").await?,
        };
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window);
        if window > CLOSED {
            builder.initial_connection_window_size(window);
        }
        let handshake = builder.handshake::<_, Bytes>(stream).await;
        let (send, connection) = handshake.map_err(io::Error::other)?;
        // Ends with the connection.
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Http2 {
            target: self.clone(),
            send,
            driver,
        })
    }

    /// Creates these objects below a path; all must be accepted.
    pub(crate) async fn create_all(&self, path: &str, objects: &[Value]) {
        let http2 = self.http2(OPEN).await.unwrap();
        for batch in objects.chunks(50) {
            let call = |object: &Value| {
                let body = Bytes::from(object.to_string());
                Call::new("POST", path).with_body("application/json", body)
            };
            let calls = batch.iter().map(|object| http2.call(call(object)));
            let answers = try_join_all(calls).await.unwrap();
            let refused = answers.iter().find(|answer| answer.code != 201);
            assert!(refused.is_none(), "{refused:?}");
        }
    }

    /// One GET over HTTP/1.1, on a connection of its own.
    pub(crate) async fn get_http1(&self, path: &str) -> io::Result<Answered> {
        let mut stream = self.tls("http/1.1").await?;
        let head = self.head("GET", path, &[("connection", "close")]);
        stream.write_all(&head).await?;
        // The TLS layer may still buffer what was written.
        stream.flush().await?;
        read_answer(&mut stream).await
    }

    /// Sends the head of a request over HTTP/1.1, which must succeed, and reads only the status code of the response.
    pub(crate) async fn open_http1(&self, head: &[u8]) -> Tls {
        let mut stream = self.tls_of_slow_reader("http/1.1").await.unwrap();
        stream.write_all(head).await.unwrap();
        stream.flush().await.unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&begin), "HTTP/1.1 200");
        stream
    }

    /// One call over an HTTP/2 connection of its own.
    pub(crate) async fn call(&self, call: Call<'_>) -> io::Result<Answered> {
        let http2 = self.http2(OPEN).await?;
        http2.call(call).await.map_err(io::Error::other)
    }
}

/// Reads an HTTP/1.1 response up to the end of the connection.
pub(crate) async fn read_answer(stream: &mut Tls) -> io::Result<Answered> {
    let mut bytes = Vec::new();
    // A response counts also if the connection is closed without TLS close_notify.
    let ended = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]).into_owned();
    let code = text
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok());
    match (code, ended) {
        (Some(code), _) => Ok(Answered {
            code,
            bytes: bytes.len(),
            text,
        }),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Bytes of a response that are kept for error messages.
const KEPT: usize = 300;

/// The result of a call.
#[derive(Clone)]
pub(crate) struct Answered {
    pub(crate) code: u16,
    /// The length of the body; over HTTP/1.1 including the head.
    pub(crate) bytes: usize,
    /// The beginning of the response.
    text: String,
}

impl fmt::Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes: {}", self.code, self.bytes, self.text)
    }
}

/// A request over HTTP/2.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: Option<Bytes>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(method: &'a str, path: &'a str) -> Self {
        Self {
            method,
            path,
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn with_header(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn with_body(mut self, content_type: &'a str, body: Bytes) -> Self {
        self.body = Some(body);
        self.with_header("content-type", content_type)
    }
}

/// An HTTP/2 connection; dropping it closes it.
pub(crate) struct Http2 {
    target: Target,
    send: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

impl Http2 {
    /// Sends a request with its body, if any, as soon as the connection allows another stream.
    pub(crate) async fn send(
        &self,
        call: Call<'_>,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let ends = call.body.is_none();
        let (answer, mut stream) = self.begin(&call, ends).await?;
        if let Some(body) = call.body {
            stream.send_data(body, true)?;
        }
        Ok((answer, stream))
    }

    /// Sends the head of a request; the caller sends the body unless the request ends with the head.
    pub(crate) async fn begin(
        &self,
        call: &Call<'_>,
        ends: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let target = &self.target;
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", target.url, call.path));
        if !target.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", target.token));
        }
        for (name, value) in &call.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let mut send = self.send.clone().ready().await?;
        send.send_request(request, ends)
    }

    /// Sends a request and waits for the head of the response; the body is not read.
    pub(crate) async fn open(&self, call: Call<'_>) -> Result<Unread, h2::Error> {
        let (answer, _) = self.send(call).await?;
        let answer = answer.await?;
        Ok(Unread {
            code: answer.status().as_u16(),
            _body: answer.into_body(),
        })
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Answered, h2::Error> {
        let (answer, _stream) = self.send(call).await?;
        let answer = answer.await?;
        let code = answer.status().as_u16();
        let mut body = answer.into_body();
        let (mut bytes, mut begin) = (0, Vec::new());
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            bytes += data.len();
            let kept = data.len().min(KEPT - begin.len());
            begin.extend_from_slice(&data[..kept]);
        }
        let text = String::from_utf8_lossy(&begin).into_owned();
        Ok(Answered { code, bytes, text })
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A response whose body is not read yet.
pub(crate) struct Unread {
    pub(crate) code: u16,
    _body: RecvStream,
}
