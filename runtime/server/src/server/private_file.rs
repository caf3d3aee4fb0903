//! Files that only their owner may read and write: written atomically, with mode 0600, and read only if no other user
//! can have changed them.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::{Config, ServerError};

/// Maximum size of a file that is read; keys, certificates and tokens are much smaller.
const MAX_BYTES: u64 = 1024 * 1024;

impl Config {
    /// The path of a secret in the data folder, such as a key: made when it is first asked for, and then kept. Blocks.
    ///
    /// # Errors
    /// A folder or a file that cannot be used, or that other users could read or change.
    pub fn secret(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<String, ServerError>,
    ) -> Result<PathBuf, ServerError> {
        make_dir(&self.data_dir)?;
        let path = self.data_dir.join(name);
        if read_secret(&path)?.is_none() {
            // Another process may make it at the same moment: its secret counts.
            write_new(&path, &make()?)?;
            read_secret(&path)?;
        }
        Ok(path)
    }
}

/// Creates a directory that only the owner may enter. An existing one must belong to the owner, and no other user may
/// write to it: they could put their own keys into it.
pub(super) fn make_dir(path: &Path) -> Result<(), ServerError> {
    // With a slash at its end, a symbolic link would be reported as its target.
    let path: PathBuf = path.components().collect();
    let path = path.as_path();
    if let Ok(metadata) = fs::symlink_metadata(path) {
        check(path, &metadata, Kind::Folder)?;
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .map_err(|error| unusable(path, "cannot be made", &error))?;
    // A directory may exist but be read-only; a test file makes this one clear error, at the start.
    tempfile_in(path)
        .and_then(|(probe, _)| fs::remove_file(probe))
        .map_err(|error| unusable(path, "is not writable", &error))
}

/// Replaces the content of a file atomically and durably; the new file has mode 0600.
pub(super) fn write(path: &Path, content: &str) -> Result<(), ServerError> {
    let rename = |temporary: &Path, path: &Path| fs::rename(temporary, path);
    put(path, content, rename).map_err(|error| unusable(path, "cannot be written", &error))
}

/// As [`write`], for a new file; returns false if another process created it before.
pub(super) fn write_new(path: &Path, content: &str) -> Result<bool, ServerError> {
    let link = |temporary: &Path, path: &Path| {
        let linked = fs::hard_link(temporary, path);
        fs::remove_file(temporary)?;
        linked
    };
    match put(path, content, link) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unusable(path, "cannot be written", &error)),
    }
}

/// As [`write`], but not durable: for files that every start writes again if necessary.
pub(super) fn write_derived(path: &Path, content: &str) -> Result<(), ServerError> {
    let written =
        temporary_of(path, content).and_then(|(temporary, _)| fs::rename(temporary, path));
    written.map_err(|error| unusable(path, "cannot be written", &error))
}

fn put(
    path: &Path,
    content: &str,
    place: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let (temporary, file) = temporary_of(path, content)?;
    file.sync_all()?;
    place(&temporary, path)?;
    File::open(parent(path))?.sync_all()
}

fn temporary_of(path: &Path, content: &str) -> io::Result<(PathBuf, File)> {
    let (temporary, mut file) = tempfile_in(parent(path))?;
    file.write_all(content.as_bytes())?;
    Ok((temporary, file))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The content of a file; `None` if it does not exist. Its permissions are not checked.
pub(super) fn read(path: &Path) -> Result<Option<String>, ServerError> {
    read_checked(path, None)
}

/// The content of a file that only the owner can read and write; `None` if it does not exist.
pub(super) fn read_secret(path: &Path) -> Result<Option<String>, ServerError> {
    read_checked(path, Some(Kind::Secret))
}

/// The content of a file that only the owner can write; `None` if it does not exist.
pub(super) fn read_own(path: &Path) -> Result<Option<String>, ServerError> {
    read_checked(path, Some(Kind::Public))
}

fn read_checked(path: &Path, kind: Option<Kind>) -> Result<Option<String>, ServerError> {
    let unreadable = |error: io::Error| unusable(path, "cannot be read", &error);
    if let Some(kind) = kind {
        // Checked before opening: opening a pipe would block.
        match fs::symlink_metadata(path) {
            Ok(metadata) => check(path, &metadata, kind)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        }
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if let Some(kind) = kind {
        // Checked again for the opened file, which may be another one.
        check(path, &file.metadata().map_err(unreadable)?, kind)?;
    }
    let mut content = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut content);
    let read = read.map_err(unreadable)?;
    if read as u64 > MAX_BYTES {
        return Err(refused(path, "is larger than 1 MiB; it is no file of ours"));
    }
    Ok(Some(content))
}

/// Type and required permissions of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    /// A file that others may read but not write.
    Public,
    /// A file that others may neither read nor write.
    Secret,
}

/// Refuses a path that another user owns, can write or, for a secret, can read.
fn check(path: &Path, metadata: &Metadata, kind: Kind) -> Result<(), ServerError> {
    if metadata.is_symlink() {
        return Err(refused(
            path,
            "is a symbolic link, which could lead to what others can write; put there what it leads to, or name that instead",
        ));
    }
    let is_expected = match kind {
        Kind::Folder => metadata.is_dir(),
        Kind::Public | Kind::Secret => metadata.is_file(),
    };
    if !is_expected {
        return Err(refused(
            path,
            match kind {
                Kind::Folder => "is not a directory; move it away, or choose another one",
                Kind::Public | Kind::Secret => "is not a file; move it away",
            },
        ));
    }
    #[cfg(unix)]
    check_owner(path, metadata, kind)?;
    Ok(())
}

#[cfg(unix)]
fn check_owner(path: &Path, metadata: &Metadata, kind: Kind) -> Result<(), ServerError> {
    use std::os::unix::fs::MetadataExt as _;

    let (owner, ours) = (metadata.uid(), rustix::process::geteuid().as_raw());
    // root can change every file anyway.
    if owner != ours && owner != 0 {
        let why = format!(
            "belongs to another user (uid {owner}, this process runs as uid {ours}); run `chown {ours} {}`, or choose another one",
            path.display()
        );
        return Err(refused(path, &why));
    }
    let mode = metadata.mode() & 0o777;
    let (unwanted, can, fix) = match kind {
        Kind::Folder | Kind::Public => (0o022, "write to", "go-w"),
        Kind::Secret => (0o077, "read or write", "go-rwx"),
    };
    if mode & unwanted != 0 {
        let why = format!(
            "has mode {mode:03o}, so other users can {can} it; run `chmod {fix} {}`",
            path.display()
        );
        return Err(refused(path, &why));
    }
    Ok(())
}

/// Whether a file has the permissions that [`write`] sets.
pub(super) fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| check(path, &metadata, Kind::Secret).is_ok())
}

fn tempfile_in(dir: &Path) -> io::Result<(PathBuf, File)> {
    let path = dir.join(format!(".{}.tmp", uuid::Uuid::new_v4()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Some file systems have no permissions, so that a secret could be read by all users.
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            fs::remove_file(&path)?;
            return Err(io::Error::other(
                "its file system has no permissions, so other users could read private files; choose another directory",
            ));
        }
    }
    Ok((path, file))
}

fn refused(path: &Path, why: &str) -> ServerError {
    ServerError::File {
        path: path.to_owned(),
        reason: why.to_owned(),
    }
}

fn unusable(path: &Path, what: &str, error: &io::Error) -> ServerError {
    refused(path, &format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_written_file_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        write_derived(&path, "three").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(read(&path).unwrap().as_deref(), Some("three"));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn a_folder_below_a_file_is_one_clear_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = make_dir(&file.path().join("data")).unwrap_err().to_string();
        assert!(
            error.contains("cannot be made") && !error.contains('\n'),
            "{error}"
        );
    }

    /// When two processes start at the same time, one creates the file, and both use it.
    #[test]
    fn a_new_file_never_replaces_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        assert!(write_new(&path, "one").unwrap());
        assert!(!write_new(&path, "two").unwrap());
        assert_eq!(read_secret(&path).unwrap().as_deref(), Some("one"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// Checks that an error is one line with the path and these parts.
    #[cfg(unix)]
    #[track_caller]
    fn refuses<T: std::fmt::Debug>(result: Result<T, ServerError>, path: &Path, parts: &[&str]) {
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{}: ", path.display())),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }

    /// Files that others can change.
    #[cfg(unix)]
    #[test]
    fn what_others_can_change_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let (folder, file) = (dir.path().join("data"), dir.path().join("file"));
        fs::create_dir(&folder).unwrap();
        for writable in [0o770, 0o702, 0o777, 0o1777] {
            mode(&folder, writable);
            refuses(
                make_dir(&folder),
                &folder,
                &["other users can write to it", "chmod go-w"],
            );
        }
        for fine in [0o700, 0o755] {
            mode(&folder, fine);
            make_dir(&folder).unwrap();
        }
        fs::write(&file, "secret").unwrap();
        for readable in [0o644, 0o640, 0o604, 0o666] {
            mode(&file, readable);
            refuses(
                read_secret(&file),
                &file,
                &["other users can read or write it", "chmod go-rwx"],
            );
            assert_eq!(read_own(&file).is_ok(), readable != 0o666);
            assert_eq!(read(&file).unwrap().as_deref(), Some("secret"));
        }
        for fine in [0o600, 0o400] {
            mode(&file, fine);
            assert_eq!(read_secret(&file).unwrap().as_deref(), Some("secret"));
        }
        let link = dir.path().join("link");
        symlink(&file, &link).unwrap();
        refuses(read_secret(&link), &link, &["is a symbolic link"]);
        refuses(read_own(&link), &link, &["is a symbolic link"]);
        fs::remove_file(&link).unwrap();
        symlink(&folder, &link).unwrap();
        refuses(make_dir(&link), &link, &["is a symbolic link"]);
        refuses(make_dir(&link.join("")), &link, &["is a symbolic link"]);
        // A dangling symbolic link is not a missing file.
        fs::remove_file(&link).unwrap();
        symlink(dir.path().join("nothing"), &link).unwrap();
        refuses(read_secret(&link), &link, &["is a symbolic link"]);
        refuses(read_secret(&folder), &folder, &["is not a file"]);
        refuses(make_dir(&file), &file, &["is not a directory"]);
    }

    /// Files of another owner.
    #[cfg(unix)]
    #[test]
    fn what_others_own_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write(&path, "one").unwrap();
        let stranger = rustix::process::geteuid().as_raw() + 1234;
        // Only root can change the owner of a file; other users skip the test.
        if std::os::unix::fs::chown(&path, Some(stranger), None).is_ok() {
            refuses(read_secret(&path), &path, &["another user", "chown"]);
            let data = dir.path().join("data");
            fs::create_dir(&data).unwrap();
            std::os::unix::fs::chown(&data, Some(stranger), None).unwrap();
            refuses(make_dir(&data), &data, &["another user", "chown"]);
        }
    }

    #[test]
    fn a_file_without_end_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        fs::write(&path, vec![b' '; MAX_BYTES as usize + 1]).unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("larger than 1 MiB")
        );
    }
}
