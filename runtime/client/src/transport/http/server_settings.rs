//! The first SETTINGS of a server of HTTP/2: how many streams it allows, and whether a stream can be upgraded. The HTTP
//! library tells neither to those who send requests.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// Length of the head of a frame.
const HEAD: usize = 9;

/// Longest first frame that is kept: the longest that a server may send to a client which allows no longer ones.
const MAX_FRAME: usize = 16 * 1024;

/// `SETTINGS_MAX_CONCURRENT_STREAMS`.
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 8441).
const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerSettings {
    /// Most streams at a time; `usize::MAX` if there is no limit.
    pub(super) most_streams: usize,
    /// Whether a stream can become a WebSocket.
    pub(super) has_extended_connect: bool,
}

/// A connection that looks at the first frame while it passes.
pub(super) struct SettingsReader<S> {
    stream: S,
    first: Vec<u8>,
    found: Option<oneshot::Sender<ServerSettings>>,
}

impl<S> SettingsReader<S> {
    /// The connection, and what tells the settings when they are known. That is dropped without a value if the connection
    /// ends before, or begins with something else.
    pub(super) fn new(stream: S) -> (Self, oneshot::Receiver<ServerSettings>) {
        let (found, settings) = oneshot::channel();
        let reader = Self {
            stream,
            first: Vec::new(),
            found: Some(found),
        };
        (reader, settings)
    }

    fn look(&mut self, bytes: &[u8]) {
        let room = (HEAD + MAX_FRAME) - self.first.len();
        self.first
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        let frame = match first_frame(&self.first) {
            Frame::Begun if self.first.len() < HEAD + MAX_FRAME => return,
            Frame::Begun | Frame::Other => None,
            Frame::Settings(settings) => Some(settings),
        };
        self.first = Vec::new();
        if let (Some(found), Some(settings)) = (self.found.take(), frame) {
            // An error means that the pool does not wait any more.
            let _ = found.send(settings);
        }
    }
}

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
enum Frame {
    Begun,
    Settings(ServerSettings),
    Other,
}

/// RFC 9113, sections 4.1 and 6.5.
fn first_frame(bytes: &[u8]) -> Frame {
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        return Frame::Begun;
    };
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let (kind, flags) = (head[3], head[4]);
    if kind != 4 || flags & 1 != 0 || length > MAX_FRAME {
        return Frame::Other;
    }
    let Some(payload) = rest.get(..length) else {
        return Frame::Begun;
    };
    let mut settings = ServerSettings {
        most_streams: usize::MAX,
        has_extended_connect: false,
    };
    for [id_high, id_low, value @ ..] in payload.as_chunks::<6>().0 {
        let value = u32::from_be_bytes(*value);
        match u16::from_be_bytes([*id_high, *id_low]) {
            MAX_CONCURRENT_STREAMS => settings.most_streams = value as usize,
            ENABLE_CONNECT_PROTOCOL => settings.has_extended_connect = value == 1,
            _ => {}
        }
    }
    Frame::Settings(settings)
}

impl<S: AsyncRead + Unpin> AsyncRead for SettingsReader<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.found.is_some() {
            self.look(&buffer.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SettingsReader<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings with the identifiers and values.
    fn frame(settings: &[(u16, u32)]) -> Vec<u8> {
        let mut frame = vec![0, 0, (settings.len() * 6) as u8, 4, 0, 0, 0, 0, 0];
        for (id, value) in settings {
            frame.extend_from_slice(&id.to_be_bytes());
            frame.extend_from_slice(&value.to_be_bytes());
        }
        frame
    }

    #[test]
    fn the_first_frame_has_the_settings() {
        let bytes = frame(&[(1, 4096), (3, 10), (8, 1)]);
        let settings = |most_streams, has_extended_connect| {
            Frame::Settings(ServerSettings {
                most_streams,
                has_extended_connect,
            })
        };
        assert_eq!(first_frame(&bytes), settings(10, true));
        assert_eq!(first_frame(&frame(&[])), settings(usize::MAX, false));
        for end in 0..bytes.len() {
            assert_eq!(first_frame(&bytes[..end]), Frame::Begun);
        }
        assert_eq!(first_frame(b"HTTP/1.1 400 Bad Request"), Frame::Other);
        let mut acknowledgement = frame(&[]);
        acknowledgement[4] = 1;
        assert_eq!(first_frame(&acknowledgement), Frame::Other);
    }

    #[tokio::test]
    async fn the_bytes_pass_unchanged_in_any_pieces() {
        use tokio::io::AsyncReadExt as _;
        let bytes = [frame(&[(3, 7)]), b"rest".to_vec()].concat();
        for size in 1..bytes.len() {
            let pieces = Pieces {
                bytes: &bytes,
                size,
            };
            let (mut reader, settings) = SettingsReader::new(pieces);
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await.unwrap();
            assert_eq!(
                (read, settings.await.unwrap().most_streams),
                (bytes.clone(), 7)
            );
        }
        let (mut reader, settings) = SettingsReader::new(&bytes[..5]);
        reader.read_to_end(&mut Vec::new()).await.unwrap();
        drop(reader);
        assert!(settings.await.is_err());
    }

    /// A connection that gives this number of bytes at a time.
    struct Pieces<'a> {
        bytes: &'a [u8],
        size: usize,
    }

    impl AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let size = self.size.min(self.bytes.len()).min(buffer.remaining());
            let (piece, rest) = self.bytes.split_at(size);
            buffer.put_slice(piece);
            self.bytes = rest;
            Poll::Ready(Ok(()))
        }
    }
}
