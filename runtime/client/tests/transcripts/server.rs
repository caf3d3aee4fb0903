//! Answers of a server as they are on the wire, given by a transport in the process and by a socket of the system.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use apiloom_client::transport::HttpTransport;
use apiloom_client::{Body, Client, Transport, TransportError};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of a body that arrive together: events and numbers are torn apart.
const PIECE: usize = 11;

/// An answer of a server.
#[derive(Clone)]
pub(crate) struct Answer {
    code: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Whether the body goes on, as that of a watch.
    is_open: bool,
}

impl Answer {
    /// Reads a transcript: code and media type, other headers, an empty line, and the body.
    pub(crate) fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\n\n").unwrap();
        let mut lines = head.lines();
        let (code, media_type) = lines.next().unwrap().split_once(' ').unwrap();
        let mut headers = vec![("Content-Type".to_owned(), media_type.to_owned())];
        headers.extend(lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        }));
        Self {
            code: code.parse().unwrap(),
            headers,
            body: body.as_bytes().to_vec(),
            is_open: false,
        }
    }

    /// A body that does not end.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    pub(crate) fn gzip(mut self) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&self.body).unwrap();
        self.body = encoder.finish().unwrap();
        for (name, value) in [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")] {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    fn response(self) -> Response<Body> {
        let mut response = Response::builder().status(self.code);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let pieces: Vec<_> = self
            .body
            .chunks(PIECE)
            .map(Bytes::copy_from_slice)
            .collect();
        let pieces = stream::iter(
            pieces
                .into_iter()
                .map(|piece| Ok::<_, Infallible>(Frame::data(piece))),
        );
        let body = if self.is_open {
            Body::new(StreamBody::new(pieces.chain(stream::pending())))
        } else {
            Body::new(StreamBody::new(pieces))
        };
        response.body(body).unwrap()
    }

    /// Writes it as HTTP/1.1 in chunks.
    async fn write(self, socket: &mut TcpStream) -> std::io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} Code\r\nTransfer-Encoding: chunked\r\n",
            self.code
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await?;
        for piece in self.body.chunks(PIECE) {
            socket
                .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
                .await?;
            socket.write_all(piece).await?;
            socket.write_all(b"\r\n").await?;
        }
        if self.is_open {
            // Until the client closes the connection.
            while socket.read(&mut [0; 100]).await? > 0 {}
            return Ok(());
        }
        socket.write_all(b"0\r\n\r\n").await
    }
}

/// Gives answers one after the other. A request after the last one is not answered.
#[derive(Clone, Default)]
pub(crate) struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn new(answers: &[Answer]) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.iter().cloned().collect())),
            requests: Arc::default(),
        }
    }

    /// Methods and paths of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn next(&self, method: &str, path: &str) -> Option<Answer> {
        self.requests
            .lock()
            .unwrap()
            .push(format!("{method} {path}"));
        self.answers.lock().unwrap().pop_front()
    }

    async fn serve(self, mut socket: TcpStream) -> std::io::Result<()> {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await?);
            }
            let head = String::from_utf8(head).unwrap();
            let mut line = head.lines().next().unwrap().split(' ');
            let (method, path) = (line.next().unwrap(), line.next().unwrap());
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let length = lines
                .filter(|(name, _)| *name == "content-length")
                .find_map(|(_, length)| length.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            socket.read_exact(&mut body).await?;
            match self.next(method, path) {
                Some(answer) => answer.write(&mut socket).await?,
                None => std::future::pending().await,
            }
        }
    }
}

impl Transport for Server {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let answer = self.next(request.method().as_str(), &request.uri().to_string());
        async move {
            match answer {
                Some(answer) => Ok(answer.response()),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

/// A check of a client against a server.
pub(crate) type Check = fn(Client, Server) -> Pin<Box<dyn Future<Output = ()>>>;

/// Runs a check with a transport in the process, and with a socket. What is compressed is for the socket alone: the transport
/// over the network is what decodes it.
pub(crate) async fn both(answers: &[Answer], check: Check) {
    if answers.iter().all(|answer| {
        answer
            .headers
            .iter()
            .all(|(name, _)| name != "Content-Encoding")
    }) {
        let server = Server::new(answers);
        check(Client::new(server.clone()), server).await;
    }
    let server = Server::new(answers);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepting = server.clone();
    let accepting = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            // An error means that the client has closed the connection.
            tokio::spawn(accepting.clone().serve(socket).map(drop));
        }
    });
    let transport = HttpTransport::builder(&url).build().unwrap();
    check(Client::new(transport), server).await;
    accepting.abort();
}
