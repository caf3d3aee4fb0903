//! Encodings of the objects that a watch begins with: many watchers begin at about the same time after an outage, and each
//! row of a Table is made from the whole object.

use std::time::Duration;

use apiloom_storage::Revision;
use bytes::Bytes;
use tokio::time::Instant;

use crate::recent::Recent;
use crate::registry::objects::cached_object::StateId;
use crate::registry::objects::document::Encoded;

/// For how long they are kept: a row of a Table says how old its object is, in seconds.
const KEPT_FOR: Duration = Duration::from_millis(500);

/// The last encodings of an endpoint that are of no change.
#[derive(Debug, Default)]
pub(super) struct FirstEncodings(Recent<Encoding>);

#[derive(Debug)]
struct Encoding {
    of: (StateId, Option<Revision>),
    /// The form, format and type of the event.
    number: u64,
    at: Instant,
    bytes: Bytes,
}

impl FirstEncodings {
    /// The encoding of an object under a number, made now unless it was lately.
    pub(super) fn get(
        &self,
        object: &Encoded,
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
