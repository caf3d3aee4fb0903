//! Bodies that arrive slowly, that are not needed, or whose clients disconnect before the response.

use std::time::Duration;

use apiloom_tests::wardle::{ALL_FLUNDERS, FISCHERS, FLUNDERS};
use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use crate::arena::Arena;
use crate::wire::{Call, OPEN, Target, read_answer};

/// Just below the largest body.
const LARGE: usize = 3 * 1024 * 1024 - 1024;

const JSON: &str = "application/json";

/// A fischer of this size, which is one string.
fn large_fischer(bytes: usize) -> Bytes {
    let text = "x".repeat(bytes);
    let object = json!({"metadata": {"generateName": "large-"}, "disallowedFlunders": [text]});
    object.to_string().into()
}

/// 150 bodies that arrive byte by byte: fewer than the limit of mutating requests in flight, above which every user
/// gets 429.
#[test]
fn slow_bodies() {
    let arena = Arena::start(&[]);
    let length = LARGE.to_string();
    arena.withstands("slow bodies, HTTP/1.1", 48, async |target| {
        let headers = [("content-type", JSON), ("content-length", &length)];
        let head = target.head("POST", FLUNDERS, &headers);
        let mut slow = JoinSet::new();
        for _ in 0..3 {
            let opened = join_all((0..50).map(|_| target.tls("http/1.1"))).await;
            for stream in opened {
                let (mut stream, head) = (stream.unwrap(), head.clone());
                slow.spawn(async move {
                    // The server may close the connection at any time.
                    let mut result = stream.write_all(&head).await;
                    while result.is_ok() {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        result = stream.write_all(b" ").await;
                    }
                });
            }
        }
        slow
    });
    arena.withstands("slow bodies, HTTP/2", 48, async |target| {
        let mut slow = JoinSet::new();
        for _ in 0..3 {
            let http2 = target.http2(OPEN).await.unwrap();
            for _ in 0..50 {
                let call = Call::new("POST", FLUNDERS).with_header("content-type", JSON);
                let (answer, mut stream) = http2.begin(&call, false).await.unwrap();
                slow.spawn(async move {
                    while stream.send_data(" ".into(), false).is_ok() {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    drop(answer);
                });
            }
            slow.spawn(async move {
                std::future::pending::<()>().await;
                drop(http2);
            });
        }
        slow
    });
}

/// 20 bodies of 3 MiB whose last byte never arrives: only they are held in memory. A buffer of unknown length grows by
/// doubling, to 4 MiB, and the allocator may still hold its earlier 2 MiB.
#[test]
fn bodies_without_their_end() {
    let arena = Arena::start(&[]);
    arena.withstands("bodies without their end", 128, async |target| {
        let body = large_fischer(LARGE - 1024);
        let body = body.slice(..body.len() - 1);
        let open = (0..20).map(async |_| {
            let http2 = target.http2(OPEN).await.unwrap();
            let call = Call::new("POST", FISCHERS).with_header("content-type", JSON);
            let (answer, mut stream) = http2.begin(&call, false).await.unwrap();
            stream.send_data(body.clone(), false).unwrap();
            // `reserve_capacity` returns after all is sent.
            stream.reserve_capacity(1);
            std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
            (http2, answer, stream)
        });
        join_all(open).await
    });
}

/// Point 13: requests with a response before their bodies were read, over HTTP/1.1. Every client gets its response.
#[test]
fn early_answers() {
    let arena = Arena::start(&[]);
    let check = |name: &str, method: &str, path: &str, headers: &[(&str, &str)], code: u16| {
        let target = match code {
            401 | 403 => arena.target().anonymous(),
            _ => arena.target(),
        };
        let headers = [headers, &[("content-length", "8388608")]].concat();
        let name = format!("early answers: {name}");
        arena.withstands(&name, 32, async |_| {
            let head = target.head(method, path, &headers);
            let clients = (0..8).map(|_| answered_early(&target, &head));
            let codes = join_all(clients).await;
            assert_eq!(codes, vec![Ok(code); 8], "{name}");
        });
    };
    let json = ("content-type", JSON);
    check("anonymous", "POST", FLUNDERS, &[json], 403);
    let token = ("authorization", "Bearer wrong");
    check("wrong token", "POST", FLUNDERS, &[json, token], 401);
    check("no such path", "POST", "/nowhere", &[json], 404);
    check("wrong method", "PUT", ALL_FLUNDERS, &[json], 405);
    let xml = ("accept", "text/xml");
    check("no such form", "POST", FLUNDERS, &[json, xml], 406);
    check("too large", "POST", FLUNDERS, &[json], 413);
    let type_ = ("content-type", "text/xml");
    check("no such type", "POST", FLUNDERS, &[type_], 415);
}

/// Sends a head and as much of 8 MiB as is taken soon, reads the response, and returns its code or the error.
async fn answered_early(target: &Target, head: &[u8]) -> Result<u16, String> {
    let mut stream = target
        .tls("http/1.1")
        .await
        .map_err(|error| error.to_string())?;
    let send = async {
        stream.write_all(head).await?;
        for _ in 0..128 {
            stream.write_all(&vec![b' '; 64 * 1024]).await?;
        }
        stream.flush().await
    };
    // The server need not read all of it; its response must still be readable.
    let _ = tokio::time::timeout(Duration::from_secs(2), send).await;
    // One that never comes ends with the attack.
    let answer = read_answer(&mut stream).await;
    Ok(answer.map_err(|error| error.to_string())?.code)
}

/// 200 large bodies of clients that disconnect right after the last byte: their work is cancelled.
#[test]
fn bodies_of_clients_that_hang_up() {
    let arena = Arena::start(&[]);
    let object =
        json!({"metadata": {"generateName": "gone-"}, "disallowedFlunders": vec!["a"; 600_000]});
    let body = Bytes::from(object.to_string());
    arena.withstands("bodies of clients that hang up", 192, async |target| {
        for _ in 0..20 {
            let http2 = target.http2(OPEN).await.unwrap();
            let calls = (0..10).map(async |_| {
                let call = Call::new("POST", FISCHERS).with_header("content-type", JSON);
                let (answer, mut stream) = http2.begin(&call, false).await.unwrap();
                stream.send_data(body.clone(), true).unwrap();
                // All but some bytes are sent when there is capacity again.
                stream.reserve_capacity(1);
                let sent = std::future::poll_fn(|cx| stream.poll_capacity(cx));
                let _ = tokio::time::timeout(Duration::from_millis(100), sent).await;
                stream.send_reset(h2::Reason::CANCEL);
                drop(answer);
            });
            join_all(calls).await;
        }
    });
}

/// Point 13: an anonymous flood is answered and not logged line by line.
#[test]
fn anonymous_flood() {
    let arena = Arena::start(&[]);
    arena.withstands("anonymous flood", 32, async |target| {
        let target = target.anonymous();
        let clients = (0..4).map(async |_| {
            let mut http2 = target.http2(OPEN).await.unwrap();
            let mut answered = 0;
            while answered < 100 {
                match http2.call(Call::new("GET", FLUNDERS)).await {
                    Ok(answer) => {
                        assert_eq!(answer.code, 403);
                        answered += 1;
                    }
                    // The server tells anonymous clients to go away; this one reconnects.
                    Err(error) if error.is_go_away() => {
                        http2 = target.http2(OPEN).await.unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        join_all(clients).await;
    });
    let log = arena.server().log();
    assert!(log.lines().count() < 20, "{log}");
}
