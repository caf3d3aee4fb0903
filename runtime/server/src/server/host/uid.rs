//! Uids in 16 bytes.

use aws_lc_rs::digest::{SHA256, digest};
use uuid::Uuid;

/// A uid. Those that servers assign are UUIDs; of others, which only references have, it is a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(u128);

impl Uid {
    /// The uid with this text.
    pub fn of(text: &str) -> Self {
        let uuid = Uuid::try_parse(text).ok();
        // Only the one spelling that servers assign.
        let canonical = uuid.filter(|uuid| {
            let mut buffer = Uuid::encode_buffer();
            uuid.as_hyphenated().encode_lower(&mut buffer) == text
        });
        let bytes = canonical.map_or_else(
            || {
                let digest = digest(&SHA256, text.as_bytes());
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&digest.as_ref()[..16]);
                bytes
            },
            Uuid::into_bytes,
        );
        Self(u128::from_be_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::Uid;

    #[test]
    fn each_text_is_a_uid_of_its_own() {
        let texts = [
            "",
            "a",
            "A",
            "67e55044-10b1-426f-9247-bb680e5fe0c8",
            "67E55044-10B1-426F-9247-BB680E5FE0C8",
            "67e5504410b1426f9247bb680e5fe0c8",
            "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8",
        ];
        let mut uids = texts.map(Uid::of).to_vec();
        assert_eq!(uids, texts.map(Uid::of));
        uids.sort();
        uids.dedup();
        assert_eq!(uids.len(), texts.len());
    }
}
