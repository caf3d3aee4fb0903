//! The transport against small servers of plain HTTP/1.1 in the test.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A server that calls `serve` with each connection and its number.
async fn server<F, R>(serve: F) -> (HttpTransport, Arc<AtomicUsize>)
where
    F: Fn(TcpStream, usize) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let number = counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream, number));
        }
    });
    (HttpTransport::builder(&url).build().unwrap(), connections)
}

/// Reads a request up to its empty line; `None` at the end of the connection.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

#[tokio::test]
async fn a_transport_connects_elsewhere_and_keeps_the_names_of_its_url() {
    let (served, _) = server(async |mut stream: TcpStream, _| {
        let head = read_head(&mut stream).await.unwrap();
        let host = head.lines().find(|line| line.starts_with("host:"));
        let host = host.unwrap_or_default();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{host}",
            host.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let port = served.inner.origin.port;
    let builder = HttpTransport::builder("http://hook.default.svc:8443");
    let transport = builder.connect_to("127.0.0.1", port).build().unwrap();
    assert_eq!(text(&transport, "/").await, "host: hook.default.svc:8443");
}

fn get(path: &str) -> Request<Body> {
    let request = Request::builder().uri(path);
    request.body(Body::empty()).unwrap()
}

async fn text(transport: &HttpTransport, path: &str) -> String {
    let response = transport.call(get(path)).await.unwrap();
    let bytes = response.into_body().collect(1000).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn echo(mut stream: TcpStream, _: usize) {
    while let Some(head) = read_head(&mut stream).await {
        let line = head.lines().next().unwrap();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{line}",
            line.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn one_connection_serves_requests_one_after_the_other() {
    let (transport, connections) = server(echo).await;
    for _ in 0..5 {
        assert_eq!(text(&transport, "/a?b=c").await, "GET /a?b=c HTTP/1.1");
        // The task of the connection has to see that the response has ended.
        tokio::task::yield_now().await;
    }
    assert!(connections.load(Ordering::SeqCst) <= 2);
    let open = transport.call(get("/1")).await.unwrap();
    assert_eq!(text(&transport, "/2").await, "GET /2 HTTP/1.1");
    drop(open);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_used() {
    let (transport, connections) = server(|mut stream, _| async move {
        if read_head(&mut stream).await.is_some() {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    for _ in 0..20 {
        let mut post = get("/");
        *post.method_mut() = http::Method::POST;
        let sent = transport.call(post).await;
        // The server may close the connection just when the request is on its way: then it fails, and is not repeated.
        if let Ok(response) = sent {
            response.into_body().collect(10).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(connections.load(Ordering::SeqCst) >= 15);
}

/// A server that answers the first request of each connection, and ends the connection when it gets the second one. Counts them all.
async fn server_that_ends_kept_connections() -> (HttpTransport, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let (transport, _) = server(move |mut stream, _| {
        let counter = Arc::clone(&counter);
        async move {
            let mut answer = Some(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            while read_head(&mut stream).await.is_some() {
                counter.fetch_add(1, Ordering::SeqCst);
                let Some(answer) = answer.take() else {
                    return;
                };
                stream.write_all(answer).await.unwrap();
            }
        }
    })
    .await;
    (transport, requests)
}

#[tokio::test]
async fn a_read_is_repeated_when_a_kept_connection_ends() {
    let (transport, requests) = server_that_ends_kept_connections().await;
    let mut sent = 0;
    // Until connections were kept several times.
    while requests.load(Ordering::SeqCst) < sent + 5 {
        assert_eq!(text(&transport, "/").await, "ok");
        // The task of the connection has to see that the response has ended.
        tokio::task::yield_now().await;
        sent += 1;
        assert!(sent < 10_000, "no connection is kept");
    }
}

#[tokio::test]
async fn a_write_is_not_repeated_when_a_kept_connection_ends() {
    let (transport, requests) = server_that_ends_kept_connections().await;
    for sent in 1..10_000 {
        let mut post = get("/");
        *post.method_mut() = http::Method::POST;
        match transport.call(post).await {
            Ok(response) => response.into_body().collect(10).await.unwrap(),
            Err(error) => {
                assert!(!error.is_unsent(), "{error}");
                assert_eq!(requests.load(Ordering::SeqCst), sent);
                return;
            }
        };
        tokio::task::yield_now().await;
    }
    panic!("no connection is kept");
}

#[tokio::test]
async fn a_refused_connection_is_unsent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let transport = HttpTransport::builder(&url).build().unwrap();
    let error = transport.call(get("/")).await.unwrap_err();
    assert!(error.is_unsent(), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_is_not_unsent() {
    let (transport, _) = server(|mut stream, _| async move {
        read_head(&mut stream).await;
    })
    .await;
    let error = transport.call(get("/")).await.unwrap_err();
    assert!(!error.is_unsent(), "{error}");
}

#[tokio::test]
async fn a_switched_connection_is_the_callers() {
    let (transport, _) = server(|mut stream, _| async move {
        let head = read_head(&mut stream).await.unwrap();
        assert!(head.contains("upgrade: echo"), "{head}");
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        let byte = stream.read_u8().await.unwrap();
        stream.write_u8(byte + 1).await.unwrap();
    })
    .await;
    let mut request = get("/");
    let headers = request.headers_mut();
    headers.insert("connection", HeaderValue::from_static("upgrade"));
    headers.insert("upgrade", HeaderValue::from_static("echo"));
    let mut response = transport.call(request).await.unwrap();
    assert_eq!(response.status(), 101);
    let mut io = crate::transport::upgraded(&mut response).await.unwrap();
    let error = crate::transport::upgraded(&mut response).await.unwrap_err();
    assert!(error.to_string().contains("taken already"), "{error}");
    io.write_u8(7).await.unwrap();
    assert_eq!(io.read_u8().await.unwrap(), 8);
}

#[cfg(feature = "tls")]
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_the_handshake_times_out() {
    // The listener accepts, and no TLS answer ever comes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let options = TlsOptions {
        accepts_any_certificate: true,
        ..TlsOptions::default()
    };
    let transport = HttpTransport::builder(&url).tls(options).build().unwrap();
    let error = transport.call(get("/")).await.unwrap_err();
    assert!(error.to_string().contains("within 30s"), "{error}");
}

#[cfg(feature = "tls")]
#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_one_connection_fail_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let options = TlsOptions {
        accepts_any_certificate: true,
        ..TlsOptions::default()
    };
    let transport = HttpTransport::builder(&url).tls(options).build().unwrap();
    let began = tokio::time::Instant::now();
    let requests = (0..20).map(|_| transport.call(get("/")));
    for result in futures_util::future::join_all(requests).await {
        let error = result.unwrap_err();
        assert!(error.is_unsent(), "{error}");
        assert!(error.to_string().contains("within 30s"), "{error}");
    }
    assert_eq!(began.elapsed().as_secs(), 30);
}

/// Polls a future for the first time.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_connection_outlives_the_caller_that_asked_for_it() {
    let (transport, connections) = server(echo).await;
    let mut first = transport.call(get("/given-up"));
    // Begins to connect, and gives up before the connection is there.
    assert!(poll_once(&mut first).is_pending());
    drop(first);
    while connections.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&transport, "/next").await, "GET /next HTTP/1.1");
    assert!(connections.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn requests_of_another_runtime_are_not_left_waiting() {
    let (transport, _) = server(echo).await;
    let in_thread = transport.clone();
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // The runtime ends while the connection is being made.
        runtime.unwrap().block_on(async {
            let mut first = in_thread.call(get("/"));
            assert!(poll_once(&mut first).is_pending());
        });
    });
    other.join().unwrap();
    assert_eq!(text(&transport, "/next").await, "GET /next HTTP/1.1");
}

#[cfg(feature = "tls")]
#[test]
fn malformed_options_are_errors() {
    let build = |options: TlsOptions| HttpTransport::builder("https://a").tls(options).build();
    let pem = || Some(b"none".to_vec());
    for options in [
        TlsOptions {
            authorities: pem(),
            ..TlsOptions::default()
        },
        TlsOptions {
            accepts_any_certificate: true,
            certificate: pem(),
            ..TlsOptions::default()
        },
        TlsOptions {
            accepts_any_certificate: true,
            key: pem(),
            ..TlsOptions::default()
        },
        TlsOptions {
            accepts_any_certificate: true,
            server_name: Some("a b".to_owned()),
            ..TlsOptions::default()
        },
    ] {
        assert!(build(options).is_err());
    }
}
