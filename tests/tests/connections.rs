//! Clients that use connections in unusual ways.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::convert::Infallible;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_tests::wardle::FISCHERS;
use apiloom_tests::{Client, Server, build};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Opens a connection to a server, given its port and data folder.
async fn connect(
    address: &str,
    data_dir: &Path,
    alpn: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let authority = std::fs::read(data_dir.join("pki/apiserver.crt"))?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(
        CertificateDer::pem_slice_iter(&authority).map(|der| der.unwrap()),
    );
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(tls))
        .connect(name, stream)
        .await
}

fn address(server: &Server) -> &str {
    server.url().trim_start_matches("https://")
}

fn token(server: &Server) -> String {
    std::fs::read_to_string(server.data_dir().join("admin.token")).unwrap()
}

/// A request of a test without its body.
struct Post<'a> {
    path: &'a str,
    /// Empty for none.
    token: &'a str,
    content_type: &'a str,
    is_chunked: bool,
    length: usize,
}

impl Post<'_> {
    /// Sends everything over HTTP/1.1, then reads to the end of the connection, as simple clients do.
    async fn http1(&self, server: &Server) -> String {
        let mut stream = connect(address(server), server.data_dir(), b"http/1.1")
            .await
            .unwrap();
        let framing = if self.is_chunked {
            "transfer-encoding: chunked".to_owned()
        } else {
            format!("content-length: {}", self.length)
        };
        let authorization = match self.token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: x\r\n{authorization}content-type: {}\r\n{framing}\r\n\r\n",
            self.path, self.content_type
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let piece = vec![b' '; 16_000];
        let mut rest = self.length;
        while rest > 0 {
            let now = rest.min(piece.len());
            if self.is_chunked {
                stream
                    .write_all(format!("{now:x}\r\n").as_bytes())
                    .await
                    .unwrap();
            }
            stream.write_all(&piece[..now]).await.unwrap();
            if self.is_chunked {
                stream.write_all(b"\r\n").await.unwrap();
            }
            rest -= now;
        }
        if self.is_chunked {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let mut answer = Vec::new();
        // Ends with the connection, which the server must close with TLS close_notify, or reading fails.
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Sends it over HTTP/2; returns the status code, and how much of the body could be sent.
    async fn http2(&self, server: &Server) -> (u16, usize) {
        let stream = connect(address(server), server.data_dir(), b"h2")
            .await
            .unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        let connection = tokio::spawn(connection);
        let sent = Arc::new(AtomicUsize::new(0));
        let (counted, all_sent) = (Arc::clone(&sent), Arc::new(tokio::sync::Notify::new()));
        let (last, length) = (Arc::clone(&all_sent), self.length);
        let frames = futures_util::stream::unfold(0, move |before| {
            counted.store(before, Ordering::Relaxed);
            let piece = (length - before).min(16_000);
            if piece == 0 {
                last.notify_one();
            }
            let frame =
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 16_000][..piece])));
            std::future::ready((piece > 0).then_some((frame, before + piece)))
        });
        let mut request = Request::post(format!("https://x{}", self.path))
            .header("content-type", self.content_type);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        if !self.is_chunked {
            request = request.header("content-length", self.length);
        }
        let request = request.body(StreamBody::new(frames)).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let code = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        // A client that sends its whole body although it has its response must not get an error.
        let _ = tokio::time::timeout(Duration::from_secs(10), all_sent.notified()).await;
        drop(sender);
        connection.abort();
        (code, sent.load(Ordering::Relaxed))
    }
}

/// A tunnel would reach every address that the server can reach.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_over_http1_opens_no_tunnel() {
    let server = Server::start(&["--storage-backend=memory"]);
    let authorization = format!("authorization: Bearer {}", token(&server));
    for target in [address(&server), "/version", "https://x/version"] {
        let mut stream = connect(address(&server), server.data_dir(), b"http/1.1")
            .await
            .unwrap();
        let upgrade = "connection: upgrade\r\nupgrade: websocket";
        let head = format!(
            "CONNECT {target} HTTP/1.1\r\nhost: x\r\n{authorization}\r\n{upgrade}\r\n\r\nGET /version HTTP/1.1\r\nhost: x\r\n{authorization}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // hyper ends a connection without close_notify if it was asked for an upgrade, even if it was refused.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{target}: {answer}");
        assert!(
            answer.contains("CONNECT is supported only over HTTP/2"),
            "{target}: {answer}"
        );
        // The connection is still one of HTTP.
        assert!(answer.contains("HTTP/1.1 200 OK"), "{target}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_reaches_a_client_that_sends_its_whole_body_first() {
    let server = Server::start(&["--storage-backend=memory"]);
    let admin = token(&server);
    let json = "application/json";
    let cases = [
        (413, FISCHERS, admin.as_str(), json),
        (401, FISCHERS, "wrong", json),
        (403, FISCHERS, "", json),
        (404, "/apis/nothing.example.com/v1/things", &admin, json),
        (405, &format!("{FISCHERS}/a"), &admin, json),
        (415, FISCHERS, &admin, "text/html"),
    ];
    for (code, path, token, content_type) in cases {
        let lengths = match code {
            413 => vec![3_150_000, 50_000_000],
            _ => vec![1_000_000],
        };
        for length in lengths {
            for is_chunked in [false, true] {
                let post = Post {
                    path,
                    token,
                    content_type,
                    is_chunked,
                    length,
                };
                let answer = post.http1(&server).await;
                let expected = format!("HTTP/1.1 {code} ");
                assert!(
                    answer.starts_with(&expected),
                    "{length} {is_chunked}: {answer}"
                );
                assert!(
                    answer.contains("\r\nconnection: close\r\n"),
                    "{length} {is_chunked}: {answer}"
                );
                let answer = post.http2(&server).await;
                assert_eq!(answer, (code, length), "{path} {length} {is_chunked}");
            }
        }
    }
}

/// A server whose limit of open files is set by `ulimit`, and whose log is kept.
struct Limited {
    process: Child,
    dir: tempfile::TempDir,
    address: String,
}

impl Limited {
    fn start(ulimit: &str) -> Self {
        use std::io::BufRead as _;
        let dir = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let mut process = Command::new("sh")
            .args(["-c", &format!("ulimit {ulimit}; exec \"$@\""), "sh"])
            .arg(build("wardle-server"))
            .args(["--secure-port=0", "--data-dir"])
            .arg(dir.path().join("data"))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let stdout = process.stdout.take().unwrap();
        std::io::BufReader::new(stdout)
            .read_line(&mut ready)
            .unwrap();
        let url = ready
            .split_whitespace()
            .find(|word| word.starts_with("https://"));
        let address = url.unwrap().trim_start_matches("https://").to_owned();
        Self {
            process,
            dir,
            address,
        }
    }

    fn client(&self) -> Client {
        Client::new(&self.dir.path().join("data/admin.kubeconfig"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_soft_limit_of_open_files_is_raised_at_the_start() {
    let server = Limited::start("-S -n 100");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let mut words = line.split_whitespace().skip(3);
    let (soft, hard) = (words.next().unwrap(), words.next().unwrap());
    assert_eq!(soft, hard);
    assert_ne!(soft, "100");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_new_clients_are_refused_and_old_ones_are_served() {
    let server = Limited::start("-n 200");
    let old = server.client();
    assert_eq!(old.get(FISCHERS).await.code, 200);
    // Many more than the limit, all of them idle.
    let mut others = Vec::new();
    for _ in 0..300 {
        others.push(TcpStream::connect(&server.address).await.unwrap());
    }
    // A refused one is closed, which shows that the limit is reached.
    let mut last = others.pop().unwrap();
    let closed = last.read(&mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    assert_eq!(old.get(FISCHERS).await.code, 200);
    let object = serde_json::json!({"metadata": {"name": "f"}, "disallowedFlunders": []});
    assert_eq!(
        old.post(FISCHERS, &object).await.code,
        201,
        "the store has files"
    );
    let data_dir = server.dir.path().join("data");
    assert!(connect(&server.address, &data_dir, b"h2").await.is_err());
    let log = server.log();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("refusing new connections"), "{log}");
    drop(others);
    // The server notices closed connections after a while.
    let mut tries = 0;
    while connect(&server.address, &data_dir, b"h2").await.is_err() {
        tries += 1;
        assert!(tries < 1000);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(server.log().lines().count() <= 2, "{}", server.log());
}

/// Events that any client can cause without limit are not logged one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_write_no_log() {
    let server = Limited::start("-S -n 1000");
    let anonymous = server.client().anonymous();
    for path in [
        FISCHERS,
        "/nowhere",
        "/%zz",
        "/api/v1/watch",
        "/livez?verbose",
        "/a%00%0ab",
    ] {
        for _ in 0..5 {
            anonymous.get(path).await;
        }
    }
    let stranger = server.client().with_token("wrong");
    assert_eq!(stranger.get(FISCHERS).await.code, 401);
    let mut handshake = TcpStream::connect(&server.address).await.unwrap();
    handshake
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    // A TLS alert, or no data.
    let _ = handshake.read_to_end(&mut Vec::new()).await;
    let mut nonsense = connect(&server.address, &server.dir.path().join("data"), b"h2")
        .await
        .unwrap();
    nonsense.write_all(&[b'x'; 100]).await.unwrap();
    let _ = nonsense.read_to_end(&mut Vec::new()).await;
    assert_eq!(server.log(), "");
}

/// Contract 10.1, row 13: unauthenticated clients are told to reconnect over HTTP/2, others are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_credentials_gets_goaway() {
    let server = Server::start(&["--storage-backend=memory"]);
    let admin = token(&server);
    for (token, path, code, is_last) in [
        ("", "/livez", 200, true),
        ("", FISCHERS, 403, true),
        ("wrong", FISCHERS, 401, true),
        (admin.as_str(), FISCHERS, 200, false),
        (admin.as_str(), "/nowhere", 404, false),
    ] {
        let stream = connect(address(&server), server.data_dir(), b"h2")
            .await
            .unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        let connection = tokio::spawn(connection);
        let mut call = async || {
            let request = Request::get(format!("https://x{path}"));
            let request = match token {
                "" => request,
                token => request.header("authorization", format!("Bearer {token}")),
            };
            let body = http_body_util::Empty::<Bytes>::new();
            let response = sender.send_request(request.body(body).unwrap()).await?;
            assert!(response.headers().get("connection").is_none());
            Ok::<_, hyper::Error>(response.status().as_u16())
        };
        assert_eq!(call().await.unwrap(), code);
        if is_last {
            // Ends by itself, without an error.
            let ended = tokio::time::timeout(Duration::from_secs(20), connection);
            ended.await.unwrap().unwrap().unwrap();
        } else {
            assert_eq!(call().await.unwrap(), code);
            assert!(!connection.is_finished());
            connection.abort();
        }
    }
}
