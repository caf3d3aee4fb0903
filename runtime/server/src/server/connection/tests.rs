//! Connections over pipes, with paused time: when they are closed, and how much of a request is read.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::ext::Protocol as Protocol8441;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinHandle;

use super::*;

/// A served connection: the client's end, and the server's task.
struct Served {
    client: DuplexStream,
    ended: JoinHandle<Instant>,
    /// Dropped, it stops the server.
    shutdown: watch::Sender<()>,
}

/// Responds to `GET /slow` after an hour, to others immediately without reading their bodies, and closes after
/// `/last`.
fn serving(protocol: Protocol) -> Served {
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let (shutdown, stop) = watch::channel(());
    let handle = |request: Request<RequestBody>| async move {
        let path = request.uri().path().to_owned();
        drop(request);
        if path == "/slow" {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        let body = Full::new(Bytes::from_static(b"answer")).map_err(|never| match never {});
        let mut response = Response::new(body.boxed_unsync());
        if path == "/last" {
            let close = http::HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    };
    let ended = tokio::spawn(async move {
        // Only the time of the end matters, not its result.
        let _ = serve(ours, protocol, stop, handle).await;
        Instant::now()
    });
    Served {
        client,
        ended,
        shutdown,
    }
}

/// Reads the first response over HTTP/1.1 to its end.
async fn answer(client: &mut DuplexStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"answer") {
        assert_ne!(client.read_buf(&mut read).await.unwrap(), 0);
    }
    String::from_utf8(read).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_nothing_is_closed() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let begun = Instant::now();
        let served = serving(protocol);
        let after = served.ended.await.unwrap() - begun;
        assert!(after < HEADER_TIMEOUT + SECOND, "{protocol:?} {after:?}");
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// SETTINGS with one parameter: the limit for concurrent streams.
const ONE_SETTING: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_finish_the_preface_of_http2_is_closed() {
    let whole = [PREFACE, ONE_SETTING].concat();
    for length in [
        1,
        14,
        PREFACE.len(),
        PREFACE.len() + 2,
        PREFACE.len() + 9,
        whole.len() - 1,
    ] {
        let begun = Instant::now();
        let mut served = serving(Protocol::Http2);
        served.client.write_all(&whole[..length]).await.unwrap();
        let after = served.ended.await.unwrap() - begun;
        assert!(after < HEADER_TIMEOUT + SECOND, "{length} bytes: {after:?}");
    }
    // Single bytes do not extend the timeout.
    let begun = Instant::now();
    let Served {
        mut client,
        ended,
        shutdown: _shutdown,
    } = serving(Protocol::Http2);
    for byte in &whole {
        tokio::time::sleep(SECOND).await;
        if client.write_all(&[*byte]).await.is_err() {
            break;
        }
    }
    let after = ended.await.unwrap() - begun;
    assert!(after < HEADER_TIMEOUT + SECOND, "{after:?}");
}

/// A frame of HTTP/2 of the first stream.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let head = [0, 0, length, kind, flags, 0, 0, 0, 1];
    [&head, payload].concat()
}

/// What a handler reads of the body of a request with these frames after its head.
async fn body_of(frames: &[Vec<u8>]) -> Result<Bytes, String> {
    let (mut client, ours) = tokio::io::duplex(64 * 1024);
    let (read, mut reads) = tokio::sync::mpsc::unbounded_channel();
    let handle = move |request: Request<RequestBody>| {
        let read = read.clone();
        async move {
            let body = request.into_body().collect().await;
            let body = body.map(http_body_util::Collected::to_bytes);
            read.send(body.map_err(|error| error.to_string())).unwrap();
            Response::new(apiloom_http::full(Bytes::new()))
        }
    };
    let (_shutdown, stop) = watch::channel(());
    tokio::spawn(super::serve(ours, Protocol::Http2, stop, handle));
    // POST, https and /, which are fields 3, 7 and 4 of the static table.
    let head = frame(1, 4, &[0x83, 0x87, 0x84]);
    let sent = [
        &[PREFACE, ONE_SETTING, &head].concat(),
        &frames.concat()[..],
    ]
    .concat();
    client.write_all(&sent).await.unwrap();
    reads.recv().await.unwrap()
}

#[tokio::test]
async fn a_body_is_whole_if_its_client_says_so() {
    let (data, ends) = (frame(0, 0, b"a: 1\n"), frame(0, 1, b"b: 2\n"));
    let reset = |code: u8| frame(3, 0, &[0, 0, 0, code]);
    let whole = body_of(&[data.clone(), ends.clone()]).await;
    assert_eq!(whole.unwrap(), "a: 1\nb: 2\n");
    assert_eq!(body_of(&[ends, reset(0)]).await.unwrap(), "b: 2\n");
    // NO_ERROR, INTERNAL_ERROR and CANCEL.
    for code in [0, 2, 8] {
        let broken_off = body_of(&[data.clone(), reset(code)]).await;
        assert!(broken_off.is_err(), "{code}: {broken_off:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_that_do_not_end_are_closed() {
    let begun = Instant::now();
    let mut served = serving(Protocol::Http1);
    served
        .client
        .write_all(b"GET / HTTP/1.1\r\n")
        .await
        .unwrap();
    // Single header lines do not extend the timeout.
    let dribble = async {
        loop {
            tokio::time::sleep(10 * SECOND).await;
            if served.client.write_all(b"a: b\r\n").await.is_err() {
                return;
            }
        }
    };
    dribble.await;
    let after = served.ended.await.unwrap() - begun;
    assert!(after < HEADER_TIMEOUT + SECOND, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_http1_connection_is_kept_for_a_while_and_then_closed() {
    let mut served = serving(Protocol::Http1);
    for _ in 0..4 {
        // For longer than the timeout, at intervals below it.
        served
            .client
            .write_all(b"GET / HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        answer(&mut served.client).await;
        tokio::time::sleep(IDLE_TIMEOUT - SECOND).await;
        assert!(!served.ended.is_finished());
    }
    let idle = Instant::now();
    // The client can distinguish the end from a failure.
    assert_eq!(served.client.read(&mut [0; 10]).await.unwrap(), 0);
    assert!(served.ended.await.unwrap() - idle <= IDLE_TIMEOUT + SECOND);
}

#[tokio::test(start_paused = true)]
async fn headers_after_an_idle_time_have_their_own_limit() {
    let mut served = serving(Protocol::Http1);
    served
        .client
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    answer(&mut served.client).await;
    tokio::time::sleep(80 * SECOND).await;
    let begun = Instant::now();
    served.client.write_all(b"GET /").await.unwrap();
    let after = served.ended.await.unwrap() - begun;
    assert!(after < HEADER_TIMEOUT + SECOND, "{after:?}");
}

/// A request in progress has its own deadline, and a watch has none.
#[tokio::test(start_paused = true)]
async fn a_request_in_progress_keeps_its_connection() {
    let mut served = serving(Protocol::Http1);
    served
        .client
        .write_all(b"GET /slow HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let answer = answer(&mut served.client).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

async fn http2(client: DuplexStream) -> (Sender, JoinHandle<Result<(), hyper::Error>>) {
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client))
            .await
            .unwrap();
    (sender, tokio::spawn(connection))
}

async fn get(sender: &mut Sender, path: &str) -> Result<Bytes, hyper::Error> {
    let request = Request::get(format!("https://host{path}"));
    let request = request.body(Full::default()).unwrap();
    let response = sender.send_request(request).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

/// A client that answers pings but opens no streams is idle.
#[tokio::test(start_paused = true)]
async fn an_idle_http2_connection_ends_with_goaway() {
    let served = serving(Protocol::Http2);
    let (mut sender, connection) = http2(served.client).await;
    for _ in 0..4 {
        assert_eq!(get(&mut sender, "/").await.unwrap(), "answer");
        tokio::time::sleep(IDLE_TIMEOUT - SECOND).await;
        assert!(!served.ended.is_finished());
    }
    let idle = Instant::now();
    connection.await.unwrap().unwrap();
    assert!(served.ended.await.unwrap() - idle <= IDLE_TIMEOUT + SECOND);
}

/// A client that answers pings and never opens a stream is idle since its beginning.
#[tokio::test(start_paused = true)]
async fn an_http2_connection_without_streams_is_closed_as_an_idle_one() {
    let begun = Instant::now();
    let served = serving(Protocol::Http2);
    let (_sender, connection) = http2(served.client).await;
    connection.await.unwrap().unwrap();
    let after = served.ended.await.unwrap() - begun;
    let closed = IDLE_TIMEOUT + CLOSE_TIMEOUT;
    assert!(
        IDLE_TIMEOUT <= after && after <= closed + SECOND,
        "{after:?}"
    );
}

/// A response with `Connection: close` ends an HTTP/2 connection with GOAWAY, as in Go.
#[tokio::test(start_paused = true)]
async fn an_answer_that_closes_ends_an_http2_connection_when_others_have_ended() {
    let served = serving(Protocol::Http2);
    let (mut sender, connection) = http2(served.client).await;
    let mut other = sender.clone();
    let slow = tokio::spawn(async move { get(&mut other, "/slow").await.unwrap() });
    tokio::task::yield_now().await;
    assert_eq!(get(&mut sender, "/last").await.unwrap(), "answer");
    tokio::time::sleep(SECOND).await;
    assert!(sender.is_closed() || get(&mut sender, "/").await.is_err());
    assert_eq!(slow.await.unwrap(), "answer");
    connection.await.unwrap().unwrap();
    served.ended.await.unwrap();
}

/// A client that ignores GOAWAY is closed, with its requests in progress.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_go_away_is_closed() {
    let activity = Arc::new(Activity::default());
    let mut timing = Timing::new(Protocol::Http2, &activity);
    let _request = InProgress::begin(&activity);
    timing.close().unwrap();
    assert!(timing.close().is_none(), "it is told once");
    assert!(matches!(timing.expire(), TimerAction::Wait(_)));
    assert!(matches!(timing.expire(), TimerAction::Wait(_)));
    let _another = InProgress::begin(&activity);
    assert!(matches!(timing.expire(), TimerAction::End));
}

/// A connection whose CONNECT requests are upgraded. `serve` gets the upgraded stream; the client has this window.
async fn upgraded<F>(
    window: u32,
    serve: impl Fn(TokioIo<Upgraded>) -> F + Clone + Send + Sync + 'static,
) -> (TokioIo<Upgraded>, Sender, JoinHandle<Instant>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let handle = move |request: Request<RequestBody>| {
        let serve = serve.clone();
        let (mut parts, _) = request.into_parts();
        if let Some(on_upgrade) = parts.extensions.remove::<OnUpgrade>() {
            tokio::spawn(async move {
                serve(TokioIo::new(on_upgrade.await.unwrap())).await;
                // With the guard in them.
                drop(parts);
            });
        }
        std::future::ready(Response::new(apiloom_http::full(Bytes::new())))
    };
    let ended = tokio::spawn(async move {
        let (_shutdown, stop) = watch::channel(());
        let _ = super::serve(ours, Protocol::Http2, stop, handle).await;
        Instant::now()
    });
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (mut sender, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(
        get(&mut sender, "/").await.unwrap(),
        "",
        "settings are known"
    );
    let request = Request::connect("https://host/").extension(Protocol8441::from("websocket"));
    let request = request.body(Full::default()).unwrap();
    let mut response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let client = hyper::upgrade::on(&mut response).await.unwrap();
    (TokioIo::new(client), sender, ended)
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_http2_stream_keeps_its_connection_until_it_ends() {
    let (mut client, _sender, ended) = upgraded(1000, async |mut stream| {
        tokio::time::sleep(20 * IDLE_TIMEOUT).await;
        stream.write_all(b"late").await.unwrap();
        stream.shutdown().await.unwrap();
    })
    .await;
    let mut read = Vec::new();
    client.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"late");
    let idle = Instant::now();
    drop(client);
    assert!(ended.await.unwrap() - idle <= 2 * IDLE_TIMEOUT + CLOSE_TIMEOUT + SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_http2_stream_that_cannot_send_its_last_bytes_is_reset() {
    let (mut client, mut sender, _ended) = upgraded(0, async |mut stream| {
        stream.write_all(&[0; 1000]).await.unwrap();
        let flush = async {
            loop {
                stream.write_all(&[0; 1000]).await.unwrap();
            }
        };
        let flushed = tokio::time::timeout(Duration::from_secs(60), flush).await;
        assert!(flushed.is_err(), "the client accepts nothing");
    })
    .await;
    let begun = Instant::now();
    // Without the reset it would be pending for ever: its bytes are never sent.
    let read = client.read(&mut [0; 10]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(
        begun.elapsed() <= Duration::from_secs(66),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        get(&mut sender, "/").await.unwrap(),
        "",
        "the connection goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_the_pings_of_a_client_that_is_frozen() {
    let Served {
        mut client,
        ended,
        shutdown,
    } = serving(Protocol::Http2);
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    client
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    client.write_all(&settings).await.unwrap();
    client.read_exact(&mut [0; 9]).await.unwrap();
    let stopped = Instant::now();
    drop(shutdown);
    assert!(ended.await.unwrap() - stopped <= CLOSE_TIMEOUT + SECOND);
    // It was open until then.
    drop(client);
}

async fn post(head: &str, bytes: usize) -> (String, Served) {
    let mut served = serving(Protocol::Http1);
    let request = format!("POST / HTTP/1.1\r\n{head}\r\n\r\n");
    served.client.write_all(request.as_bytes()).await.unwrap();
    // The whole body is sent before anything is read, through a pipe with a much smaller buffer.
    let body = vec![b' '; 16 * 1024];
    for _ in 0..bytes / body.len() {
        served.client.write_all(&body).await.unwrap();
    }
    (answer(&mut served.client).await, served)
}

#[tokio::test(start_paused = true)]
async fn a_short_body_that_is_not_read_does_not_cost_the_connection() {
    let length = KEPT_BYTES;
    let (answer_1, mut served) = post(&format!("content-length: {length}"), length).await;
    assert!(!answer_1.contains("connection: close"), "{answer_1}");
    served
        .client
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    answer(&mut served.client).await;
}

const KEPT_BYTES: usize = 256 * 1024;

#[tokio::test(start_paused = true)]
async fn a_long_body_that_is_not_read_is_discarded_and_the_client_told_to_close() {
    let length = 50 * 1024 * 1024;
    let (answer, mut served) = post(&format!("content-length: {length}"), length).await;
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(served.client.read(&mut [0; 10]).await.unwrap(), 0);
    served.ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_that_is_not_read_is_told_to_close() {
    let (answer, _served) = post("transfer-encoding: chunked", 0).await;
    assert!(answer.contains("connection: close"), "{answer}");
}

/// The discarded part of a body is limited, in bytes and in time.
#[tokio::test(start_paused = true)]
async fn a_body_without_end_is_not_discarded_for_ever() {
    let mut served = serving(Protocol::Http1);
    let head = b"POST / HTTP/1.1\r\ncontent-length: 1000000000000\r\n\r\n";
    served.client.write_all(head).await.unwrap();
    let mut sent = 0;
    let body = vec![b' '; 64 * 1024];
    while served.client.write_all(&body).await.is_ok() {
        sent += body.len();
        assert!(sent < 70 * 1024 * 1024);
    }
    served.ended.await.unwrap();

    let begun = Instant::now();
    let mut served = serving(Protocol::Http1);
    served.client.write_all(head).await.unwrap();
    while served.client.write_all(b"x").await.is_ok() {
        tokio::time::sleep(SECOND).await;
    }
    assert!(served.ended.await.unwrap() - begun < Duration::from_secs(90));
}

/// A client that waits for `100 Continue` does not get it, and does not have to wait.
#[tokio::test(start_paused = true)]
async fn a_body_that_was_not_asked_for_is_not_waited_for() {
    let head = "content-length: 100\r\nexpect: 100-continue";
    let (answer, mut served) = post(head, 0).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    let begun = Instant::now();
    assert_eq!(served.client.read(&mut [0; 10]).await.unwrap(), 0);
    assert!(begun.elapsed() < SECOND);
}

/// An HTTP/2 connection begins with the settings of kube-apiserver.
#[tokio::test(start_paused = true)]
async fn http2_settings_are_those_of_kube_apiserver() {
    const SETTINGS: u8 = 4;
    let mut served = serving(Protocol::Http2);
    // The preface and an empty SETTINGS frame.
    let begin = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(),
        &[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0],
    ];
    served.client.write_all(&begin.concat()).await.unwrap();
    let mut head = [0; 9];
    served.client.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], SETTINGS);
    let mut frame = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    served.client.read_exact(&mut frame).await.unwrap();
    let mut settings: Vec<(u8, u32)> = frame
        .chunks_exact(6)
        .map(|setting| {
            (
                setting[1],
                u32::from_be_bytes(setting[2..].try_into().unwrap()),
            )
        })
        .collect();
    settings.sort_unstable();
    let [streams, window, frame, headers] = [3, 4, 5, 6];
    let expected = [
        (streams, 100),
        (window, 256 * 1024),
        (frame, 256 * 1024),
        (headers, 1024 * 1024),
    ];
    for setting in expected {
        assert!(settings.contains(&setting), "{setting:?} in {settings:?}");
    }
}

/// A request line and headers of almost 1 MiB; longer URIs are refused by the http crate.
#[tokio::test(start_paused = true)]
async fn long_uris_and_headers_are_read() {
    let path = format!("/?{}", "x".repeat(60_000));
    let header = "y".repeat(15_000);
    // Each header with its own name, as some clients send them.
    let headers: Vec<(String, &str)> = (0..60).map(|i| (format!("h-{i}"), &*header)).collect();

    let mut served = serving(Protocol::Http1);
    let mut request = format!("GET {path} HTTP/1.1\r\n");
    for (name, value) in &headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    served.client.write_all(request.as_bytes()).await.unwrap();
    let read = answer(&mut served.client).await;
    assert!(read.starts_with("HTTP/1.1 200"), "{read}");

    let served = serving(Protocol::Http2);
    let (mut sender, _connection) = http2(served.client).await;
    // Frames are as large as the server allows once the client has its settings.
    get(&mut sender, "/").await.unwrap();
    let mut request = Request::get(format!("https://host{path}"));
    for (name, value) in &headers {
        request = request.header(name, *value);
    }
    let request = request.body(Full::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
}
