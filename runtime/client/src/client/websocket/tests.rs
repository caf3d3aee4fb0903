//! WebSockets over sockets of the system, against small servers in the test.

use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response as Accepted};

use super::*;
use crate::transport::{HttpTransport, Transport};

/// A client of a server that calls `serve` with each connection.
async fn server<F, R>(serve: F) -> Client
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream));
        }
    });
    Client::new(HttpTransport::builder(&url).build().unwrap())
}

/// A server that takes WebSockets with a subprotocol, and calls `serve` with each.
async fn sockets<F, R>(protocol: Option<&'static str>, serve: F) -> Client
where
    F: Fn(WebSocketStream<TcpStream>) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    server(move |stream| {
        let serve = serve.clone();
        async move {
            #[allow(clippy::result_large_err, reason = "the signature is the library's")]
            let choose = |request: &Request, mut response: Accepted| {
                assert_eq!(request.uri().path(), "/console");
                if let Some(protocol) = protocol {
                    let value = protocol.parse().unwrap();
                    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
                }
                Ok(response)
            };
            let socket = tokio_tungstenite::accept_hdr_async(stream, choose).await;
            serve(socket.unwrap()).await;
        }
    })
    .await
}

async fn echo(mut socket: WebSocketStream<TcpStream>) {
    while let Some(Ok(message)) = socket.next().await {
        let is_data = message.is_binary() || message.is_text();
        if is_data && socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn open(client: &Client, protocols: &[&str]) -> Result<Socket, Error> {
    let request = client.request(Method::GET, "/console");
    request.websocket(protocols).await
}

#[tokio::test]
async fn channels_go_both_ways() {
    let client = sockets(Some(V5), echo).await;
    let mut socket = open(&client, &CHANNEL_PROTOCOLS).await.unwrap();
    assert_eq!(socket.protocol(), Some(V5));
    socket.send_channel(0, b"ls").await.unwrap();
    socket
        .send(SocketMessage::Text("skipped".to_owned()))
        .await
        .unwrap();
    socket
        .send(SocketMessage::Binary(Bytes::new()))
        .await
        .unwrap();
    socket.close_channel(0).await.unwrap();
    let first = socket.receive_channel().await.unwrap();
    assert_eq!(first, Some((0, Bytes::from_static(b"ls"))));
    let second = socket.receive_channel().await.unwrap();
    assert_eq!(second, Some((CLOSE, Bytes::from_static(&[0]))));
    socket.close().await;
    // Other requests are not in the way.
    let mut socket = open(&client, &[V5]).await.unwrap();
    socket
        .send(SocketMessage::Text("x".to_owned()))
        .await
        .unwrap();
    let text = socket.receive().await.unwrap();
    assert_eq!(text, Some(SocketMessage::Text("x".to_owned())));
}

#[tokio::test]
async fn only_v5_closes_channels() {
    let client = sockets(Some("v4.channel.k8s.io"), echo).await;
    let socket = open(&client, &CHANNEL_PROTOCOLS).await.unwrap();
    let error = socket.close_channel(0).await.unwrap_err();
    assert!(error.to_string().contains("v4.channel.k8s.io"), "{error}");
    let client = sockets(None, echo).await;
    assert_eq!(open(&client, &[]).await.unwrap().protocol(), None);
}

#[tokio::test]
async fn the_end_of_the_server_is_the_end() {
    let client = sockets(Some(V5), |mut socket| async move {
        socket.send(Message::binary(vec![3, b'{'])).await.unwrap();
        socket.close(None).await.unwrap();
        while socket.next().await.is_some() {}
    })
    .await;
    let mut socket = open(&client, &[V5]).await.unwrap();
    assert!(socket.receive_channel().await.unwrap().is_some());
    assert_eq!(socket.receive_channel().await.unwrap(), None);
    assert!(socket.send_channel(0, b"x").await.is_err());
    // A connection that breaks is no end.
    let client = sockets(Some(V5), |socket| async move { drop(socket) }).await;
    let mut socket = open(&client, &[V5]).await.unwrap();
    socket.receive().await.unwrap_err();
    socket.receive().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_and_keeps_the_connection_is_left() {
    let client = sockets(Some(V5), |mut socket| async move {
        socket.send(Message::Close(None)).await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let mut socket = open(&client, &[V5]).await.unwrap();
    let began = Instant::now();
    assert_eq!(socket.receive().await.unwrap(), None);
    assert!(began.elapsed() <= CLOSE_TIMEOUT + Duration::from_secs(1));
    assert_eq!(socket.receive().await.unwrap(), None);
}

#[tokio::test]
async fn both_sides_may_send_much_at_once() {
    let client = sockets(Some(V5), echo).await;
    let (sender, mut receiver) = open(&client, &[V5]).await.unwrap().split();
    let sending = tokio::spawn(async move {
        for number in 0..200 {
            sender.send_channel(1, &vec![number; 60_000]).await.unwrap();
        }
        sender
    });
    for number in 0..200 {
        let (channel, bytes) = receiver.receive_channel().await.unwrap().unwrap();
        assert_eq!((channel, bytes.len(), bytes[0]), (1, 60_000, number));
    }
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn each_half_alone_keeps_the_connection() {
    let (sent, mut received) = tokio::sync::mpsc::unbounded_channel();
    let client = sockets(Some(V5), move |mut socket| {
        let sent = sent.clone();
        async move {
            while let Some(Ok(message)) = socket.next().await {
                sent.send(Some(message)).unwrap();
            }
            sent.send(None).unwrap();
        }
    })
    .await;
    let (sender, receiver) = open(&client, &[V5]).await.unwrap().split();
    drop((client, receiver));
    sender.send_channel(0, b"alone").await.unwrap();
    let message = received.recv().await.unwrap();
    assert_eq!(message, Some(Message::binary(b"\0alone".to_vec())));
    drop(sender);
    assert_eq!(received.recv().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_connection_has_pings() {
    let client = sockets(Some(V5), |mut socket| async move {
        for _ in 0..3 {
            assert!(socket.next().await.unwrap().unwrap().is_ping());
        }
        socket.send(Message::text("three")).await.unwrap();
        while socket.next().await.is_some() {}
    })
    .await;
    let mut socket = open(&client, &[V5]).await.unwrap();
    let began = Instant::now();
    let message = socket.receive().await.unwrap();
    assert_eq!(message, Some(SocketMessage::Text("three".to_owned())));
    assert!(began.elapsed() >= 3 * PING_INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn a_server_from_which_nothing_arrives_is_gone() {
    let client = sockets(Some(V5), |socket| async move {
        let _socket = socket;
        std::future::pending::<()>().await;
    })
    .await;
    let mut socket = open(&client, &[V5]).await.unwrap();
    let began = Instant::now();
    let error = socket.receive().await.unwrap_err();
    assert!(error.to_string().contains("nothing arrived"), "{error}");
    assert!(began.elapsed() <= 4 * PING_INTERVAL);
    socket.receive().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_message_that_takes_minutes_arrives() {
    let (client, mut theirs) = piped(64);
    let sending = async {
        // A frame of 200 bytes, one each second.
        theirs.write_all(&[0x82, 126, 0, 200]).await.unwrap();
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            theirs.write_u8(7).await.unwrap();
        }
    };
    let mut socket = open(&client, &[]).await.unwrap();
    let (message, ()) = tokio::join!(socket.receive(), sending);
    let expected = SocketMessage::Binary(Bytes::from(vec![7; 200]));
    assert_eq!(message.unwrap(), Some(expected));
}

#[tokio::test]
async fn a_server_that_pings_and_does_not_read_is_an_error() {
    let (client, theirs) = piped(1024);
    let mut socket = open(&client, &[]).await.unwrap();
    let mut server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    let pinging = async {
        for sent in 0..10_000 {
            let ping = Message::Ping(Bytes::from_static(&[0; 125]));
            if server.send(ping).await.is_err() {
                return sent;
            }
        }
        panic!("the client answers without end");
    };
    let error = tokio::select! {
        result = socket.receive() => result.unwrap_err(),
        sent = pinging => panic!("the connection broke off after {sent} pings"),
    };
    assert!(error.to_string().contains("pings without end"), "{error}");
}

#[tokio::test]
async fn a_long_message_waits_with_the_answers_to_pings() {
    const LENGTH: usize = 4 << 20;
    let (client, theirs) = piped(1024);
    let (sender, mut receiver) = open(&client, &[]).await.unwrap().split();
    let sending = tokio::spawn(async move {
        let message = Bytes::from(vec![7; LENGTH]);
        sender.send(SocketMessage::Binary(message)).await.unwrap();
        sender
    });
    let receiving = tokio::spawn(async move { receiver.receive().await });
    let mut server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    for _ in 0..300 {
        let ping = Message::Ping(Bytes::from_static(&[0; 125]));
        server.send(ping).await.unwrap();
    }
    let (mut pongs, mut messages) = (0, 0);
    while pongs < 300 || messages < 1 {
        match server.next().await.unwrap().unwrap() {
            Message::Binary(bytes) => {
                assert_eq!(bytes.len(), LENGTH);
                messages += 1;
            }
            Message::Pong(_) => pongs += 1,
            other => panic!("{other:?}"),
        }
    }
    server.send(Message::text("read")).await.unwrap();
    let message = receiving.await.unwrap().unwrap();
    assert_eq!(message, Some(SocketMessage::Text("read".to_owned())));
    drop(sending.await.unwrap());
}

/// A client of a WebSocket through a pipe, and its other end.
fn piped(most: usize) -> (Client, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(most);
    (Client::new(Piped(Arc::new(Mutex::new(Some(ours))))), theirs)
}

struct Piped(Arc<Mutex<Option<DuplexStream>>>);

impl Transport for Piped {
    fn call(
        &self,
        request: http::Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let ours = Arc::clone(&self.0);
        async move {
            let key = request.headers()[SEC_WEBSOCKET_KEY].as_bytes();
            let response = Response::builder()
                .status(101)
                .header(CONNECTION, "Upgrade")
                .header(UPGRADE, "websocket")
                .header(SEC_WEBSOCKET_ACCEPT, derive_accept_key(key));
            let mut response = response.body(Body::empty()).unwrap();
            let ours = ours.lock().await.take().expect("one request");
            let connection = async { Ok(UpgradedConnection::new(ours)) };
            PendingUpgrade::put(&mut response, connection.boxed());
            Ok(response)
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_message_that_is_refused_is_an_error_for_good() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let not_text = Frame::message(vec![0xff], OpCode::Data(Data::Text), true);
    let no_message = Frame::message(vec![0], OpCode::Data(Data::Reserved(3)), true);
    for (message, code) in [
        (Message::binary(vec![0; 2000]), CloseCode::Size),
        (Message::Frame(not_text), CloseCode::Invalid),
        (Message::Frame(no_message), CloseCode::Protocol),
    ] {
        let (sent, mut closed) = tokio::sync::mpsc::unbounded_channel();
        let client = sockets(Some(V5), move |mut socket| {
            let (message, sent) = (message.clone(), sent.clone());
            async move {
                socket.send(message).await.unwrap();
                while let Some(Ok(message)) = socket.next().await {
                    if let Message::Close(Some(frame)) = message {
                        sent.send(frame.code).unwrap();
                    }
                }
            }
        })
        .await;
        let client = client.rebuild().max_watch_line_bytes(1000).build().unwrap();
        let mut socket = open(&client, &[V5]).await.unwrap();
        socket.receive().await.unwrap_err();
        assert_eq!(closed.recv().await, Some(code));
        let again = socket.receive().await.unwrap_err();
        assert!(again.to_string().contains("has failed"), "{again}");
    }
}

/// A client of a server that answers with this text; `KEY` becomes the right `Sec-WebSocket-Accept`.
async fn answering(answer: &'static str) -> Client {
    server(move |mut stream| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let key = head
            .lines()
            .find_map(|line| line.strip_prefix("sec-websocket-key: "));
        let accept = derive_accept_key(key.unwrap().as_bytes());
        let answer = answer.replace("KEY", &accept);
        stream.write_all(answer.as_bytes()).await.unwrap();
        // Until the client closes.
        let _ = stream.read(&mut [0]).await;
    })
    .await
}

#[tokio::test]
async fn an_answer_without_a_websocket_is_an_error() {
    const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
    let with = |lines: &str| -> &'static str { format!("{SWITCH}{lines}\r\n").leak() };
    for (answer, problem) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "code 200"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nSec-WebSocket-Accept: KEY\r\n\r\n",
            "code 101",
        ),
        (with(""), "code 101"),
        (with("Sec-WebSocket-Accept: other\r\n"), "code 101"),
        (
            with("Sec-WebSocket-Accept: KEY\r\n"),
            "without one of the subprotocols",
        ),
        (
            with("Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Protocol: v9\r\n"),
            "another subprotocol",
        ),
    ] {
        let client = answering(answer).await;
        let error = open(&client, &CHANNEL_PROTOCOLS).await.unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    let good = with("Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n");
    open(&answering(good).await, &CHANNEL_PROTOCOLS)
        .await
        .unwrap();
    let status =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}"#;
    let length = status.len();
    let refusal = format!("HTTP/1.1 403 Forbidden\r\ncontent-length: {length}\r\n\r\n{status}");
    let client = answering(refusal.leak()).await;
    assert!(open(&client, &[V5]).await.unwrap_err().is_forbidden());
    let post = client.request(Method::POST, "/console");
    let error = post.websocket(&[V5]).await.unwrap_err();
    assert!(matches!(error, Error::Request(_)));
}
