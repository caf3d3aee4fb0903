//! Reads the files that a configuration names. A path may lead to anything: what has no end, or no bytes, ends with an error.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes of a file: many times the certificates of all authorities, or a kubeconfig with thousands of clusters.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How long a pipe may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time between two looks at a pipe that has nothing yet.
const PAUSE: Duration = Duration::from_millis(5);

/// The content of a file.
///
/// # Errors
/// If it cannot be read, is no file, or has more than 16 MiB.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, kind) = open(path)?;
    if !kind.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    checked(bytes)
}

/// The content of a file or of a pipe, as shells make one of a command. This blocks until the pipe ends, at most 10 seconds.
///
/// # Errors
/// As [`read_file`], and if the pipe does not end in time.
pub(super) fn read_file_or_pipe(path: &Path) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let (file, kind) = open(path)?;
        if kind.is_fifo() {
            return read_pipe(file, PATIENCE);
        }
    }
    read_file(path)
}

/// Opens a file, without waiting for the writer of a pipe.
fn open(path: &Path) -> io::Result<(File, FileType)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    Ok((file, kind))
}

/// Reads a pipe, which does not block, to its end. One without a byte has no writer yet.
#[cfg(unix)]
fn read_pipe(mut pipe: File, patience: Duration) -> io::Result<Vec<u8>> {
    let started = Instant::now();
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) if !bytes.is_empty() => return Ok(bytes),
            Ok(0) => std::thread::sleep(PAUSE),
            Ok(count) => {
                bytes.extend_from_slice(&piece[..count]);
                bytes = checked(bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if started.elapsed() >= patience {
            let text = format!("the pipe does not end within {patience:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
    }
}

fn checked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    if bytes.len() as u64 > MAX_BYTES {
        let text = format!("it has more than {MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()));
        path
    }

    fn problem(read: io::Result<Vec<u8>>) -> String {
        read.expect_err("it is refused").to_string()
    }

    #[test]
    fn what_is_no_file_is_refused_and_blocks_no_thread() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = pipe(folder.path());
        for path in [folder.path(), Path::new("/dev/zero"), &pipe] {
            assert_eq!(problem(read_file(path)), "it is not a file");
        }
        for path in [folder.path(), Path::new("/dev/zero")] {
            assert_eq!(problem(read_file_or_pipe(path)), "it is not a file");
        }
        let missing = read_file(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_has_a_largest_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_BYTES).unwrap();
        assert_eq!(read_file(&path).unwrap().len() as u64, MAX_BYTES);
        file.set_len(1 << 40).unwrap();
        for read in [read_file, read_file_or_pipe] {
            assert_eq!(problem(read(&path)), "it has more than 16777216 bytes");
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_also_if_its_writer_is_late() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = pipe(folder.path());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "x".repeat(200_000))
        });
        assert_eq!(read_file_or_pipe(&pipe).unwrap().len(), 200_000);
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_pipe_without_an_end_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        let (file, _) = open(&path).unwrap();
        let patience = Duration::from_millis(20);
        assert_eq!(
            problem(read_pipe(file, patience)),
            "the pipe does not end within 20ms"
        );
        // One that never stops writing.
        let mut endless = Command::new("sh");
        endless
            .arg("-c")
            .arg("exec cat /dev/zero > \"$0\"")
            .arg(&path);
        let mut endless = endless.spawn().unwrap();
        assert_eq!(
            problem(read_file_or_pipe(&path)),
            "it has more than 16777216 bytes"
        );
        endless.wait().unwrap();
    }
}
