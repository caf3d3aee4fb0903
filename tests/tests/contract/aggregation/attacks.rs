//! Requests that are meant to mislead the server or the one behind it, servers that break HTTP, large bodies and streams.

use std::net::SocketAddr;

use apiloom_tests::NoWatch;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

use super::pair::{Authority, Back, Front, TOKEN};
use super::raw_server;
use super::recorder::Recorder;
use super::*;

on_each_backend![
    misleading_requests_are_not_forwarded_as_they_are,
    a_server_that_breaks_http_does_no_harm,
    requests_do_not_go_round,
    large_bodies_are_not_kept,
    streams_of_a_server_with_handlers_are_forwarded,
];

const BASE: &str = "/apis/rec.example.com/v1";

async fn misleading_requests_are_not_forwarded_as_they_are(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    recorder.forget();
    // Impersonation is decided here, since the other server would believe the user of this one: a user of this name has no rights.
    for (name, code) in [
        ("impersonate-user", 403),
        ("impersonate-group", 400),
        ("impersonate-extra-a", 400),
    ] {
        let answer = client
            .call("GET", BASE, &[(name, "system:masters")], "")
            .await;
        assert_eq!(answer.code, code, "{name}");
    }
    // Paths that lead elsewhere, or are none.
    for path in [
        "/..%2f..%2f..%2fapi%2fv1",
        "/a/%2e%2e/b",
        "/a/.%2E",
        "/%zz",
        "/a%2",
    ] {
        let answer = client.get(&format!("{BASE}{path}")).await;
        assert!(
            (400..=500).contains(&answer.code),
            "{path}: {}",
            answer.code
        );
    }
    let vias: Vec<String> = (0..10).map(|number| format!("1.1 hop{number}")).collect();
    let path = format!("{BASE}/a");
    let all = vias.join(", ");
    let answer = client.call("GET", &path, &[("via", &all)], "").await;
    assert_eq!(answer.code, 508);
    assert!(recorder.forwarded().is_empty());
    // The other server is told who the user is, and not that it is another one.
    let headers = [
        ("impersonate-user", "bob"),
        ("impersonate-group", "system:masters"),
    ];
    client.call("GET", &path, &headers, "").await;
    let requests = recorder.forwarded();
    assert_eq!(requests[0].all("x-remote-user"), ["bob"]);
    let groups = ["system:masters", "system:authenticated"];
    assert_eq!(requests[0].all("x-remote-group"), groups);
    for (name, _) in headers {
        assert!(requests[0].all(name).is_empty(), "{name}");
    }
    // What is escaped twice is still escaped once, a separator is one, and no header is made of a path.
    for (path, expected) in [
        ("/%252e%252e/a", "/%252e%252e/a"),
        ("/a%2fb", "/a/b"),
        ("/a%0d%0ax-remote-user:b", "/a%0D%0Ax-remote-user:b"),
        ("/a?b=%0a&c=%26d", "/a?b=%0A&c=%26d"),
    ] {
        recorder.forget();
        client.get(&format!("{BASE}{path}")).await;
        let requests = recorder.forwarded();
        assert_eq!(requests[0].uri, format!("{BASE}{expected}"));
        assert_eq!(requests[0].all("x-remote-user").len(), 1);
    }
    recorder.forget();
    let fewer = vias[1..].join(", ");
    let answer = client.call("GET", &path, &[("via", &fewer)], "").await;
    assert_eq!(answer.code, 200);
    let via = recorder.forwarded()[0].all("via").join(", ");
    assert!(
        via.starts_with("1.1 hop1, ") && via.contains("apiloom-"),
        "{via}"
    );
    // The token of a WebSocket is a credential for this server.
    let token = URL_SAFE_NO_PAD.encode(TOKEN);
    let protocols = format!("base64url.bearer.authorization.k8s.io.{token}, v5.channel.k8s.io");
    let http1 = Client::of_http1(&front.kubeconfig).anonymous();
    let path = format!("{BASE}/namespaces/default/things/a/exec");
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let (code, headers, socket) = http1.websocket(&path, &headers).await;
    assert_eq!((code, socket.is_some()), (101, true));
    assert_eq!(headers["sec-websocket-protocol"], "v5.channel.k8s.io");
    let seen = &recorder.requests("/exec")[0];
    assert_eq!(seen.all("x-remote-user"), ["tester"]);
    assert_eq!(seen.all("sec-websocket-protocol"), ["v5.channel.k8s.io"]);
    assert!(seen.all("authorization").is_empty());
    front.stop().await;
}

/// Starts a server over TLS that answers as the last part of the path says, valid or not. The receiver is told that
/// the client of an endless answer has gone.
async fn breaking(authority: &Authority) -> (SocketAddr, watch::Receiver<bool>) {
    let (gone, is_gone) = watch::channel(false);
    let address = raw_server::start(authority, move |path, mut stream| {
        let gone = gone.clone();
        async move {
            let last = path.rsplit('/').next().unwrap();
            // The client may be gone at any time.
            let mut sent = stream.write_all(response(last).as_bytes()).await;
            while sent.is_ok() && last == "endless" {
                sent = stream.write_all(b"2\r\na\n\r\n").await;
                sent = sent.and(stream.flush().await);
            }
            if last == "endless" {
                gone.send_replace(true);
            }
            stream
        }
    });
    (address.await, is_gone)
}

fn response(last: &str) -> String {
    let list = r#"{"kind":"APIResourceList","groupVersion":"rec.example.com/v1","resources":[]}"#;
    match last {
        "v1" => format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}",
            list.len()
        ),
        "early" => "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok".to_owned(),
        "switch" => "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n".to_owned(),
        "lengths" => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc".to_owned(),
        "hop" => "HTTP/1.1 200 OK\r\nconnection: x-hop, close\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nx-kept: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".to_owned(),
        "endless" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
        "half" => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf\n".to_owned(),
        "huge" => format!("HTTP/1.1 200 OK\r\nx-huge: {}\r\ncontent-length: 0\r\n\r\n", "a".repeat(2 << 20)),
        "noise" => "this is no HTTP\r\n\r\n".to_owned(),
        "silent" => String::new(),
        _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    }
}

async fn a_server_that_breaks_http_does_no_harm(on: Backend) {
    let authority = Authority::new();
    let (address, mut is_gone) = breaking(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", address)]).await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    let early = client.get(&format!("{BASE}/early")).await;
    assert_eq!((early.code, early.text()), (200, "ok".to_owned()));
    let hop = client.get(&format!("{BASE}/hop")).await;
    assert_eq!((hop.code, hop.text()), (200, "ok".to_owned()));
    for (name, expected) in [("x-hop", ""), ("keep-alive", ""), ("x-kept", "1")] {
        assert_eq!(hop.header(name), expected, "{name}");
    }
    let switched = client.get(&format!("{BASE}/switch")).await;
    check_plain(
        &switched,
        502,
        "the service responded with the status 101 Switching Protocols",
    );
    for path in ["lengths", "huge", "noise", "silent"] {
        let answer = client.get(&format!("{BASE}/{path}")).await;
        let text = answer.text();
        assert_eq!(answer.code, 503, "{path}: {text}");
        assert!(
            text.starts_with("error trying to reach service: "),
            "{path}: {text}"
        );
    }
    // A body that is not whole is broken off, and not taken for whole.
    match client.try_watch_as(&format!("{BASE}/half"), "*/*").await {
        Ok(mut half) => {
            let mut end = half.line_or_end().await;
            if let Ok(Some(line)) = &end {
                assert_eq!(line, "half\n");
                end = half.line_or_end().await;
            }
            assert!(end.is_err(), "{end:?}");
        }
        // The end came before the client has looked at the head.
        Err(error) => assert!(matches!(error, NoWatch::Disconnected(_)), "{error:?}"),
    }
    // One without an end ends with its client.
    let mut endless = client.watch_as(&format!("{BASE}/endless"), "*/*").await;
    assert_eq!(endless.line().await.as_deref(), Some("a\n"));
    drop(endless);
    is_gone.wait_for(|is_gone| *is_gone).await.unwrap();
    assert_eq!(client.get("/readyz").await.code, 200);
    front.stop().await;
}

async fn requests_do_not_go_round(on: Backend) {
    let authority = Authority::new();
    let one = Front::start(on, &authority, &[]).await;
    let other = Front::start(on, &authority, &[("other", one.address)]).await;
    one.services.set("other", Ok(other.address));
    let mut service = apiservice("loop.example.com", "other", &authority);
    // The servers have certificates of their own.
    service["spec"]["caBundle"] = json!(null);
    service["spec"]["insecureSkipTLSVerify"] = json!(true);
    for front in [&one, &other] {
        created(&front.client, SERVICES, &service).await;
    }
    check_circle(&[&one.client, &other.client], "loop.example.com").await;
    one.stop().await;
    other.stop().await;
}

async fn large_bodies_are_not_kept(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    // The limit of this server's own objects is not that of others.
    let large = "x".repeat(8 << 20);
    let path = format!("{BASE}/things");
    let answer = client.call("POST", &path, &[], large.clone()).await;
    assert_eq!((answer.code, answer.text().len()), (201, large.len()));
    let answer = client.get(&format!("{BASE}/large")).await;
    assert_eq!(
        (answer.code, answer.text().len()),
        (200, recorder::LARGE_BYTES)
    );
    // A client that does not read stops the other server: nothing is collected between them.
    let before = recorder.sent();
    let unread = client.watch_as(&format!("{BASE}/large"), "*/*").await;
    let mut sent = before;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = recorder.sent();
        if now == sent && now > before {
            break;
        }
        sent = now;
    }
    let kept = sent - before;
    assert!(
        kept < recorder::LARGE_BYTES / 2,
        "{kept} bytes are somewhere"
    );
    drop(unread);
    front.stop().await;
}

async fn streams_of_a_server_with_handlers_are_forwarded(on: Backend) {
    let authority = Authority::new();
    let mut back = Back::start(&authority).await;
    let front = Front::start(on, &authority, &[("machines", back.address())]).await;
    let client = &front.client;
    // The certificate of the other server is for another service.
    let mut service = apiservice("machine.example.com", "machines", &authority);
    service["spec"]["caBundle"] = json!(null);
    service["spec"]["insecureSkipTLSVerify"] = json!(true);
    created(client, SERVICES, &service).await;
    until_available(client, "v1.machine.example.com", "True", "Passed").await;
    let machines = "/apis/machine.example.com/v1/namespaces/default/machines";
    let machine = json!({"apiVersion": "machine.example.com/v1", "kind": "Machine", "metadata": {"name": "a"}, "spec": {"image": "x"}});
    created(client, machines, &machine).await;
    let log = client.get(&format!("{machines}/a/log")).await;
    assert_eq!(log.text(), "a does 0\na does 1\na does 2\n");
    let path = format!("{machines}/a/console?banner=hello");
    let protocol = ("sec-websocket-protocol", "v5.channel.k8s.io");
    let http1 = Client::of_http1(&front.kubeconfig);
    let (code, _, over_http1) = http1.websocket(&path, &[protocol]).await;
    assert_eq!(code, 101);
    let version = ("sec-websocket-version", "13");
    let headers = [protocol, version];
    let connected = client.connect_over_http2(&path, "websocket", &headers);
    let (answer, over_http2) = connected.await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    for mut socket in [over_http1.unwrap(), over_http2.unwrap()] {
        let banner = socket.next().await.unwrap().unwrap();
        assert_eq!(banner.into_data().as_ref(), b"\x01hello");
        let input = Message::binary(b"\x00typed".to_vec());
        socket.send(input).await.unwrap();
        let echo = socket.next().await.unwrap().unwrap();
        assert_eq!(echo.into_data().as_ref(), b"\x01typed");
        socket.send(Message::binary(vec![255, 0])).await.unwrap();
        let result = socket.next().await.unwrap().unwrap().into_data();
        assert_eq!(result[0], 3);
        let result: Value = serde_json::from_slice(&result[1..]).unwrap();
        assert_eq!(result["status"], "Success");
    }
    front.stop().await;
    back.stop().await;
}
