//! The beginning of a text, for errors that show no more of a value.

use std::io;

/// How many bytes of a character may be behind the first one.
const MAX_CONTINUATION_BYTES: usize = 3;

/// A writer that keeps the beginning of a text. It fails when it is full, which ends the serialization of a large value.
pub struct TextPrefix {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl TextPrefix {
    /// The text that `write` writes; of one that is longer than `min_bytes` at least these, without the character at their end that is
    /// cut. `None` if `write` fails by itself.
    pub fn of<E>(
        min_bytes: usize,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Option<String> {
        let mut prefix = Self {
            bytes: Vec::new(),
            max_bytes: min_bytes + MAX_CONTINUATION_BYTES,
        };
        let is_written = write(&mut prefix).is_ok();
        if !is_written && prefix.bytes.len() < prefix.max_bytes {
            return None;
        }
        let mut chunks = prefix.bytes.utf8_chunks();
        Some(chunks.next().map_or("", |chunk| chunk.valid()).to_owned())
    }
}

impl io::Write for TextPrefix {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let kept = bytes.len().min(self.max_bytes - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..kept]);
        Ok(kept)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[track_caller]
    fn check(text: &str, min_bytes: usize, expected: &str) {
        let write = |prefix: &mut TextPrefix| prefix.write_all(text.as_bytes());
        assert_eq!(
            TextPrefix::of(min_bytes, write).as_deref(),
            Some(expected),
            "{text}"
        );
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        check("", 0, "");
        check("abc", 0, "abc");
        check("abcdef", 2, "abcde");
        check("ab\u{e4}\u{e4}\u{e4}", 3, "ab\u{e4}\u{e4}");
        check("ab\u{20ac}\u{20ac}", 3, "ab\u{20ac}");
        check("a\u{1f600}\u{1f600}", 2, "a\u{1f600}");
        check("a\u{1f600}\u{1f600}", 1, "a");
    }

    #[test]
    fn what_fails_by_itself_has_no_text() {
        let write = |prefix: &mut TextPrefix| {
            prefix.write_all(b"ab")?;
            Err(io::Error::other("no value"))
        };
        assert_eq!(TextPrefix::of(2, write), None);
    }
}
