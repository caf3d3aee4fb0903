//! The file of the log: appended to, and begun again when it is large. Files that were ended have the names that kube-apiserver gives
//! them, so that tools find them: `audit-2026-11-30T20-05-42.123.log`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use apiloom_meta::MicroTime;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::event::micros;

/// How the files of a log are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    /// Size at which a file is ended; `None` for never.
    pub(super) max_bytes: Option<u64>,
    /// Time after which an ended file is removed; `None` for never.
    pub(super) max_age: Option<Duration>,
    /// Most ended files; `None` for any number.
    pub(super) max_backups: Option<usize>,
    /// Whether ended files are compressed.
    pub(super) compresses: bool,
}

/// A log in a file.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// When the last file was ended, in milliseconds: the next one ends later, so that their names are in their order.
    ended_millis: i64,
    rotation: Rotation,
}

impl LogFile {
    /// Opens the file, or creates it, readable by its owner alone.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            fs::create_dir_all(folder)?;
        }
        let mut file = append_to(path)?;
        if ends_within_line(path)? {
            // A process that was killed, or a machine that lost its power, left a part of an event.
            file.write_all(b"\n")?;
        }
        let bytes = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
            ended_millis: 0,
            rotation,
        })
    }

    /// Appends lines, which stay in one file.
    ///
    /// # Errors
    /// If not all of it is written: then none of it is.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let most = self.rotation.max_bytes.unwrap_or(u64::MAX);
        if self.bytes > 0 && self.bytes.saturating_add(lines.len() as u64) > most {
            // The log goes on in the file that there is, rather than to lose events.
            if let Err(error) = self.rotate() {
                let path = self.path.display();
                tracing::error!(%path, %error, "unable to begin a new file of the audit log");
            }
        }
        let written = self.file.write_all(lines);
        if written.is_err() {
            // What follows a part of a line could not be read.
            self.file.set_len(self.bytes)?;
            return written;
        }
        self.bytes += lines.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let ended = self.ended_name(SystemTime::now());
        let renamed = fs::rename(&self.path, &ended);
        match &renamed {
            // Another program has moved it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => renamed?,
        }
        match append_to(&self.path) {
            Ok(file) => (self.file, self.bytes) = (file, 0),
            Err(error) => {
                fs::rename(&ended, &self.path)?;
                return Err(error);
            }
        }
        if let Err(error) = self.clean(SystemTime::now()) {
            let path = self.path.display();
            tracing::error!(%path, %error, "unable to clean up old files of the audit log");
        }
        Ok(())
    }

    /// The name of the file that ends at this time: a free one.
    fn ended_name(&mut self, at: SystemTime) -> PathBuf {
        self.ended_millis = (self.ended_millis + 1).max(micros(at).unix_micros() / 1000);
        loop {
            let time = MicroTime::from_unix_micros(self.ended_millis * 1000).to_string();
            // From 2026-11-30T20:05:42.123000Z.
            let time = time.get(..23).unwrap_or(&time).replace(':', "-");
            let name = self.named(&format!("-{time}"));
            if !name.exists() && !compressed(&name).exists() {
                return name;
            }
            self.ended_millis += 1;
        }
    }

    /// The path with this before its extension.
    fn named(&self, infix: &str) -> PathBuf {
        let mut name = self.path.file_stem().unwrap_or_default().to_owned();
        name.push(infix);
        if let Some(extension) = self.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.path.with_file_name(name)
    }

    /// Removes and compresses ended files.
    fn clean(&self, now: SystemTime) -> io::Result<()> {
        let mut ended = self.ended()?;
        ended.sort();
        let too_many = ended
            .len()
            .saturating_sub(self.rotation.max_backups.unwrap_or(usize::MAX));
        for (index, file) in ended.iter().enumerate() {
            let age = fs::metadata(file)?.modified()?;
            let age = now.duration_since(age).unwrap_or_default();
            if index < too_many || self.rotation.max_age.is_some_and(|most| age > most) {
                fs::remove_file(file)?;
            } else if self.rotation.compresses && file.extension().is_none_or(|end| end != "gz") {
                compress(file)?;
            }
        }
        Ok(())
    }

    /// The files that were ended.
    fn ended(&self) -> io::Result<Vec<PathBuf>> {
        let folder = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut ended = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
            let path = entry?.path();
            if self.is_ended(&path) {
                ended.push(path);
            }
        }
        Ok(ended)
    }

    /// Whether this is a file of the log that was ended.
    fn is_ended(&self, path: &Path) -> bool {
        let text = |text: Option<&std::ffi::OsStr>| {
            let text = text.and_then(|text| text.to_str());
            text.unwrap_or_default().to_owned()
        };
        let name = text(path.file_name());
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let extension = text(self.path.extension());
        let stem = match &*extension {
            "" => Some(name),
            extension => name
                .strip_suffix(extension)
                .and_then(|name| name.strip_suffix('.')),
        };
        let begin = text(self.path.file_stem());
        let time = stem.and_then(|stem| stem.strip_prefix(&*begin)?.strip_prefix('-'));
        let Some((day, time)) = time.and_then(|time| time.split_once('T')) else {
            return false;
        };
        let time = format!("{day}T{}Z", time.replace('-', ":"));
        time.parse::<MicroTime>().is_ok()
    }
}

/// Whether the last line of a file has no end.
fn ends_within_line(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)
}

fn compressed(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".gz");
    name.into()
}

/// Replaces a file by a compressed one.
fn compress(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let target = compressed(path);
    let options = options.create(true).write(true).truncate(true).mode(0o600);
    let mut encoder = GzEncoder::new(options.open(&target)?, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn log(folder: &Path, rotation: Rotation) -> LogFile {
        LogFile::open(&folder.join("logs/audit.log"), rotation).unwrap()
    }

    fn rotation(max_bytes: u64) -> Rotation {
        Rotation {
            max_bytes: Some(max_bytes),
            max_age: None,
            max_backups: None,
            compresses: false,
        }
    }

    #[test]
    fn a_large_file_is_ended_and_old_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(
            folder.path(),
            Rotation {
                max_backups: Some(2),
                ..rotation(10)
            },
        );
        let other = folder.path().join("logs/audit-of-last-year.log");
        fs::write(&other, "mine").unwrap();
        for line in [
            "1234567\n",
            "2\n",
            "3\n",
            "4\n",
            "56789012\n",
            "6\n",
            "78901234567\n",
            "8\n",
        ] {
            log.append(line.as_bytes()).unwrap();
        }
        let mut ended = log.ended().unwrap();
        ended.sort();
        let content: Vec<_> = ended
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        assert_eq!(content, ["6\n", "78901234567\n"]);
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "8\n");
        assert!(other.exists(), "it is not one of the log");
        // Only its owner reads it, and what was there is kept.
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&log.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut again = LogFile::open(&log.path, rotation(10)).unwrap();
        again.append(b"9\n").unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "8\n9\n");
    }

    #[test]
    fn ended_files_are_compressed_and_removed_by_age() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(
            folder.path(),
            Rotation {
                compresses: true,
                max_age: Some(DAY),
                ..rotation(4)
            },
        );
        log.append(b"123\n").unwrap();
        log.append(b"456\n").unwrap();
        let ended = log.ended().unwrap();
        let [gz] = &ended[..] else {
            panic!("there is one: {ended:?}");
        };
        assert_eq!(gz.extension().unwrap(), "gz");
        let mut text = String::new();
        let mut decoder = flate2::read::GzDecoder::new(File::open(gz).unwrap());
        decoder.read_to_string(&mut text).unwrap();
        assert_eq!(text, "123\n");
        log.clean(SystemTime::now() + DAY / 2).unwrap();
        assert!(gz.exists());
        log.clean(SystemTime::now() + 2 * DAY).unwrap();
        assert!(!gz.exists());
    }

    #[test]
    fn a_part_of_an_event_spoils_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, "1\n{\"kind\":").unwrap();
        let mut log = LogFile::open(&path, rotation(100)).unwrap();
        log.append(b"2\n").unwrap();
        let mut again = LogFile::open(&path, rotation(100)).unwrap();
        again.append(b"3\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "1\n{\"kind\":\n2\n3\n");
        assert_eq!(again.bytes, text.len() as u64);
    }

    #[test]
    fn a_log_whose_file_was_moved_away_has_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(folder.path(), rotation(4));
        log.append(b"123\n").unwrap();
        fs::remove_file(&log.path).unwrap();
        log.append(b"456\n").unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "456\n");
    }

    #[test]
    fn a_log_that_cannot_be_ended_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(folder.path(), rotation(4));
        log.append(b"123\n").unwrap();
        let moved = folder.path().join("moved");
        fs::rename(log.path.parent().unwrap(), &moved).unwrap();
        log.append(b"456\n").unwrap();
        assert_eq!(log.bytes, 8);
        let text = fs::read_to_string(moved.join("audit.log")).unwrap();
        assert_eq!(text, "123\n456\n");
    }
}
