//! Bytes that others send: collected within a bound for each body, and one for all of them together.

use std::sync::{Arc, LazyLock};

use apiloom_registry::memory::{self, HEADROOM, Headroom, Promise};
use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a body may have without a share of a room. Their number is bounded by that of requests in flight.
const SMALL_BYTES: usize = 64 * 1024;

/// Most bytes of all larger bodies together, if the memory of the process is large: more than the mutating requests in flight can have.
const MAX_ROOM: usize = 1024 * 1024 * 1024;

/// A room is one of so many parts of the memory of the process.
const PARTS_OF_MEMORY: u64 = 16;

/// What each value in a body takes while a request is worked on, in bytes: as a document, with its path, beside its defaults and in the
/// names of fields. 600,000 numbers of a list in 1.2 MB took 60 MiB.
const VALUE_BYTES: u64 = 100;

/// What each object takes beside its values: a map has room for eleven fields, however few it has. 50,000 objects of three fields in 2.7 MB
/// took 63 MiB.
const OBJECT_BYTES: u64 = 700;

/// How often a request has the text of its body: as it came, as a document, as it is stored and as it is answered.
const COPIES: u64 = 4;

/// The room for the bodies of requests.
pub(crate) static REQUESTS: LazyLock<Room> = LazyLock::new(Room::in_memory);

/// The room for the answers of other servers and webhooks.
pub static ANSWERS: LazyLock<Room> = LazyLock::new(Room::in_memory);

/// A bound for the bytes of several bodies together, and for what they become.
#[derive(Debug)]
pub struct Room {
    kib: Arc<Semaphore>,
    headroom: Arc<Headroom>,
}

/// The error of a body that was not collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError<E> {
    /// It is longer than this.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// Other bodies have the memory.
    #[error("the server has no memory for more bodies at this time")]
    NoRoom,
    /// It broke off.
    #[error("{0}")]
    BrokenOff(E),
}

impl Room {
    fn in_memory() -> Self {
        Self::new(
            memory::share(PARTS_OF_MEMORY, MAX_ROOM),
            Arc::clone(&HEADROOM),
        )
    }

    /// A room of so many bytes, rounded down to KiB.
    pub(crate) fn new(bytes: usize, headroom: Arc<Headroom>) -> Self {
        let kib = (bytes / 1024).min(Semaphore::MAX_PERMITS);
        Self {
            kib: Arc::new(Semaphore::new(kib)),
            headroom,
        }
    }

    /// Collects a body of at most `most` bytes, which have their share of the room until they are dropped, and the memory for what they
    /// become. Nothing waits for room: two bodies that both have a part of what they need would wait for each other.
    pub async fn collect<B>(
        &self,
        mut body: B,
        most: usize,
    ) -> Result<Bytes, CollectError<B::Error>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        // A declared length is used only to refuse a body without reading it.
        if body.size_hint().lower() > most as u64 {
            return Err(CollectError::TooLong(most));
        }
        let mut buffer = Buffer::default();
        while let Some(frame) = body.frame().await {
            // Frames without bytes never reach the bound: the deadline of the caller must.
            tokio::task::coop::consume_budget().await;
            let Ok(data) = frame.map_err(CollectError::BrokenOff)?.into_data() else {
                continue;
            };
            let length = buffer.bytes.len() + data.len();
            if length > most {
                return Err(CollectError::TooLong(most));
            }
            if !buffer.make_room(length, most, self) {
                return Err(CollectError::NoRoom);
            }
            buffer.bytes.extend_from_slice(&data);
        }
        if buffer.share.is_some() {
            let needed = needed_bytes(&buffer.bytes);
            buffer.promise = self.headroom.promise(needed);
            if buffer.promise.is_none() {
                return Err(CollectError::NoRoom);
            }
        }
        Ok(buffer.into())
    }
}

/// What a body takes while it is worked on, by its length and by the number of values in it: in JSON and flows of YAML one for each comma or
/// bracket, in blocks of YAML one for each line. An object begins with a brace, or in a block of YAML with an item of a list or behind a
/// colon at the end of a line.
fn needed_bytes(body: &[u8]) -> u64 {
    let count = |byte| memchr::memchr_iter(byte, body).count();
    let braces = count(b'{');
    let values = count(b',') + count(b'[') + braces;
    let values = values.max(count(b'\n')) as u64;
    let in_blocks = |part: &[u8]| memchr::memmem::find_iter(body, part).count();
    let objects = braces.max(in_blocks(b"- ") + in_blocks(b":\n")) as u64;
    body.len() as u64 * COPIES + values * VALUE_BYTES + objects * OBJECT_BYTES
}

/// A body up to here, with its share of a room.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
    /// The memory for what it becomes.
    promise: Option<Promise>,
}

impl Buffer {
    /// Grows to hold as many bytes, and tells whether there was room for them.
    fn make_room(&mut self, length: usize, most: usize, room: &Room) -> bool {
        let present = self.bytes.capacity();
        if length <= present {
            return true;
        }
        let capacity = length.max(present.saturating_mul(2).min(most));
        if capacity > SMALL_BYTES && !self.take(capacity, room) {
            return false;
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        true
    }

    /// Takes what is missing of a share.
    fn take(&mut self, bytes: usize, room: &Room) -> bool {
        let taken = self
            .share
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(1024).saturating_sub(taken);
        let Some(more) = u32::try_from(missing)
            .ok()
            .and_then(|missing| Arc::clone(&room.kib).try_acquire_many_owned(missing).ok())
        else {
            return false;
        };
        match &mut self.share {
            Some(share) => share.merge(more),
            None => self.share = Some(more),
        }
        true
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Self {
        if buffer.share.is_some() {
            Self::from_owner(buffer)
        } else {
            Self::from(buffer.bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use apiloom_registry::memory::Bound;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// A body of unknown length, in pieces of 16 KiB.
    fn body(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let whole = Bytes::from(vec![b'x'; bytes]);
        let pieces: Vec<_> = whole
            .chunks(16 * 1024)
            .map(|piece| Ok(Frame::data(whole.slice_ref(piece))))
            .collect();
        StreamBody::new(futures_util::stream::iter(pieces))
    }

    const MOST: usize = 1024 * 1024;

    /// A room of so many bytes, in a process with memory without a bound.
    fn room(bytes: usize) -> Room {
        Room::new(bytes, Arc::new(Headroom::new(Vec::new())))
    }

    // 200 requests in flight could have bodies of 3 MiB each.
    #[tokio::test]
    async fn bodies_have_a_bound_together_until_they_are_dropped() {
        let room = room(2 * MOST);
        let collect = async |bytes| room.collect(body(bytes), MOST).await;
        let first = collect(MOST).await.unwrap();
        assert_eq!(first.len(), MOST);
        let part = first.slice(10..20);
        let second = collect(MOST).await.unwrap();
        assert!(matches!(collect(MOST).await, Err(CollectError::NoRoom)));
        assert_eq!(collect(SMALL_BYTES).await.unwrap().len(), SMALL_BYTES);
        drop(first);
        assert!(matches!(collect(MOST).await, Err(CollectError::NoRoom)));
        drop(part);
        let third = collect(MOST).await.unwrap();
        assert!(matches!(collect(MOST).await, Err(CollectError::NoRoom)));
        drop((second, third));
        assert_eq!(room.kib.available_permits(), 2 * MOST / 1024);
    }

    #[tokio::test]
    async fn a_body_that_ends_early_gives_its_share_back() {
        let room = room(MOST);
        let long = room.collect(body(MOST + 1), MOST).await;
        assert!(matches!(long, Err(CollectError::TooLong(MOST))));
        assert_eq!(room.kib.available_permits(), MOST / 1024);
    }

    // 26 documents of 1.2 MB fit into the room of a server with 512 MiB, and are 1.5 GiB.
    #[tokio::test]
    async fn what_bodies_become_has_a_bound_until_they_are_dropped() {
        const BYTES: u64 = 2 * 200_000 * (2 * COPIES + VALUE_BYTES);
        let bound = Bound {
            most: BYTES,
            in_use: || Some(0),
        };
        let headroom = Arc::new(Headroom::new(vec![bound]));
        let room = Room::new(100 * MOST, headroom);
        let collect = async |item: &str| {
            let body = Bytes::from(item.repeat(200_000));
            let body = StreamBody::new(futures_util::stream::iter([Ok::<_, Infallible>(
                Frame::data(body),
            )]));
            room.collect(body, MOST).await
        };
        let [first, second] = [collect("1,").await.unwrap(), collect("[x").await.unwrap()];
        drop(second);
        let second = collect("\n-").await.unwrap();
        assert!(matches!(collect("1,").await, Err(CollectError::NoRoom)));
        // A text is one value.
        assert!(matches!(collect("xx").await, Err(CollectError::NoRoom)));
        drop(first);
        let texts = [collect("xx").await.unwrap(), collect("yy").await.unwrap()];
        drop((second, texts));
        assert_eq!(room.kib.available_permits(), 100 * MOST / 1024);
    }

    // A list of 50,000 objects of three fields, parsed as a value, took 63 MiB.
    #[test]
    fn an_object_takes_more_than_its_values() {
        let object = r#"{"name":"things","kind":"Thing","verbs":["get","list"]}"#;
        let list = format!("[{}]", vec![object; 1000].join(","));
        assert!(needed_bytes(list.as_bytes()) > 63 * 1024 * 20);
        let blocks = "- name: things\n  kind: Thing\n  of:\n    a: b\n".repeat(1000);
        let flow = r#"{"name":"things","kind":"Thing","of":{"a":"b"}},"#.repeat(1000);
        let [blocks, flow] = [blocks, flow].map(|text| needed_bytes(text.as_bytes()));
        assert!(
            blocks * 10 > flow * 9 && blocks * 9 < flow * 10,
            "{blocks} {flow}"
        );
    }
}
