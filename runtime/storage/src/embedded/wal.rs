//! Finds the damage in SQLite's log, for the error message.
//!
//! SQLite ends its log at the first frame that does not match its checksum. This reads the log as SQLite does: a header of
//! 32 bytes, then frames of 24 bytes and a page; the checksum of each goes on from that of the one before.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The last bit of the magic number is the byte order of the checksums.
const MAGIC: u32 = 0x377F_0682;

/// The first damaged place: the number of the frame, counted from 1, and its offset; 0 for the header. A reused log has
/// frames of an earlier generation at its end: these are reported as damage too.
pub(super) fn first_damage(path: &Path) -> io::Result<(u64, u64)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let magic = big_endian(&header, 0);
    let mut sum = Sum {
        is_big_endian: magic & 1 == 1,
        values: (0, 0),
    };
    sum.add(&header[..24]);
    let page_bytes = big_endian(&header, 8) as usize;
    if magic & !1 != MAGIC || !sum.is_at(&header, 24) || !(512..=65_536).contains(&page_bytes) {
        return Ok((0, 0));
    }
    let mut frame = vec![0; FRAME_HEADER + page_bytes];
    for number in 1.. {
        let offset = HEADER as u64 + (number - 1) * frame.len() as u64;
        if let Err(error) = file.read_exact(&mut frame) {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => Ok((number, offset)),
                _ => Err(error),
            };
        }
        sum.add(&frame[..8]);
        sum.add(&frame[FRAME_HEADER..]);
        if frame[8..16] != header[16..24] || !sum.is_at(&frame, 16) {
            return Ok((number, offset));
        }
    }
    Ok((0, 0))
}

fn big_endian(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

/// SQLite's running checksum.
struct Sum {
    is_big_endian: bool,
    values: (u32, u32),
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let (mut a, mut b) = self.values;
        let number = |at: usize| {
            let number = big_endian(bytes, at);
            if self.is_big_endian {
                number
            } else {
                number.swap_bytes()
            }
        };
        for at in (0..bytes.len()).step_by(8) {
            a = a.wrapping_add(number(at)).wrapping_add(b);
            b = b.wrapping_add(number(at + 4)).wrapping_add(a);
        }
        self.values = (a, b);
    }

    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        (big_endian(bytes, at), big_endian(bytes, at + 4)) == self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_damage_is_found_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)",
            )
            .unwrap();
        let log = dir.path().join("db-wal");
        let whole = std::fs::read(&log).unwrap();
        let frame = FRAME_HEADER + 4096;
        let frames = ((whole.len() - HEADER) / frame) as u64;
        assert!(frames >= 3);
        assert_eq!(
            first_damage(&log).unwrap(),
            (frames + 1, whole.len() as u64),
            "a whole log ends"
        );
        let check = |byte: usize, number| {
            let mut damaged = whole.clone();
            damaged[byte] ^= 4;
            std::fs::write(dir.path().join("damaged"), damaged).unwrap();
            let (found, offset) = first_damage(&dir.path().join("damaged")).unwrap();
            assert_eq!(found, number, "byte {byte}");
            assert!(found == 0 || offset <= byte as u64 && byte as u64 - offset < frame as u64);
        };
        check(3, 0);
        check(30, 0);
        check(HEADER, 1);
        check(HEADER + 20, 1);
        check(HEADER + frame + 12, 2);
        check(HEADER + 2 * frame + 3_000, 3);
    }
}
