//! Gives the artifacts of one of cargo's build folders to another, so that cargo does not compile them there again.
//!
//! Files that exist stay. Cargo checks each artifact before it uses it, so a wrong guess about how it keeps them costs only time.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};

/// Where cargo keeps what it knows about each artifact.
const FINGERPRINTS: &str = ".fingerprint";

/// Where outputs of the compiler are.
const OUTPUTS: &str = "deps";

/// Where build scripts and their outputs are, a folder for each.
const SCRIPTS: &str = "build";

/// What cargo locks while it builds, in the folder of a profile.
const LOCK: &str = ".cargo-lock";

/// Gives artifacts, each with its files in the folder `from`, to the folder `to`; returns how many were not there. Those that
/// cannot be given are left out: all, while cargo builds there.
pub(crate) fn hand_over(artifacts: &[Vec<PathBuf>], from: &Path, to: &Path) -> usize {
    let parts: Vec<_> = artifacts
        .iter()
        .filter_map(|files| Part::of(files, from))
        .collect();
    let profiles: BTreeSet<_> = parts.iter().map(|part| to.join(&part.profile)).collect();
    let Ok(_locks) = profiles
        .iter()
        .map(|profile| lock(profile))
        .collect::<io::Result<Vec<_>>>()
    else {
        return 0;
    };
    let mut fingerprints = Fingerprints::default();
    parts
        .iter()
        .filter(|part| {
            let Some(fingerprint) = fingerprints.find(&from.join(&part.profile), &part.hash) else {
                return false;
            };
            let fingerprint = part.profile.join(FINGERPRINTS).join(fingerprint);
            part.give(&fingerprint, from, to).unwrap_or(false)
        })
        .count()
}

/// Keeps cargo from building in the folder of a profile; fails where it does.
fn lock(profile: &Path) -> io::Result<File> {
    fs::create_dir_all(profile)?;
    let lock = File::options()
        .create(true)
        .append(true)
        .open(profile.join(LOCK))?;
    lock.try_lock()?;
    Ok(lock)
}

/// The files of one artifact, relative to a build folder.
struct Part {
    /// The folder of its profile.
    profile: PathBuf,
    /// What cargo distinguishes artifacts of the same name by.
    hash: String,
    files: Files,
}

enum Files {
    Outputs(Vec<PathBuf>),
    /// The folder of a build script.
    Script(PathBuf),
}

impl Part {
    /// `None` for files that are elsewhere, such as binaries.
    fn of(files: &[PathBuf], from: &Path) -> Option<Part> {
        let relative: Option<Vec<_>> = files
            .iter()
            .map(|file| Some(file.strip_prefix(from).ok()?.to_path_buf()))
            .collect();
        let relative = relative?;
        let folder = relative.first()?.parent()?;
        if folder.ends_with(OUTPUTS) {
            return Some(Part {
                profile: folder.parent()?.to_path_buf(),
                hash: hash_of(relative.first()?.file_stem()?.to_str()?)?,
                files: Files::Outputs(relative),
            });
        }
        let scripts = folder.parent()?;
        let is_script = scripts.ends_with(SCRIPTS);
        is_script.then_some(())?;
        Some(Part {
            profile: scripts.parent()?.to_path_buf(),
            hash: hash_of(folder.file_name()?.to_str()?)?,
            files: Files::Script(folder.to_path_buf()),
        })
    }

    /// Whether it was not there.
    fn give(&self, fingerprint: &Path, from: &Path, to: &Path) -> io::Result<bool> {
        if to.join(fingerprint).exists() {
            return Ok(false);
        }
        match &self.files {
            Files::Outputs(files) => {
                for file in files {
                    link(&from.join(file), &to.join(file))?;
                }
            }
            Files::Script(folder) => copy_folder(&from.join(folder), &to.join(folder))?,
        }
        // Last, since an artifact without it does not count.
        copy_folder(&from.join(fingerprint), &to.join(fingerprint))?;
        Ok(true)
    }
}

/// The hash at the end of a name.
fn hash_of(name: &str) -> Option<String> {
    name.rsplit_once('-').map(|(_, hash)| hash.to_owned())
}

/// The folders of fingerprints by their hashes, for each profile.
#[derive(Default)]
struct Fingerprints(HashMap<PathBuf, HashMap<String, OsString>>);

impl Fingerprints {
    fn find(&mut self, profile: &Path, hash: &str) -> Option<&OsString> {
        let read = || {
            let folders = fs::read_dir(profile.join(FINGERPRINTS));
            let names = folders.into_iter().flatten().filter_map(Result::ok);
            names
                .map(|entry| entry.file_name())
                .filter_map(|name| Some((hash_of(name.to_str()?)?, name)))
                .collect()
        };
        let all = self.0.entry(profile.to_path_buf()).or_insert_with(read);
        all.get(hash)
    }
}

/// Gives a file that its writers replace and never change, without a copy if the file system can.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    make_room(to)?;
    fs::hard_link(from, to).or_else(|_| copy(from, to))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to) = (entry?.path(), to);
        let to = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() {
            copy_folder(&entry, &to)?;
        } else {
            make_room(&to)?;
            copy(&entry, &to)?;
        }
    }
    Ok(())
}

/// Removes a file that is left of an interrupted handover: it may be a link, and is not to be written to.
fn make_room(to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// With its time, by which cargo finds out what is outdated.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let changed = fs::metadata(from)?.modified()?;
    let file = File::options().append(true).open(to)?;
    file.set_times(FileTimes::new().set_modified(changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, file: &str, text: &str) {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    fn read(folder: &Path, file: &str) -> String {
        fs::read_to_string(folder.join(file)).unwrap_or_else(|error| error.kind().to_string())
    }

    const FILES: [&str; 6] = [
        "debug/.fingerprint/some-crate-0a/lib-some_crate",
        "debug/deps/libsome_crate-0a.rlib",
        "debug/deps/libsome_crate-0a.rmeta",
        "debug/.fingerprint/some-crate-0b/run-build-script",
        "debug/build/some-crate-0b/output",
        "debug/build/some-crate-0b/out/a/b.c",
    ];

    #[test]
    fn artifacts_are_given_once_with_their_times() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        for file in FILES {
            write(&from, file, "first");
        }
        let artifacts = [
            vec![from.join(FILES[1]), from.join(FILES[2])],
            vec![from.join("debug/build/some-crate-0b/out")],
            vec![from.join("debug/deps/libunknown-0c.rlib")],
            vec![root.path().join("target/debug/server")],
            vec![from.join("debug/server")],
        ];
        assert_eq!(hand_over(&artifacts, &from, &to), 2);
        let time = |folder: &Path, file| {
            let metadata = fs::metadata(folder.join(file)).expect("a file");
            metadata.modified().expect("a time")
        };
        for file in FILES {
            assert_eq!(read(&to, file), "first", "{file}");
            assert_eq!(time(&to, file), time(&from, file), "{file}");
        }

        // What cargo writes in place there is not changed here.
        for file in [FILES[0], FILES[3], FILES[4], FILES[5]] {
            write(&to, file, "second");
            assert_eq!(read(&from, file), "first", "{file}");
        }
        assert_eq!(hand_over(&artifacts, &from, &to), 0);
        assert_eq!(read(&to, FILES[0]), "second");
    }

    #[test]
    fn nothing_is_given_while_cargo_builds() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        for file in FILES {
            write(&from, file, "first");
        }
        let artifacts = [vec![from.join(FILES[1]), from.join(FILES[2])]];
        let cargo = lock(&to.join("debug")).expect("nothing builds");
        assert_eq!(hand_over(&artifacts, &from, &to), 0);
        assert!(!to.join(FILES[1]).exists());
        drop(cargo);
        assert_eq!(hand_over(&artifacts, &from, &to), 1);
    }

    #[test]
    fn what_was_interrupted_is_given_again() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        for file in FILES {
            write(&from, file, "first");
        }
        let artifacts = [vec![from.join(FILES[1]), from.join(FILES[2])]];
        assert_eq!(hand_over(&artifacts, &from, &to), 1);
        fs::remove_dir_all(to.join("debug/.fingerprint")).expect("it was there");
        assert_eq!(hand_over(&artifacts, &from, &to), 1);
        assert_eq!(read(&from, FILES[1]), "first");
        assert_eq!(read(&to, FILES[1]), "first");
    }
}
