//! Recent encodings of initial events, shared by watchers that begin at about the same time, as after an outage.
//! Encoding a row of a Table needs the decoded object, which is expensive.

use std::time::Duration;

use apiloom_storage::Revision;
use bytes::Bytes;
use tokio::time::Instant;

use crate::objects::cached_object::StateId;
use crate::objects::document::EncodedObject;
use crate::recent::Recent;

/// How long an encoding is used: a row of a Table has the age of its object in seconds.
const KEPT_FOR: Duration = Duration::from_millis(500);

/// Recent encodings of initial events of an endpoint.
#[derive(Debug, Default)]
pub(super) struct FirstEncodings(Recent<Encoding>);

#[derive(Debug)]
struct Encoding {
    of: (StateId, Option<Revision>),
    /// Number of the combination of form, format and event type.
    number: u64,
    at: Instant,
    bytes: Bytes,
}

impl FirstEncodings {
    /// The encoding of an object with this number: a recent one, else a new one.
    pub(super) fn get(
        &self,
        object: &EncodedObject,
        number: u64,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        let known = self.0.find(|kept| {
            let same = kept.number == number && object.has_id(&kept.of);
            let usable = same && kept.at.elapsed() < KEPT_FOR;
            usable.then(|| kept.bytes.clone())
        });
        known.unwrap_or_else(|| {
            let made = make();
            let size = made.capacity() + size_of::<Encoding>();
            let bytes = Bytes::from(made);
            let encoding = Encoding {
                of: object.id(),
                number,
                at: Instant::now(),
                bytes: bytes.clone(),
            };
            self.0.keep(encoding, size);
            bytes
        })
    }
}
