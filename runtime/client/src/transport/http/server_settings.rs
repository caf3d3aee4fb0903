//! The SETTINGS of a server of HTTP/2: how many streams it allows, and whether a stream can be upgraded. The HTTP library
//! tells neither to the senders of requests. The reader of the frames also ends a connection on which a server sends frames for
//! ever that answer nothing: the library accepts them.

use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;
use tokio::sync::watch;

use crate::transport::StreamHook;

/// Length of the head of a frame.
const HEAD: usize = 9;

/// Longest SETTINGS that are read: the longest frame that a server may send to a client which allows no longer ones.
const MAX_FRAME: usize = 16 * 1024;

/// The type of a SETTINGS frame, and its flag for an acknowledgement.
const SETTINGS: u8 = 4;
const ACK: u8 = 1;

/// The types of the frames that answer requests.
const DATA: u8 = 0;
const HEADERS: u8 = 1;

/// Most frames in a row that are no answer: SETTINGS, PING, WINDOW_UPDATE, empty DATA and others. A server that sends a PING
/// every 15 s comes as far in two days without a request.
const MAX_IDLE_FRAMES: usize = 10_000;

/// How many bytes must be sent to a server for one more of them: it acknowledges large bodies by a WINDOW_UPDATE for some KiB.
/// The acknowledgement of a SETTINGS or PING frame has fewer.
const BYTES_PER_FRAME: usize = 64;

/// `SETTINGS_MAX_CONCURRENT_STREAMS`.
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 8441).
const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerSettings {
    /// Most streams at a time; `usize::MAX` if there is no limit. 0 is a limit like others (RFC 9113, section 6.5.2): no
    /// stream is begun until the server raises it.
    pub(super) most_streams: usize,
    /// Whether a stream can become a WebSocket.
    pub(super) has_extended_connect: bool,
}

impl Default for ServerSettings {
    /// Before a server has said anything else.
    fn default() -> Self {
        Self {
            most_streams: usize::MAX,
            has_extended_connect: false,
        }
    }
}

impl ServerSettings {
    /// Changes what a SETTINGS frame has; the rest stays.
    fn update(&mut self, payload: &[u8]) {
        for [id_high, id_low, value @ ..] in payload.as_chunks::<6>().0 {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*id_high, *id_low]) {
                MAX_CONCURRENT_STREAMS => self.most_streams = value as usize,
                ENABLE_CONNECT_PROTOCOL => self.has_extended_connect = value == 1,
                _ => {}
            }
        }
    }
}

/// What a server allows at present; `None` before its first SETTINGS.
pub(super) type LiveSettings = watch::Receiver<Option<ServerSettings>>;

/// Reads the SETTINGS frames of a connection while they pass.
pub(super) struct SettingsReader {
    /// `None` for a connection that does not begin with SETTINGS.
    frames: Option<Frames>,
}

impl SettingsReader {
    /// The hook of a connection, and what tells the settings. That is closed when the connection ends, or does not speak HTTP/2.
    pub(super) fn new() -> (Self, LiveSettings) {
        let (sender, settings) = watch::channel(None);
        let frames = Some(Frames::new(sender));
        (Self { frames }, settings)
    }

    /// # Errors
    /// If the server sends too many frames that are no answer.
    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        let result = self.frames.as_mut().map(|frames| frames.read(bytes));
        match result {
            Some(Err(Problem::NotHttp2)) => self.frames = None,
            Some(Err(Problem::Flood)) => {
                let problem = format!(
                    "the server sent {MAX_IDLE_FRAMES} frames in a row that answer nothing"
                );
                return Err(io::Error::other(problem));
            }
            Some(Ok(())) | None => {}
        }
        Ok(())
    }

    /// Notes bytes that were sent.
    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(frames), Poll::Ready(Ok(bytes))) = (&mut self.frames, written) {
            frames.idle = frames.idle.saturating_sub(bytes / BYTES_PER_FRAME);
        }
    }
}

/// The frames of a server (RFC 9113, sections 4.1 and 6.5).
struct Frames {
    settings: watch::Sender<Option<ServerSettings>>,
    /// The head of the frame that is read, and how many bytes of it there are.
    head: [u8; HEAD],
    head_length: usize,
    /// How many bytes of its payload are missing.
    missing: usize,
    /// The payload, of SETTINGS alone.
    payload: Vec<u8>,
    /// How many frames in a row were no answer.
    idle: usize,
    /// The newest stream that has a head. Further heads of a stream are no answers, but informational, without an end perhaps.
    answered: u32,
}

/// Why no more frames are read.
enum Problem {
    /// The bytes do not begin with SETTINGS, or have SETTINGS that are too long.
    NotHttp2,
    /// More than [`MAX_IDLE_FRAMES`].
    Flood,
}

impl Frames {
    fn new(settings: watch::Sender<Option<ServerSettings>>) -> Self {
        Self {
            settings,
            head: [0; HEAD],
            head_length: 0,
            missing: 0,
            payload: Vec::new(),
            idle: 0,
            answered: 0,
        }
    }

    /// Whether the frame that is read sets something.
    fn is_settings(&self) -> bool {
        self.head[3] == SETTINGS && self.head[4] & ACK == 0
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Problem> {
        while !bytes.is_empty() {
            if self.head_length < HEAD {
                let (part, rest) = bytes.split_at((HEAD - self.head_length).min(bytes.len()));
                let end = self.head_length + part.len();
                self.head[self.head_length..end].copy_from_slice(part);
                (self.head_length, bytes) = (end, rest);
                if end < HEAD {
                    return Ok(());
                }
                self.begin_payload()?;
            }
            let (part, rest) = bytes.split_at(self.missing.min(bytes.len()));
            if self.is_settings() {
                self.payload.extend_from_slice(part);
            }
            self.missing -= part.len();
            bytes = rest;
            if self.missing == 0 {
                self.end_payload();
            }
        }
        Ok(())
    }

    fn begin_payload(&mut self) -> Result<(), Problem> {
        let [a, b, c, kind, _, stream @ ..] = self.head;
        self.missing = u32::from_be_bytes([0, a, b, c]) as usize;
        let is_first = self.settings.borrow().is_none();
        let is_settings = self.is_settings();
        if (is_first && !is_settings) || (is_settings && self.missing > MAX_FRAME) {
            return Err(Problem::NotHttp2);
        }
        let stream = u32::from_be_bytes(stream);
        let is_answer = match kind {
            HEADERS => stream > self.answered,
            DATA => self.missing > 0,
            _ => false,
        };
        if kind == HEADERS {
            self.answered = self.answered.max(stream);
        }
        self.idle = if is_answer { 0 } else { self.idle + 1 };
        if self.idle > MAX_IDLE_FRAMES {
            return Err(Problem::Flood);
        }
        Ok(())
    }

    fn end_payload(&mut self) {
        if self.is_settings() {
            let known = *self.settings.borrow();
            let mut settings = known.unwrap_or_default();
            settings.update(&self.payload);
            if known != Some(settings) {
                self.settings.send_replace(Some(settings));
            }
            self.payload = Vec::new();
        }
        self.head_length = 0;
    }
}

impl StreamHook for SettingsReader {
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(read(cx, buffer))?;
        Poll::Ready(self.look(&buffer.filled()[before..]))
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let written = write(cx);
        self.wrote(&written);
        written
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

    const ACKNOWLEDGEMENT: [u8; HEAD] = [0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0];

    /// What is known after these bytes.
    fn read(bytes: &[u8]) -> Option<(usize, bool)> {
        let (mut reader, settings) = SettingsReader::new();
        reader.look(bytes).unwrap();
        let settings = *settings.borrow();
        settings.map(|settings| (settings.most_streams, settings.has_extended_connect))
    }

    #[test]
    fn each_settings_frame_changes_what_it_has() {
        let first = frame(&[(1, 4096), (3, 10), (8, 1)]);
        assert_eq!(read(&first), Some((10, true)));
        assert_eq!(read(&frame(&[])), Some((usize::MAX, false)));
        for end in 0..first.len() {
            assert_eq!(read(&first[..end]), None);
        }
        let data = [&[0, 0, 12, 0, 0, 0, 0, 0, 1], &frame(&[])[..], &[0; 3]].concat();
        let later = [&first, &ACKNOWLEDGEMENT[..], &data, &frame(&[(3, 0)])].concat();
        assert_eq!(read(&later), Some((0, true)));
        let raised = [&later[..], &frame(&[(3, 7)])].concat();
        assert_eq!(read(&raised), Some((7, true)));
    }

    #[test]
    fn other_protocols_and_frames_that_are_too_long_end_the_reading() {
        let later = frame(&[(3, 10)]);
        let long = [0, 0x40, 1, SETTINGS, 0, 0, 0, 0, 0];
        for begin in [
            b"HTTP/1.1 400 Bad Request".as_slice(),
            &ACKNOWLEDGEMENT,
            &long,
        ] {
            let (mut reader, settings) = SettingsReader::new();
            reader.look(begin).unwrap();
            reader.look(&later).unwrap();
            assert_eq!(*settings.borrow(), None);
            assert!(settings.has_changed().is_err(), "no settings follow");
        }
    }

    #[test]
    fn frames_that_answer_nothing_are_bounded() {
        const PING: [u8; HEAD + 8] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        const EMPTY_DATA: [u8; HEAD] = [0, 0, 0, DATA, 0, 0, 0, 0, 1];
        const ONE_BYTE: [u8; HEAD + 1] = [0, 0, 1, DATA, 0, 0, 0, 0, 1, b'a'];
        let head_of = |stream: u8| [0, 0, 0, HEADERS, 4, 0, 0, 0, stream];
        let begin = || {
            let mut reader = SettingsReader::new().0;
            reader.look(&frame(&[])).unwrap();
            reader
        };
        let settings = frame(&[(3, 7)]);
        for flood in [
            &settings[..],
            &ACKNOWLEDGEMENT,
            &PING,
            &EMPTY_DATA,
            &head_of(1),
        ] {
            let mut reader = begin();
            reader.look(&head_of(1)).unwrap();
            let count = (1..).find(|_| reader.look(flood).is_err());
            assert_eq!(count, Some(MAX_IDLE_FRAMES + 1), "{flood:?}");
        }
        let mut reader = begin();
        for count in 0..6 * MAX_IDLE_FRAMES {
            match count % 2000 {
                0 => reader.look(&ONE_BYTE).unwrap(),
                1000 => reader.look(&head_of((count / 1000) as u8)).unwrap(),
                _ => reader.look(&PING).unwrap(),
            }
        }
        // What is sent pays for them, but acknowledgements do not.
        for (written, is_paid) in [(16 * 1024, true), (HEAD, false), (HEAD + 8, false)] {
            let mut reader = begin();
            let mut look = || {
                reader.wrote(&Poll::Ready(Ok(written)));
                reader.look(&PING).is_ok()
            };
            assert_eq!(
                (0..2 * MAX_IDLE_FRAMES).all(|_| look()),
                is_paid,
                "{written}"
            );
        }
    }

    #[tokio::test]
    async fn the_bytes_pass_unchanged_in_any_pieces() {
        use tokio::io::AsyncReadExt as _;

        use crate::transport::HookedStream;
        let data = [&[0, 0, 4, 0, 0, 0, 0, 0, 1][..], b"rest"].concat();
        let bytes = [frame(&[(3, 7)]), data, frame(&[(8, 1)])].concat();
        for size in 1..bytes.len() {
            let pieces = Pieces {
                bytes: &bytes,
                size,
            };
            let (reader, settings) = SettingsReader::new();
            let mut reader = HookedStream::new(pieces, reader);
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await.unwrap();
            let expected = ServerSettings {
                most_streams: 7,
                has_extended_connect: true,
            };
            assert_eq!((read, *settings.borrow()), (bytes.clone(), Some(expected)));
        }
        let (reader, mut settings) = SettingsReader::new();
        let mut reader = HookedStream::new(&bytes[..5], reader);
        reader.read_to_end(&mut Vec::new()).await.unwrap();
        drop(reader);
        assert!(settings.wait_for(Option::is_some).await.is_err());
    }

    /// A connection that gives this number of bytes at a time.
    struct Pieces<'a> {
        bytes: &'a [u8],
        size: usize,
    }

    impl tokio::io::AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
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
