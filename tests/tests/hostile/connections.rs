//! Connections that cost the server more than the client: half handshakes, idle connections, headers byte by byte,
//! resets and floods of HTTP/2 frames.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::arena::Arena;
use crate::wire::{Call, Target, Tls};
use apiloom_tests::frames::{
    self, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM,
    SETTINGS, WINDOW_UPDATE,
};

/// The beginning of a ClientHello of TLS 1.3, which says that 508 bytes follow.
const HALF_HELLO: [u8; 12] = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 0];

/// A handshake takes less than this if the server accepts the connection, on a busy machine too.
const SOON: Duration = Duration::from_secs(5);

/// 5,000 of them, 500 at a time: more would end at the limit of open files of this process, not of the server.
#[test]
fn half_handshakes() {
    let half_handshake = async |target: &Target| -> io::Result<TcpStream> {
        let mut stream = target.tcp().await?;
        stream.write_all(&HALF_HELLO).await?;
        Ok(stream)
    };
    // A connection in its handshake holds its buffers, some 20 KiB.
    Arena::start(&[]).withstands("half handshakes", 32, async |target| {
        let mut held = Vec::new();
        for _ in 0..10 {
            held.clear();
            // More at once would overflow the accept queue.
            for _ in 0..10 {
                let batch = (0..50).map(|_| half_handshake(&target));
                held.extend(join_all(batch).await.into_iter().map(Result::unwrap));
            }
        }
        held
    });
}

/// Point 13: clients that are idle after TLS use up the server's connections. Connected users are served, and new
/// clients too as soon as the idle ones are closed: after 32 s, the timeout for the first bytes of a request.
#[test]
fn silent_connections_up_to_the_file_limit() {
    Arena::with_files(256).withstands("silent connections", 32, async |target| {
        let mut silent = Vec::new();
        while silent.len() < 256 {
            let opened = (0..30).map(|_| tokio::time::timeout(SOON, target.tls("h2")));
            let before = silent.len();
            silent.extend(join_all(opened).await.into_iter().flatten().flatten());
            // At the limit they are refused. A few may have been too slow before.
            if silent.len() >= 100 && silent.len() < before + 30 {
                break;
            }
        }
        assert!(
            (100..256).contains(&silent.len()),
            "{} are connected",
            silent.len()
        );
        // The attack lasts until a new client is served, or until its timeout.
        loop {
            let newcomer = tokio::time::timeout(SOON, target.call(Call::new("GET", "/livez")));
            if matches!(newcomer.await, Ok(Ok(answer)) if answer.code == 200) {
                return silent;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    });
}

/// Heads of requests that come byte by byte, over HTTP/1.1 and as CONTINUATION frames of HTTP/2.
#[test]
fn slow_headers() {
    let arena = Arena::start(&[]);
    // A connection holds its buffers of TLS and HTTP, some 40 KiB.
    arena.withstands("slow headers, HTTP/1.1", 48, async |target| {
        let begin = b"GET /livez HTTP/1.1\r\nx: ".to_vec();
        drip(&target, "http/1.1", begin, b"x".to_vec()).await
    });
    arena.withstands("slow headers, HTTP/2", 48, async |target| {
        let block = target.block("GET", "/livez");
        let mut begin = frames::preface();
        frames::push(&mut begin, HEADERS, END_STREAM, 1, &block[..20]);
        let mut next = Vec::new();
        frames::push(&mut next, CONTINUATION, 0, 1, &block[20..21]);
        drip(&target, "h2", begin, next).await
    });
}

/// Opens 200 connections that send `begin`, and then `next` every now and then.
async fn drip(target: &Target, protocol: &str, begin: Vec<u8>, next: Vec<u8>) -> JoinSet<()> {
    let mut slow = JoinSet::new();
    for _ in 0..4 {
        let opened = join_all((0..50).map(|_| target.tls(protocol))).await;
        for stream in opened {
            let (mut stream, begin, next) = (stream.unwrap(), begin.clone(), next.clone());
            slow.spawn(async move {
                // The server may close the connection at any time.
                let mut result = stream.write_all(&begin).await;
                while result.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    result = stream.write_all(&next).await;
                }
            });
        }
    }
    slow
}

/// 10,000 requests for expensive lists that are reset at once (CVE-2023-44487).
#[test]
fn rapid_reset() {
    let arena = Arena::start(&[]);
    arena.withstands("rapid reset", 32, async |target| {
        let block = target.block("GET", "/openapi/v2");
        let mut resets = frames::preface();
        for index in 0..500 {
            let stream = 2 * index + 1;
            let ends = END_STREAM | END_HEADERS;
            frames::push(&mut resets, HEADERS, ends, stream, &block);
            frames::push(&mut resets, RST_STREAM, 0, stream, &CANCEL);
        }
        for _ in 0..20 {
            let mut stream = target.tls("h2").await.unwrap();
            // The server may close the connection at any time.
            let _ = stream.write_all(&resets).await;
            until_closed_or_quiet(&mut stream).await;
        }
    });
}

/// Frames without content, or which the server must answer, sent without end by clients that do not read.
#[test]
fn floods_of_frames() {
    let arena = Arena::start(&[]);
    let flood = |name: &str, kind: u8, stream: u32, payload: &[u8]| {
        let mut pieces = Vec::new();
        while pieces.len() < 64 * 1024 {
            frames::push(&mut pieces, kind, 0, stream, payload);
        }
        arena.withstands(name, 32, async |target| {
            let mut begin = frames::preface();
            // A request with a complete head and no body yet, for the frames of a stream.
            let block = target.block("POST", apiloom_tests::wardle::FLUNDERS);
            let flags = if kind == CONTINUATION { 0 } else { END_HEADERS };
            frames::push(&mut begin, HEADERS, flags, 1, &block);
            let floods = (0..4).map(async |_| {
                let mut stream = target.tls_of_slow_reader("h2").await.unwrap();
                let send = async {
                    stream.write_all(&begin).await?;
                    for _ in 0..32 {
                        stream.write_all(&pieces).await?;
                    }
                    stream.flush().await
                };
                // The server may close the connection, or stop reading while its responses are not read.
                let _ = tokio::time::timeout(Duration::from_secs(1), send).await;
                stream
            });
            join_all(floods).await
        });
    };
    flood("PING flood", PING, 0, &[0; 8]);
    flood("SETTINGS flood", SETTINGS, 0, &[0, 3, 0, 0, 0, 100]);
    flood("WINDOW_UPDATE flood", WINDOW_UPDATE, 1, &[0, 0, 0, 1]);
    flood("PRIORITY flood", PRIORITY, 1, &[0, 0, 0, 3, 1]);
    flood("empty DATA flood", DATA, 1, &[]);
    flood("DATA flood of single bytes", DATA, 1, b" ");
    flood("empty CONTINUATION flood", CONTINUATION, 1, &[]);
    flood(
        "CONTINUATION flood",
        CONTINUATION,
        1,
        &frames::block(&[("x", "y")]),
    );
}

/// Reads until the server closes or sends nothing for a moment.
async fn until_closed_or_quiet(stream: &mut Tls) {
    let mut piece = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece);
        match tokio::time::timeout(Duration::from_millis(50), read).await {
            Ok(Ok(1..)) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
