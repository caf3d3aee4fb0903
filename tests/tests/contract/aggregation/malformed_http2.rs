//! A server behind an APIService that breaks HTTP/2 in every place: each of its clients gets a response, and a reason, and no
//! connection is kept open for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use apiloom_tests::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PUSH_PROMISE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, block, frame,
};

use super::pair::{Authority, Front};
use super::raw_server;
use super::*;

on_each_backend![every_malformed_response_of_http2_has_a_response];

const BASE: &str = "/apis/rec.example.com/v1";

/// What becomes of a response.
#[derive(Clone, Copy, Debug)]
enum Becomes {
    /// It is passed on, with this code and body.
    Passed(u16, &'static str),
    /// The client gets this code, and a text that begins with this one.
    Failure(u16, &'static str),
    /// The head is passed on, and the body broken off.
    BrokenOff,
    /// The client gets 504 at its deadline.
    Deadline,
}
use Becomes::{BrokenOff, Deadline, Failure, Passed};

/// The text about a response that could not be read, as kube-aggregator begins it.
const UNREADABLE: Becomes = Failure(503, "error trying to reach service: ");
const OK: Becomes = Passed(200, "ok");

type Frames = Box<dyn Fn(u32) -> Vec<u8> + Send + Sync>;

/// What the server sends for a request, whose stream the functions are given.
struct Case {
    name: &'static str,
    first: Frames,
    /// What follows for ever, if it is not empty.
    again: Frames,
    /// Whether the server closes the connection.
    closes: bool,
    becomes: Becomes,
}

impl Case {
    fn new(
        name: &'static str,
        becomes: Becomes,
        first: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            first: Box::new(first),
            again: Box::new(|_| Vec::new()),
            closes: false,
            becomes,
        }
    }

    fn then_for_ever(self, again: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let again = Box::new(again);
        Self { again, ..self }
    }

    fn then_closes(self) -> Self {
        Self {
            closes: true,
            ..self
        }
    }

    fn is_endless(&self) -> bool {
        !(self.again)(1).is_empty()
    }
}

/// The head of a response with these fields beside its status.
fn head(id: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let fields = [&[(":status", "200")], fields].concat();
    frame(HEADERS, flags, id, &block(&fields))
}

/// The body `ok`, which ends the stream.
fn ok(id: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, id, b"ok")
}

/// A whole response with this head.
fn with(
    name: &'static str,
    becomes: Becomes,
    fields: &'static [(&'static str, &'static str)],
) -> Case {
    Case::new(name, becomes, move |id| {
        let head = frame(HEADERS, END_HEADERS, id, &block(fields));
        [head, ok(id)].concat()
    })
}

/// Frames before a whole response.
fn before(
    name: &'static str,
    becomes: Becomes,
    first: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static,
) -> Case {
    Case::new(name, becomes, move |id| {
        [first(id), head(id, END_HEADERS, &[]), ok(id)].concat()
    })
}

/// Frames after a whole head.
fn after(
    name: &'static str,
    becomes: Becomes,
    then: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static,
) -> Case {
    Case::new(name, becomes, move |id| {
        [head(id, END_HEADERS, &[]), then(id)].concat()
    })
}

fn reset(id: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, id, &code.to_be_bytes())
}

fn go_away(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    frame(GOAWAY, 0, 0, &payload)
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

/// Heads of responses.
fn heads() -> Vec<Case> {
    vec![
        with("a response", OK, &[(":status", "200")]),
        with("999", Passed(999, "ok"), &[(":status", "999")]),
        with("no status", UNREADABLE, &[("x", "y")]),
        with("an empty status", UNREADABLE, &[(":status", "")]),
        with("status 1000", UNREADABLE, &[(":status", "1000")]),
        with("status 099", UNREADABLE, &[(":status", "099")]),
        with("status abc", UNREADABLE, &[(":status", "abc")]),
        with(
            "two statuses",
            UNREADABLE,
            &[(":status", "200"), (":status", "201")],
        ),
        with(
            "a status behind fields",
            UNREADABLE,
            &[("x", "y"), (":status", "200")],
        ),
        with(
            "a pseudo field of requests",
            OK,
            &[(":status", "200"), (":path", "/")],
        ),
        with(
            "an unknown pseudo field",
            UNREADABLE,
            &[(":status", "200"), (":x", "y")],
        ),
        // HTTP/2 does not have it.
        with("101", UNREADABLE, &[(":status", "101")]),
        with(
            "a redirect",
            Failure(
                502,
                "the backend attempted to redirect this request, which is not permitted",
            ),
            &[(":status", "302"), ("location", "/")],
        ),
        with(
            "an upper-case name",
            UNREADABLE,
            &[(":status", "200"), ("X-Y", "1")],
        ),
        with("no name", UNREADABLE, &[(":status", "200"), ("", "1")]),
        with(
            "a space in a name",
            UNREADABLE,
            &[(":status", "200"), ("x y", "1")],
        ),
        with(
            "a line break in a value",
            UNREADABLE,
            &[(":status", "200"), ("x", "a\r\nb: c")],
        ),
        with(
            "NUL in a value",
            UNREADABLE,
            &[(":status", "200"), ("x", "a\0b")],
        ),
        with(
            "a field of the connection",
            UNREADABLE,
            &[(":status", "200"), ("connection", "close")],
        ),
        with(
            "chunks",
            UNREADABLE,
            &[(":status", "200"), ("transfer-encoding", "chunked")],
        ),
        with(
            "a length that is no number",
            UNREADABLE,
            &[(":status", "200"), ("content-length", "x")],
        ),
        with(
            "two lengths",
            UNREADABLE,
            &[
                (":status", "200"),
                ("content-length", "2"),
                ("content-length", "3"),
            ],
        ),
        with(
            "a length that is too small",
            BrokenOff,
            &[(":status", "200"), ("content-length", "1")],
        ),
        with(
            "a length that is too large",
            BrokenOff,
            &[(":status", "200"), ("content-length", "3")],
        ),
    ]
}

/// Compressed blocks of fields.
fn blocks() -> Vec<Case> {
    let raw = |name, becomes, payload: &'static [u8]| {
        before(name, becomes, move |id| {
            frame(HEADERS, END_HEADERS, id, payload)
        })
    };
    let mut large_index = vec![0xff; 20];
    large_index.push(0x7f);
    let large_index: &'static [u8] = large_index.leak();
    vec![
        raw("the index 0", UNREADABLE, &[0x80]),
        raw("an index that is not there", UNREADABLE, &[0xfe]),
        raw("an endless index", UNREADABLE, large_index),
        raw("a cut block", UNREADABLE, &[0x88, 0x00, 0x05, b'x']),
        raw(
            "malformed Huffman codes",
            UNREADABLE,
            &[0x88, 0x00, 0x81, 0x00, 0x81, 0xff],
        ),
        raw(
            "a table of 4 GiB",
            UNREADABLE,
            &[0x3f, 0xe1, 0xff, 0xff, 0xff, 0x0f, 0x88],
        ),
        raw("an empty block", UNREADABLE, &[]),
        Case::new("a block in two frames", OK, |id| {
            let block = block(&[(":status", "200"), ("x", "y")]);
            let begin = frame(HEADERS, 0, id, &block[..9]);
            let rest = frame(CONTINUATION, END_HEADERS, id, &block[9..]);
            [begin, rest, ok(id)].concat()
        }),
        Case::new("5,000 fields", UNREADABLE, |id| {
            let names: Vec<String> = (0..5_000).map(|n| format!("x-{n}")).collect();
            let fields: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1")).collect();
            let block = block(&[&[(":status", "200")], &fields[..]].concat());
            let mut frames = Vec::new();
            let mut chunks = block.chunks(16_000).peekable();
            let mut kind = HEADERS;
            while let Some(chunk) = chunks.next() {
                let flags = if chunks.peek().is_none() {
                    END_HEADERS
                } else {
                    0
                };
                frames.extend(frame(kind, flags, id, chunk));
                kind = CONTINUATION;
            }
            [frames, ok(id)].concat()
        }),
        Case::new("a block without an end", UNREADABLE, |id| {
            frame(HEADERS, 0, id, &block(&[(":status", "200")]))
        })
        .then_for_ever(|id| frame(CONTINUATION, 0, id, &block(&[("x", "y")]))),
        Case::new("a block of empty frames", UNREADABLE, |id| {
            frame(HEADERS, 0, id, &block(&[(":status", "200")]))
        })
        .then_for_ever(|id| frame(CONTINUATION, 0, id, &[])),
        Case::new("a frame inside a block", UNREADABLE, |id| {
            [frame(HEADERS, 0, id, &[0x88]), ok(id)].concat()
        }),
        before("CONTINUATION without a head", UNREADABLE, |id| {
            frame(CONTINUATION, END_HEADERS, id, &[0x88])
        }),
        Case::new("1,000 early hints", OK, |id| {
            let hint = frame(
                HEADERS,
                END_HEADERS,
                id,
                &block(&[(":status", "103"), ("link", "a")]),
            );
            [hint.repeat(1_000), head(id, END_HEADERS, &[]), ok(id)].concat()
        }),
        Case::new("early hints without an end", UNREADABLE, |_| Vec::new()).then_for_ever(|id| {
            frame(
                HEADERS,
                END_HEADERS,
                id,
                &block(&[(":status", "103"), ("link", "a")]),
            )
        }),
        after("trailers", OK, |id| {
            let trailers = frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                id,
                &block(&[("x-late", "1")]),
            );
            [frame(DATA, 0, id, b"ok"), trailers].concat()
        }),
        // Trailers are not passed on.
        after("trailers with a status", OK, |id| {
            let trailers = head(id, END_HEADERS | END_STREAM, &[]);
            [frame(DATA, 0, id, b"ok"), trailers].concat()
        }),
        after("trailers that do not end the stream", BrokenOff, |id| {
            let trailers = frame(HEADERS, END_HEADERS, id, &block(&[("x-late", "1")]));
            [frame(DATA, 0, id, b"ok"), trailers].concat()
        }),
    ]
}

/// Frames of the stream of a request.
fn streams() -> Vec<Case> {
    let mut cases: Vec<Case> = (0..14)
        .map(|code| {
            // REFUSED_STREAM and the end of a server are tried again, and come again.
            Case::new("a reset", UNREADABLE, move |id| reset(id, code))
        })
        .collect();
    cases.extend([
        after("a reset in the body", BrokenOff, |id| {
            [frame(DATA, 0, id, b"o"), reset(id, 2)].concat()
        }),
        // The end of the body for the HTTP library (RFC 9113, section 8.1), also without the flag of the end; for Go an error.
        after("NO_ERROR in the body", BrokenOff, |id| {
            [frame(DATA, 0, id, b"o"), reset(id, 0)].concat()
        }),
        before("DATA before a head", UNREADABLE, |id| {
            frame(DATA, 0, id, b"early")
        }),
        before("DATA of an idle stream", UNREADABLE, |id| {
            frame(DATA, 0, id + 100, b"a")
        }),
        before("a head of an idle stream", UNREADABLE, |id| {
            head(id + 100, END_HEADERS, &[])
        }),
        before("a head of a stream of the server", UNREADABLE, |_| {
            head(2, END_HEADERS, &[])
        }),
        before("a head of no stream", UNREADABLE, |_| {
            head(0, END_HEADERS, &[])
        }),
        before("DATA of no stream", UNREADABLE, |_| frame(DATA, 0, 0, b"a")),
        after("too much padding", BrokenOff, |id| {
            frame(DATA, 8, id, &[200, b'a'])
        }),
        after("a frame above the limit", BrokenOff, |id| {
            frame(DATA, 0, id, &vec![0; 17_000])
        }),
        after("DATA above the window", BrokenOff, |id| {
            let body = frame(DATA, 0, id, &[b'a'; 16_384]).repeat(1_000);
            [body, reset(id, 2)].concat()
        }),
        after("empty DATA without an end", BrokenOff, |id| {
            frame(DATA, 0, id, b"o")
        })
        .then_for_ever(|id| frame(DATA, 0, id, b"")),
        after("WINDOW_UPDATE of 0", BrokenOff, |id| {
            frame(WINDOW_UPDATE, 0, id, &[0; 4])
        }),
        before("a promise", UNREADABLE, |id| {
            let block = block(&[
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", "a"),
                (":path", "/"),
            ]);
            let payload = [&2_u32.to_be_bytes()[..], &block].concat();
            frame(PUSH_PROMISE, END_HEADERS, id, &payload)
        }),
        Case::new("silence", Deadline, |_| Vec::new()),
        Case::new("the end of the connection", UNREADABLE, |_| Vec::new()).then_closes(),
        after("the end of the connection in the body", BrokenOff, |id| {
            frame(DATA, 0, id, b"o")
        })
        .then_closes(),
    ]);
    cases
}

/// Frames of the connection.
fn connections() -> Vec<Case> {
    vec![
        Case::new("GOAWAY before the request", UNREADABLE, |_| go_away(0, 0)).then_closes(),
        Case::new("GOAWAY with an error", UNREADABLE, |id| go_away(id, 2)).then_closes(),
        Case::new("GOAWAY, and silence", UNREADABLE, |_| go_away(0, 0)),
        before("GOAWAY, and the answer", OK, |id| go_away(id, 0)).then_closes(),
        after("GOAWAY in the body", BrokenOff, |id| go_away(id, 0)).then_closes(),
        before("GOAWAY of a stream", UNREADABLE, |id| {
            frame(GOAWAY, 0, id, &[0; 8])
        }),
        before("a short GOAWAY", UNREADABLE, |_| {
            frame(GOAWAY, 0, 0, &[0; 3])
        }),
        before("SETTINGS of a stream", UNREADABLE, |id| {
            frame(SETTINGS, 0, id, &[])
        }),
        before("SETTINGS of an odd length", UNREADABLE, |_| {
            frame(SETTINGS, 0, 0, &[0; 5])
        }),
        before("an acknowledgement with settings", UNREADABLE, |_| {
            frame(SETTINGS, 1, 0, &[0; 6])
        }),
        before("unknown settings", OK, |_| setting(0xfff0, 1)),
        before("a window above the limit", UNREADABLE, |_| {
            setting(4, 1 << 31)
        }),
        before("frames above the limit", UNREADABLE, |_| {
            setting(5, 1 << 24)
        }),
        before("a promise that is allowed to a server", OK, |_| {
            setting(2, 1)
        }),
        before("no streams", OK, |_| setting(3, 0)).then_closes(),
        before("a short PING", UNREADABLE, |_| frame(PING, 0, 0, &[0; 7])),
        before("a PING of a stream", UNREADABLE, |id| {
            frame(PING, 0, id, &[0; 8])
        }),
        before("a PRIORITY on itself", UNREADABLE, |id| {
            let payload = [&id.to_be_bytes()[..], &[1]].concat();
            frame(PRIORITY, 0, id, &payload)
        }),
        before("an unknown frame", OK, |_| frame(0xfa, 0xff, 3, b"what")),
        before("a window that overflows", UNREADABLE, |_| {
            let most = (u32::MAX >> 1).to_be_bytes();
            frame(WINDOW_UPDATE, 0, 0, &most).repeat(2)
        }),
        Case::new("HTTP/1.1", UNREADABLE, |_| {
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()
        }),
        Case::new("a half frame", UNREADABLE, |id| {
            head(id, END_HEADERS, &[])[..12].to_vec()
        })
        .then_closes(),
        Case::new("SETTINGS without an end", UNREADABLE, |_| Vec::new())
            .then_for_ever(|_| setting(3, 100)),
        Case::new("PING without an end", UNREADABLE, |_| Vec::new())
            .then_for_ever(|_| frame(PING, 0, 0, &[0; 8])),
        Case::new("acknowledgements without an end", UNREADABLE, |_| {
            Vec::new()
        })
        .then_for_ever(|_| frame(PING, 1, 0, &[0; 8])),
        Case::new("unknown frames without an end", UNREADABLE, |_| Vec::new())
            .then_for_ever(|_| frame(0xfa, 0, 0, b"")),
        Case::new("WINDOW_UPDATE without an end", UNREADABLE, |_| Vec::new())
            .then_for_ever(|_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())),
        Case::new("PRIORITY without an end", UNREADABLE, |_| Vec::new())
            .then_for_ever(|id| frame(PRIORITY, 0, id + 2, &[0, 0, 0, 0, 1])),
    ]
}

fn cases() -> Vec<Case> {
    [heads(), blocks(), streams(), connections()]
        .into_iter()
        .flatten()
        .collect()
}

/// Starts a server that answers a request as the case says whose number is its body. The counter has the endless answers that are
/// being sent.
async fn start(authority: &Authority, sending: &Arc<AtomicUsize>) -> SocketAddr {
    let (cases, sending) = (Arc::new(cases()), Arc::clone(sending));
    let document =
        r#"{"kind":"APIResourceList","groupVersion":"rec.example.com/v1","resources":[]}"#;
    let answer = move |id, body: String, mut stream| {
        let (cases, sending) = (Arc::clone(&cases), Arc::clone(&sending));
        async move {
            let case = &cases[body.parse::<usize>().unwrap()];
            raw_server::send(&mut stream, &(case.first)(id)).await?;
            let again = (case.again)(id).repeat(100);
            sending.fetch_add(usize::from(!again.is_empty()), Ordering::SeqCst);
            let mut sent = Ok(());
            while !again.is_empty() && sent.is_ok() {
                sent = raw_server::send(&mut stream, &again).await;
            }
            sending.fetch_sub(usize::from(!again.is_empty()), Ordering::SeqCst);
            sent?;
            if case.closes {
                tokio::io::AsyncWriteExt::shutdown(&mut stream).await?;
            }
            Ok(stream)
        }
    };
    raw_server::start_http2(authority, document, answer).await
}

async fn every_malformed_response_of_http2_has_a_response(on: Backend) {
    let authority = Authority::new();
    let sending = Arc::new(AtomicUsize::new(0));
    let address = start(&authority, &sending).await;
    let front = Front::start(on, &authority, &[("recorder", address)]).await;
    register(&front.client, "rec.example.com", "recorder", &authority).await;
    let over_http1 = Client::of_http1(&front.kubeconfig);
    let mut wrong = String::new();
    // The first case, for a server that the controller takes for available.
    let is_served = async |last: &str| {
        let path = format!("{BASE}/things?timeout=20s");
        let started = Instant::now();
        loop {
            let answer = front.client.call("POST", &path, &[], "0").await;
            if answer.code == 200 {
                break;
            }
            let most = Duration::from_secs(60);
            let is_in_time = started.elapsed() < most && answer.code != 504;
            assert!(is_in_time, "after {last}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut last = "none";
    for (number, case) in cases().into_iter().enumerate() {
        let Case { name, becomes, .. } = case;
        for (version, client) in [("HTTP/2", &front.client), ("HTTP/1.1", &over_http1)] {
            let seconds = if matches!(becomes, Deadline) { 1 } else { 30 };
            let path = format!("{BASE}/things?timeout={seconds}s");
            let number = number.to_string();
            let answer = ask_available(async || {
                is_served(last).await;
                client.try_call("POST", &path, &[], number.clone()).await
            });
            let answer = tokio::time::timeout(Duration::from_secs(120), answer);
            let found = match answer.await {
                Ok(Ok(answer)) => Some((answer.code, answer.text())),
                Ok(Err(_)) => None,
                Err(_) => Some((0, "no end".to_owned())),
            };
            last = name;
            let is_expected = match (becomes, &found) {
                (Passed(expected, body), Some((code, text))) => *code == expected && text == body,
                (Failure(expected, begin), Some((code, text))) => {
                    *code == expected && text.starts_with(begin) && text.len() < 1024
                }
                (Deadline, Some((code, _))) => *code == 504,
                (BrokenOff, None) => true,
                _ => false,
            };
            if !is_expected {
                wrong += &format!("{number} {name}, {version}: {found:?}\n");
            }
        }
        let began = Instant::now();
        while case.is_endless() && sending.load(Ordering::SeqCst) > 0 {
            if began.elapsed() > Duration::from_secs(60) {
                wrong += &format!("{number} {name}: the connection is kept open\n");
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // The server goes on.
    is_served(last).await;
    assert_eq!(front.client.get("/readyz").await.code, 200);
    front.stop().await;
}
