//! The times and sizes of history, in a small file beside the store: without it, the age of history would start again
//! with every process, and a store that is often restarted would never compact anything.
//!
//! The file is never synced: if it is lost, cut or damaged, history is taken to be as old as the process. Times are
//! those of the clock, and are converted to ages when they are read; a clock that was set back makes history younger.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::files::private_file;
use super::mark::write_at_start;
use crate::Revision;
use crate::retention::Sample;

const FILE: &str = "store.times";

/// More samples than a history ever has; the newest ones are kept.
const SAMPLES: usize = 192;

/// Time, revision and bytes, little-endian.
const SAMPLE_BYTES: usize = 24;

/// All samples, unused ones zero, and the checksum of those bytes.
const BYTES: usize = SAMPLES * SAMPLE_BYTES + 4;

/// The open file.
#[derive(Debug)]
pub(super) struct Times {
    file: File,
}

impl Times {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let file = private_file().read(true).open(dir.join(FILE))?;
        Ok(Self { file })
    }

    /// Reads the samples, oldest first.
    pub(super) fn read(&self) -> io::Result<Vec<Sample>> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.take(BYTES as u64).read_to_end(&mut bytes)?;
        Ok(parse(&bytes, now()))
    }

    pub(super) fn set(&self, samples: impl Iterator<Item = Sample>) -> io::Result<()> {
        write_at_start(&self.file, &format(samples, now()))
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

fn format(samples: impl Iterator<Item = Sample>, now: u64) -> Vec<u8> {
    let samples: Vec<Sample> = samples.collect();
    let newest = &samples[samples.len().saturating_sub(SAMPLES)..];
    let mut bytes = vec![0; BYTES];
    let (body, seal) = bytes.split_at_mut(BYTES - 4);
    for (place, sample) in body.chunks_exact_mut(SAMPLE_BYTES).zip(newest) {
        let age = u64::try_from(sample.age.as_millis()).unwrap_or(u64::MAX);
        // 0 marks an unused slot.
        let numbers = [
            now.saturating_sub(age).max(1),
            sample.revision.0,
            sample.bytes,
        ];
        for (place, number) in place.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }
    seal.copy_from_slice(&checksum(body).to_le_bytes());
    bytes
}

fn parse(bytes: &[u8], now: u64) -> Vec<Sample> {
    let Some((body, seal)) = bytes.split_last_chunk::<4>() else {
        return Vec::new();
    };
    if bytes.len() != BYTES || *seal != checksum(body).to_le_bytes() {
        return Vec::new();
    }
    let sample = |place: &[u8]| {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&place[at..at + 8]);
            u64::from_le_bytes(number)
        };
        (number(0) > 0).then(|| Sample {
            age: Duration::from_millis(now.saturating_sub(number(0))),
            revision: Revision(number(8)),
            bytes: number(16),
        })
    };
    body.chunks_exact(SAMPLE_BYTES).map_while(sample).collect()
}

fn checksum(body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(b"times");
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(age: u64, revision: u64) -> Sample {
        Sample {
            age: Duration::from_secs(age),
            revision: Revision(revision),
            bytes: revision * 7,
        }
    }

    #[test]
    fn what_is_written_is_read_with_its_age() {
        let now = 1_700_000_000_000;
        let written = [sample(400, 3), sample(20, 9), sample(0, 12)];
        let bytes = format(written.into_iter(), now);
        assert_eq!(parse(&bytes, now), written);
        let later = parse(&bytes, now + 60_000);
        assert_eq!(
            later[1],
            Sample {
                age: Duration::from_secs(80),
                ..written[1]
            }
        );
        // The clock was set back.
        let earlier = parse(&bytes, now - 30_000);
        assert_eq!(earlier[0].age, Duration::from_secs(370));
        assert_eq!(earlier[2].age, Duration::ZERO);
    }

    #[test]
    fn the_newest_are_kept_where_there_are_too_many() {
        let many = (0..1_000).map(|number| sample(1_000 - number, number));
        let read = parse(&format(many, 1_700_000_000_000), 1_700_000_000_000);
        assert_eq!(read.len(), SAMPLES);
        assert_eq!(read.last(), Some(&sample(1, 999)));
    }

    #[test]
    fn what_is_damaged_or_cut_says_nothing() {
        let whole = format([sample(4, 3)].into_iter(), 1_000_000);
        for bit in (0..BYTES * 8).step_by(5) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&flipped, 1_000_000), [], "bit {bit}");
        }
        for length in [0, 3, 4, 100, BYTES - 1] {
            assert_eq!(parse(&whole[..length], 1_000_000), [], "{length} bytes");
        }
        assert_eq!(parse(&[0; BYTES], 1_000_000), []);
    }
}
