//! Files that only the owner may read: written whole, with mode 0600, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::ServerError;

/// Makes a folder that only the owner may enter; an existing one is left as it is.
pub(super) fn make_dir(path: &Path) -> Result<(), ServerError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .map_err(|error| unusable(path, "cannot be made", &error))?;
    // A folder may exist and still refuse new files; finding out now gives one clear line instead of a later surprise.
    tempfile_in(path)
        .and_then(|(probe, _)| fs::remove_file(probe))
        .map_err(|error| unusable(path, "is not writable", &error))
}

/// Replaces a file's content in one step, durable when this returns; the new file has mode 0600.
pub(super) fn write(path: &Path, content: &str) -> Result<(), ServerError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    replace(path, dir, content, File::sync_all)
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(|error| unusable(path, "cannot be written", &error))
}

/// As [`write`], but not durable: for what every start writes when it is not as it should be.
pub(super) fn write_derived(path: &Path, content: &str) -> Result<(), ServerError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    replace(path, dir, content, |_| Ok(()))
        .map_err(|error| unusable(path, "cannot be written", &error))
}

fn replace(
    path: &Path,
    dir: &Path,
    content: &str,
    finish: impl FnOnce(&File) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let (temporary, mut file) = tempfile_in(dir)?;
    file.write_all(content.as_bytes())?;
    finish(&file)?;
    fs::rename(&temporary, path)
}

/// The content of a file, `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, ServerError> {
    match fs::read_to_string(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, "cannot be read", &error)),
    }
}

fn tempfile_in(dir: &Path) -> std::io::Result<(PathBuf, File)> {
    let path = dir.join(format!(".{}.tmp", uuid::Uuid::new_v4()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    Ok((path, file))
}

fn unusable(path: &Path, what: &str, error: &std::io::Error) -> ServerError {
    ServerError::File {
        path: path.to_owned(),
        reason: format!("{what}: {error}"),
    }
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
}
