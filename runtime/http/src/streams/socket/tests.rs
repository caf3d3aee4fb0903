//! WebSocket connections over pipes, with paused time: clients that are gone, do not read, or send without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use super::*;

/// Capacity of the pipe, in each direction.
const PIPE_BYTES: usize = 64 * 1024;
/// Size of the messages of a side that sends without end.
const PIECE_BYTES: usize = 10 * 1024;
/// Most messages that can be under way when they are not received: in the pipe, in the buffers of both sides, and in the
/// channel.
const MAX_PIECES: usize = (PIPE_BYTES + 2 * BUFFER_BYTES) / PIECE_BYTES + 8;

const SECOND: Duration = Duration::from_secs(1);

type ClientSocket = WebSocketStream<DuplexStream>;

/// Serves a handler; returns the client's end, the task of the connection, and the task of the handler.
async fn serving<F>(
    stopping: ShutdownSignal,
    handler: impl FnOnce(ConnectSocket) -> F,
) -> (ClientSocket, JoinHandle<()>, JoinHandle<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (client, ours) = tokio::io::duplex(PIPE_BYTES);
    let (socket, connection) = open(ours, "").await;
    let (ended, has_ended) = oneshot::channel();
    let handler = tokio::spawn(run_handler(handler(socket), stopping.clone(), has_ended));
    let connection = tokio::spawn(connection.run(stopping, ended));
    let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    (client, connection, handler)
}

fn piece(number: usize) -> Vec<u8> {
    let mut piece = vec![b'x'; PIECE_BYTES];
    piece[..8].copy_from_slice(&(number as u64).to_be_bytes());
    piece
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_ping_is_gone() {
    let begun = Instant::now();
    let (end, received) = oneshot::channel();
    let (_client, connection, handler) = serving(
        ShutdownSignal::default(),
        async |mut socket: ConnectSocket| {
            let _ = end.send((socket.receive().await, Instant::now()));
        },
    )
    .await;
    let (message, at) = received.await.unwrap();
    assert_eq!((message, at - begun), (None, SILENCE_TIMEOUT));
    handler.await.unwrap();
    connection.await.unwrap();
    assert!(begun.elapsed() <= SILENCE_TIMEOUT + CLOSE_TIMEOUT + SECOND);
}

/// A frame of binary data with this number of bytes, as a client sends it.
fn client_frame(length: u32) -> Vec<u8> {
    let mut frame = vec![0x82, 0x80 | 127];
    frame.extend_from_slice(&u64::from(length).to_be_bytes());
    // The mask, which changes nothing.
    frame.extend_from_slice(&[0; 4]);
    frame.resize(frame.len() + length as usize, b'x');
    frame
}

#[tokio::test(start_paused = true)]
async fn a_slow_frame_is_received_whole() {
    let (mut client, ours) = tokio::io::duplex(PIPE_BYTES);
    let (mut socket, connection) = open(ours, "").await;
    let (ended, _has_ended) = oneshot::channel();
    tokio::spawn(connection.run(ShutdownSignal::default(), ended));
    let (begun, length) = (Instant::now(), 60);
    tokio::spawn(async move {
        for byte in client_frame(length) {
            client.write_all(&[byte]).await.unwrap();
            tokio::time::sleep(10 * SECOND).await;
        }
        // Then it stops within a frame.
        client.write_all(&client_frame(length)[..20]).await.unwrap();
        std::future::pending::<()>().await;
    });
    let message = socket.receive().await;
    let expected = Bytes::from(vec![b'x'; length as usize]);
    assert_eq!(message, Some(SocketMessage::Binary(expected)));
    let received = begun.elapsed();
    assert!(received > 4 * SILENCE_TIMEOUT, "{received:?}");
    assert_eq!(socket.receive().await, None);
    let silent = begun.elapsed() - received;
    assert!(silent <= SILENCE_TIMEOUT + 11 * SECOND, "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_client_that_answers_pings_is_kept() {
    let (mut client, _connection, _handler) = serving(
        ShutdownSignal::default(),
        async |mut socket: ConnectSocket| {
            tokio::time::sleep(20 * SILENCE_TIMEOUT).await;
            let _ = socket.send(SocketMessage::Text("late".to_owned())).await;
        },
    )
    .await;
    let mut pings = 0;
    loop {
        match client.next().await.unwrap().unwrap() {
            // Answered by reading on.
            Message::Ping(_) => pings += 1,
            message => {
                assert_eq!(message, Message::text("late"));
                break;
            }
        }
    }
    assert!(pings >= 79, "{pings}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_notice_the_end_is_dropped() {
    let held = Arc::new(());
    let kept = Arc::clone(&held);
    let (client, _connection, handler) = serving(ShutdownSignal::default(), async move |socket| {
        std::future::pending::<()>().await;
        drop((kept, socket));
    })
    .await;
    let begun = Instant::now();
    drop(client);
    handler.await.unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(begun.elapsed() <= HANDLER_TIMEOUT + CLOSE_TIMEOUT + SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_finish_after_its_client_has_closed() {
    let (done, is_done) = oneshot::channel();
    let (mut client, ..) = serving(
        ShutdownSignal::default(),
        async move |mut socket: ConnectSocket| {
            while socket.receive().await.is_some() {}
            tokio::time::sleep(HANDLER_TIMEOUT - SECOND).await;
            let _ = done.send(());
        },
    )
    .await;
    client.close(None).await.unwrap();
    is_done.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_back_the_handler() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let (_client, _connection, handler) = serving(
        ShutdownSignal::default(),
        async move |mut socket: ConnectSocket| {
            let next = |number| SocketMessage::Binary(piece(number).into());
            while socket
                .send(next(count.load(Ordering::SeqCst)))
                .await
                .is_ok()
            {
                count.fetch_add(1, Ordering::SeqCst);
            }
        },
    )
    .await;
    let begun = Instant::now();
    handler.await.unwrap();
    let sent = sent.load(Ordering::SeqCst);
    assert!((1..MAX_PIECES).contains(&sent), "{sent}");
    assert_eq!(begun.elapsed(), PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_held_back_while_the_handler_does_not_receive() {
    const PIECES: usize = 200;
    let (begin, may_begin) = oneshot::channel::<()>();
    let (result, received) = oneshot::channel();
    let (client, ..) = serving(
        ShutdownSignal::default(),
        async move |mut socket: ConnectSocket| {
            let _ = may_begin.await;
            for number in 0..PIECES {
                let message = socket.receive().await;
                assert_eq!(message, Some(SocketMessage::Binary(piece(number).into())));
            }
            let _ = result.send(());
        },
    )
    .await;
    let (mut sink, mut stream) = client.split();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        for number in 0..PIECES {
            sink.send(Message::binary(piece(number))).await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
        }
        // Answers pings.
        while stream.next().await.is_some() {}
    });
    // Longer than the client may be silent: nothing is read of it, and it is not taken for gone.
    tokio::time::sleep(3 * SILENCE_TIMEOUT).await;
    let before = sent.load(Ordering::SeqCst);
    assert!((1..MAX_PIECES).contains(&before), "{before}");
    begin.send(()).unwrap();
    received.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_handler_and_says_that_the_server_goes_away() {
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let (mut client, connection, handler) = serving(stopping.into(), async |socket| {
        std::future::pending::<()>().await;
        drop(socket);
    })
    .await;
    stop.send(true).unwrap();
    handler.await.unwrap();
    let Some(Ok(Message::Close(Some(frame)))) = client.next().await else {
        panic!("no close frame");
    };
    assert_eq!(frame.code, CloseCode::Away);
    while client.next().await.is_some() {}
    connection.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_socket_sends_what_was_sent_and_closes() {
    let (mut client, connection, _handler) = serving(
        ShutdownSignal::default(),
        async |mut socket: ConnectSocket| {
            let _ = socket.send(SocketMessage::Text("last".to_owned())).await;
        },
    )
    .await;
    assert_eq!(client.next().await.unwrap().unwrap(), Message::text("last"));
    let Some(Ok(Message::Close(Some(frame)))) = client.next().await else {
        panic!("no close frame");
    };
    assert_eq!(frame.code, CloseCode::Normal);
    while client.next().await.is_some() {}
    connection.await.unwrap();
}
