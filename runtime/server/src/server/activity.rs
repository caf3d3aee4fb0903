//! Counters of a connection's requests and reads, by which [`super::connection`] decides when to close it. Also limits how
//! much one poll reads, so that a busy connection does not starve others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use apiloom_client::transport::StreamHook;
use apiloom_http::response::turns::end_turn;
use futures_util::task::AtomicWaker;
use tokio::io::ReadBuf;

/// Maximum number of bytes read in one poll: one TLS record, which holds up to 1,800 frames of HTTP/2. tokio by itself
/// interrupts a task after 128 reads of any size, and a TLS stream goes on after that with what it has.
const TURN_BYTES: usize = 16 * 1024;

/// Counters and flags that the requests of a connection share with it.
#[derive(Default)]
pub(super) struct Activity {
    /// Total number of requests.
    pub(super) begun: AtomicUsize,
    /// Requests whose response is not sent yet, or whose body is not read yet.
    pub(super) in_progress: AtomicUsize,
    /// Whether the preface of HTTP/2 and the client's first frame have arrived, which is SETTINGS.
    pub(super) has_preface: AtomicBool,
    /// Total number of reads that returned bytes.
    pub(super) reads: AtomicUsize,
    /// Whether a response told the client to reconnect; never reset.
    pub(super) goes_away: AtomicBool,
    /// Wakes the connection, so that it reads `goes_away`.
    pub(super) waker: AtomicWaker,
}

/// Counts a request as in progress until it is dropped.
pub(super) struct InProgress(Arc<Activity>);

impl InProgress {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        Self::more(activity)
    }

    fn more(activity: &Arc<Activity>) -> Self {
        activity.in_progress.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }

    pub(super) fn go_away(&self) {
        self.0.goes_away.store(true, Ordering::Relaxed);
        self.0.waker.wake();
    }
}

impl Clone for InProgress {
    fn clone(&self) -> Self {
        Self::more(&self.0)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts the reads of a stream, and ends a turn of the task that reads after [`TURN_BYTES`]. The stream is the outermost one: a
/// TLS stream returns the bytes that it has when the stream below it is pending.
pub(super) struct ReadCounter {
    /// Bytes read since a read was pending last.
    read: usize,
    activity: Arc<Activity>,
    /// Bytes up to the end of the first frame of HTTP/2; `None` when they have arrived.
    preface: Option<Preface>,
}

impl ReadCounter {
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        Self {
            read: 0,
            activity,
            preface: Some(Preface::default()),
        }
    }

    /// Counts one read.
    fn record(&mut self, bytes: &[u8]) {
        self.activity.reads.fetch_add(1, Ordering::Relaxed);
        if let Some(preface) = &mut self.preface
            && preface.ends_in(bytes)
        {
            self.preface = None;
            self.activity.has_preface.store(true, Ordering::Relaxed);
        }
    }
}

/// How much of the beginning of HTTP/2 has arrived: 24 fixed bytes, and a frame with the length of its payload in three bytes
/// before six others. hyper checks what they say.
#[derive(Default)]
struct Preface {
    received: usize,
    payload: usize,
}

impl Preface {
    const FIXED: usize = 24;
    const LENGTH: usize = 3;
    const FRAME_HEADER: usize = 9;

    /// Takes the next bytes. Whether all have arrived with them.
    fn ends_in(&mut self, bytes: &[u8]) -> bool {
        let of_length = Self::FIXED..Self::FIXED + Self::LENGTH;
        let head = of_length.end.saturating_sub(self.received);
        for (at, byte) in (self.received..).zip(bytes.iter().take(head)) {
            if of_length.contains(&at) {
                self.payload = self.payload << 8 | usize::from(*byte);
            }
        }
        self.received += bytes.len();
        self.received >= Self::FIXED + Self::FRAME_HEADER + self.payload
    }
}

impl StreamHook for ReadCounter {
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN_BYTES {
            self.read = 0;
            end_turn(cx);
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = read(cx, buffer);
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        if !bytes.is_empty() {
            self.record(bytes);
        }
        self.read = match read {
            Poll::Ready(_) => self.read + bytes.len(),
            Poll::Pending => 0,
        };
        read
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use apiloom_client::transport::HookedStream;
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

    use super::*;

    /// The bytes read by each poll of a task that reads all it can.
    async fn turns(ours: impl AsyncRead + AsyncWrite + Unpin, piece: usize) -> Vec<usize> {
        let mut stream = HookedStream::new(ours, ReadCounter::new(Arc::default()));
        let mut piece = vec![0; piece];
        let mut turns = Vec::new();
        std::future::poll_fn(|cx| {
            turns.push(0);
            loop {
                let mut buffer = ReadBuf::new(&mut piece);
                std::task::ready!(Pin::new(&mut stream).poll_read(cx, &mut buffer)).unwrap();
                let read = buffer.filled().len();
                *turns.last_mut().unwrap() += read;
                if read == 0 {
                    return Poll::Ready(());
                }
            }
        })
        .await;
        turns
    }

    // A client that sends frames without end must not occupy a thread.
    #[tokio::test]
    async fn a_client_that_sends_much_lets_others_have_their_turn() {
        use tokio::io::{empty, join, sink};
        let sent = vec![0; 3 * 1024 * 1024];
        for piece in [1024, 16 * 1024, 40 * 1024] {
            let read = turns(join(sent.as_slice(), sink()), piece).await;
            assert_eq!(read.iter().sum::<usize>(), sent.len());
            let most = read.iter().max().copied().unwrap_or_default();
            assert!(most < TURN_BYTES + piece, "{piece}: {read:?}");
            assert!(
                read.len() <= sent.len() / TURN_BYTES + 1,
                "{piece}: {read:?}"
            );
        }
        assert_eq!(turns(join(&sent[..1024], sink()), 256).await, [1024]);
        assert_eq!(turns(join(empty(), sink()), 256).await, [0]);
    }

    // A short request is read in one poll, however much the connection has read before.
    #[tokio::test]
    async fn a_read_that_waits_begins_a_new_turn() {
        let (ours, mut theirs) = tokio::io::duplex(TURN_BYTES);
        let mut stream = HookedStream::new(ours, ReadCounter::new(Arc::default()));
        for _ in 0..5 {
            theirs.write_all(&[0; TURN_BYTES - 1]).await.unwrap();
            let mut piece = [0; TURN_BYTES];
            let read = stream
                .read(&mut piece)
                .now_or_never()
                .expect("no turn ends");
            assert_eq!(read.unwrap(), TURN_BYTES - 1);
            assert!(stream.read(&mut piece).now_or_never().is_none());
        }
    }
}
