//! The id of a request, which its response has too: the client's, or a new one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::field::MAX_ECHOED_BYTES;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of the id.
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The client's `Audit-ID`, or a new one if it is missing or too long.
pub(super) fn request_id(headers: &HeaderMap) -> HeaderValue {
    headers
        .get(AUDIT_ID)
        .filter(|id| !id.is_empty() && id.len() <= MAX_ECHOED_BYTES)
        .cloned()
        .unwrap_or_else(|| {
            let mut text = uuid::Uuid::encode_buffer();
            let id = new_id().hyphenated().encode_lower(&mut text);
            let mut id = HeaderValue::from_str(id)
                .expect("hexadecimal digits and dashes make a header value");
            // Different for each request, so HPACK must not add it to its table.
            id.set_sensitive(true);
            id
        })
}

/// A unique id, without a call of the operating system's random source. It is no secret: it only identifies a request.
fn new_id() -> uuid::Uuid {
    let (high, low) = random();
    let halves = (u128::from(high) << 64) | u128::from(low);
    uuid::Builder::from_random_bytes(halves.to_be_bytes()).into_uuid()
}

/// Pseudorandom numbers for ids. A pair is never repeated.
pub(super) fn random() -> (u64, u64) {
    static SEED: LazyLock<(u64, u64)> = LazyLock::new(|| uuid::Uuid::new_v4().as_u64_pair());
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    let (high, low) = *SEED;
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    // Each half is a permutation, so pairs are unique.
    (scattered(high ^ number), scattered(low ^ number))
}

/// Maps a number to another, one to one, with similar numbers far apart (the finalizer of SplitMix64).
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_request_has_an_id_of_its_own() {
        let ids: HashSet<uuid::Uuid> = (0..10_000).map(|_| new_id()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
    }
}
