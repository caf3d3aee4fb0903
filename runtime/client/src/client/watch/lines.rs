//! Splits the bytes of a watch at line breaks. A line that arrived in one piece is not copied.

use bytes::{Buf as _, Bytes, BytesMut};

/// The bytes that have arrived and are not yet part of a line that was taken.
pub(super) struct Lines {
    /// The beginning of a line, without its end.
    begun: BytesMut,
    /// What arrived last, behind `begun`.
    arrived: Bytes,
    most: usize,
}

/// A line is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    /// Lines of at most this number of bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            begun: BytesMut::new(),
            arrived: Bytes::new(),
            most,
        }
    }

    /// Adds bytes. All lines before must have been taken.
    pub(super) fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.arrived.is_empty(), "all lines were taken");
        self.arrived = bytes;
    }

    /// The next complete line, without its break; lines of white space are left out.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        while let Some(end) = memchr::memchr(b'\n', &self.arrived) {
            if self.begun.len() + end > self.most {
                return Err(TooLong);
            }
            let mut line = self.arrived.split_to(end);
            self.arrived.advance(1);
            if !self.begun.is_empty() {
                self.begun.extend_from_slice(&line);
                line = std::mem::take(&mut self.begun).freeze();
            }
            let line = trimmed(line);
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
        if self.begun.len() + self.arrived.len() > self.most {
            return Err(TooLong);
        }
        self.begun.extend_from_slice(&self.arrived);
        self.arrived = Bytes::new();
        Ok(None)
    }

    /// The bytes that are not part of a line yet, for errors.
    pub(super) fn rest(&self) -> &[u8] {
        &self.begun
    }
}

fn trimmed(mut line: Bytes) -> Bytes {
    let end = line.trim_ascii_end().len();
    line.truncate(end);
    let start = line.len() - line.trim_ascii_start().len();
    line.advance(start);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&'static str], most: usize) -> Result<(Vec<Bytes>, String), TooLong> {
        let mut lines = Lines::new(most);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(Bytes::from_static(piece.as_bytes()));
            while let Some(line) = lines.next()? {
                found.push(line);
            }
        }
        Ok((found, String::from_utf8_lossy(lines.rest()).into_owned()))
    }

    #[test]
    fn trap_16_lines_are_split_wherever_the_pieces_end() {
        let text = "{\"a\":1}\r\n\n{\"b\":2}\n{\"c\"";
        let expected: Vec<Bytes> = vec!["{\"a\":1}".into(), "{\"b\":2}".into()];
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                let found = split(&pieces, 100).unwrap();
                assert_eq!(found, (expected.clone(), "{\"c\"".to_owned()), "{pieces:?}");
            }
        }
    }

    #[test]
    fn trap_16_a_line_over_the_limit_is_an_error_before_its_end() {
        assert_eq!(split(&["12345\n"], 5).unwrap().0.len(), 1);
        assert_eq!(split(&["123456\n"], 5), Err(TooLong));
        assert_eq!(split(&["123", "456"], 5), Err(TooLong));
        assert_eq!(split(&["123", "456\n"], 5), Err(TooLong));
    }

    #[test]
    fn a_line_in_one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"one\ntwo\n");
        let mut lines = Lines::new(100);
        lines.push(piece.clone());
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line.as_ptr(), piece.as_ptr());
    }
}
