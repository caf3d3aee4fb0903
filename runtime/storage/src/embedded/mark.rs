//! The mark: the newest acknowledged revision, in a small file beside the store.
//!
//! SQLite's log ends at its first damaged frame; later frames are ignored as if they had never been written. The store
//! would then go back silently. The mark is written when a commit is on the disk and before it is acknowledged, and is
//! never synced: after a crash of the machine it may be older than the store, but never newer. A store that ends before
//! its mark has lost acknowledged writes.

use std::fs::File;
#[cfg(not(unix))]
use std::io::Write;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::files::private_file;

const FILE: &str = "store.newest";

/// The revision, little-endian, and the checksum of those bytes.
const BYTES: usize = 12;

/// The open file.
#[derive(Debug)]
pub(super) struct Mark {
    file: File,
}

impl Mark {
    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let file = private_file().read(true).open(Self::path(dir))?;
        Ok(Self { file })
    }

    /// Reads the revision: `None` if the file is new, was cut by a crash or is damaged.
    pub(super) fn read(&self) -> io::Result<Option<u64>> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.take(BYTES as u64).read_to_end(&mut bytes)?;
        let mark = parse(&bytes);
        if mark.is_none() && !bytes.is_empty() {
            tracing::warn!(
                file = FILE,
                "the mark of the newest revision is damaged and is replaced"
            );
        }
        Ok(mark)
    }

    pub(super) fn set(&self, revision: u64) -> io::Result<()> {
        write_at_start(&self.file, &format(revision))
    }
}

#[cfg(unix)]
pub(super) fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(not(unix))]
pub(super) fn write_at_start(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)
}

fn format(revision: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (number, seal) = bytes.split_at_mut(8);
    number.copy_from_slice(&revision.to_le_bytes());
    seal.copy_from_slice(&checksum(revision).to_le_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Option<u64> {
    let (number, seal) = bytes.split_first_chunk::<8>()?;
    let revision = u64::from_le_bytes(*number);
    (seal == checksum(revision).to_le_bytes()).then_some(revision)
}

/// Differs from the checksum of zeros only, so that a block which a crash left empty is not valid.
fn checksum(revision: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(b"newest");
    hasher.update(&revision.to_le_bytes());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = format(0x0123_4567_89AB);
        assert_eq!(parse(&whole), Some(0x0123_4567_89AB));
        for bit in 0..BYTES * 8 {
            let mut flipped = whole;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&flipped), None, "bit {bit}");
        }
        for length in 0..BYTES {
            assert_eq!(parse(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(parse(&[0; BYTES]), None);
    }
}
