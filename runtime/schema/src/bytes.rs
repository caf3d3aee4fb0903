//! base64 as Go's encoding/json reads and writes `[]byte`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Go ignores the bits after the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Error of malformed base64; its text is that of Go's `base64.CorruptInputError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub struct IllegalBase64(usize);

/// Encodes bytes as base64.
///
/// ```
/// use apiloom_schema::bytes::{decode, encode};
/// assert_eq!(encode(b"hi"), "aGk=");
/// assert_eq!(decode("aGk=").unwrap(), b"hi");
/// assert_eq!(decode("aG?=").unwrap_err().to_string(), "illegal base64 data at input byte 2");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes base64. Line breaks are ignored.
///
/// # Errors
/// If the text is not base64, with the offset of the first illegal byte.
pub fn decode(text: &str) -> Result<Vec<u8>, IllegalBase64> {
    let is_break = |c: char| matches!(c, '\r' | '\n');
    let plain = if text.contains(is_break) {
        Cow::Owned(text.replace(is_break, ""))
    } else {
        Cow::Borrowed(text)
    };
    LENIENT
        .decode(plain.as_ref())
        .map_err(|_| IllegalBase64(fault(text.as_bytes())))
}

/// The offset at which Go reports the first illegal byte of a malformed text.
fn fault(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut digits = 0;
    let mut bytes = text
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, byte)) = bytes.next() {
        match (byte, digits % 4) {
            (b'=', 2) => match bytes.next() {
                None => return text.len(),
                Some((_, b'=')) => return bytes.next().map_or(text.len(), |(at, _)| at),
                Some((at, _)) => return at.saturating_sub(1),
            },
            (b'=', 3) => return bytes.next().map_or(text.len(), |(at, _)| at),
            _ if is_digit(byte) => digits += 1,
            _ => return at,
        }
    }
    text.len() - digits % 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base64_is_read_as_go_reads_it() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("aGk=", b"hi"),
            ("aGkh", b"hi!"),
            ("aA==", b"h"),
            ("a\nGk\r\n=\n", b"hi"),
            ("/+8=", &[0xff, 0xef]),
            // The last bits belong to no byte.
            ("aGl=", b"hi"),
        ] {
            assert_eq!(decode(text).unwrap(), bytes, "{text:?}");
        }
        for (text, at) in [
            ("a", 0),
            ("aG", 0),
            ("aGk", 0),
            ("aGkhaG", 4),
            ("=", 0),
            ("a===", 1),
            ("aG=", 3),
            ("aG=k", 2),
            ("aGk=x", 4),
            ("aA==aA==", 4),
            ("a?==", 1),
            ("aGk-", 3),
            ("a\nG?=", 3),
            ("\u{e4}", 0),
        ] {
            let error = decode(text).unwrap_err().to_string();
            let expected = format!("illegal base64 data at input byte {at}");
            assert_eq!(error, expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_survive_as_text(bytes in any::<Vec<u8>>()) {
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_text_panics(text in "[aA/=?\n-]{0,12}") {
            let _ = decode(&text);
        }
    }
}
