//! Builds packages outside apiloom's workspace with the artifacts of that workspace: in its build folder, with the
//! versions, profiles and environment of its own build.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{self, Options};
use crate::console::Console;
use crate::package::{Package, Server, Workspace};

/// The default target folder, below the workspace root.
const TARGET: &str = "target";

/// The folder of this module's files, in the shared build folder.
const OWN: &str = "apiloom-builds";

/// A build in the folder of apiloom's workspace. It holds a lock, so that other such builds wait.
#[derive(Debug)]
pub(crate) struct SharedBuild {
    /// The shared folder.
    pub(crate) dir: PathBuf,
    /// Arguments for cargo.
    pub(crate) arguments: Vec<OsString>,
    /// Only held, never read.
    _lock: File,
}

impl SharedBuild {
    /// Prepares the build; `None` for a package inside apiloom's workspace, for one that does not depend on apiloom by
    /// path, and if the user gave a target folder.
    pub(crate) fn prepare(
        package: &Package,
        options: &Options,
        console: &mut Console<'_>,
    ) -> Option<SharedBuild> {
        let server = package.server().ok()?;
        let own = &server.workspace;
        if options.target_dir.is_some() || !is_default(own) {
            return None;
        }
        let apiloom = package.apiloom.as_ref()?;
        let shared = Workspace::of(&apiloom.join("Cargo.toml")).ok()?;
        if shared.root == own.root {
            return None;
        }
        let dir = shared.build_dir.clone()?;
        // A folder that is not writable cannot be shared.
        let lock = lock(&dir, console).ok()?;
        take_versions(&shared, own).ok()?;
        let mut arguments = vec!["--config".into(), build_dir_setting(&dir)];
        // The environment of that workspace; its paths are relative to its folder.
        let config = shared.root.join(".cargo/config.toml");
        let profiles = profiles_file(&dir, &profiles(&shared, own)).ok()?;
        for file in profiles
            .into_iter()
            .chain(config.is_file().then_some(config))
        {
            arguments.extend(["--config".into(), file.into_os_string()]);
        }
        claim(&dir, server, options, &arguments).ok()?;
        Some(SharedBuild {
            dir,
            arguments,
            _lock: lock,
        })
    }
}

/// Whether cargo uses its default build folder for a workspace.
fn is_default(workspace: &Workspace) -> bool {
    let default = workspace.root.join(TARGET);
    workspace.target_dir == default && workspace.build_dir.as_ref() == Some(&default)
}

fn lock(dir: &Path, console: &mut Console<'_>) -> io::Result<File> {
    fs::create_dir_all(dir.join(OWN))?;
    let lock = File::create(dir.join(OWN).join("lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            console.phase(format_args!(
                "waiting for another build in {}",
                dir.display()
            ));
            lock.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(lock)
}

/// Copies the versions of apiloom's dependencies to a workspace without a lock file.
fn take_versions(shared: &Workspace, own: &Workspace) -> io::Result<()> {
    const LOCK_FILE: &str = "Cargo.lock";
    let (from, to) = (shared.root.join(LOCK_FILE), own.root.join(LOCK_FILE));
    if from.is_file() && !to.exists() {
        fs::copy(from, to)?;
    }
    Ok(())
}

fn build_dir_setting(dir: &Path) -> OsString {
    // Strings of JSON are valid in TOML too.
    let text = serde_json::Value::from(dir.to_string_lossy());
    format!("build.build-dir={text}").into()
}

/// The profiles of apiloom's workspace, for a workspace that has none of its own.
fn profiles(shared: &Workspace, own: &Workspace) -> String {
    const PROFILES: &str = "[profile";
    let read = |workspace: &Workspace| {
        let manifest = fs::read_to_string(workspace.root.join("Cargo.toml"));
        tables(&manifest.unwrap_or_default(), PROFILES)
    };
    if read(own).is_empty() {
        read(shared)
    } else {
        String::new()
    }
}

/// The tables of a TOML file whose headers begin with `start`.
pub(crate) fn tables(toml: &str, start: &str) -> String {
    let mut wanted = false;
    let mut found = String::new();
    for line in toml.lines() {
        if line.starts_with('[') {
            wanted = line.starts_with(start);
        }
        if wanted {
            found.push_str(line);
            found.push('\n');
        }
    }
    found
}

fn profiles_file(dir: &Path, profiles: &str) -> io::Result<Option<PathBuf>> {
    if profiles.is_empty() {
        return Ok(None);
    }
    let file = dir.join(OWN).join("profiles.toml");
    fs::write(&file, profiles)?;
    Ok(Some(file))
}

/// Records whose members were built here last, by their names. Cargo does not distinguish members of the same name and
/// version in different workspaces, so artifacts of another workspace under one of these names are removed.
fn claim(dir: &Path, server: &Server, options: &Options, arguments: &[OsString]) -> io::Result<()> {
    let profile = if options.release { "release" } else { "dev" };
    let claims = dir.join(OWN).join(profile);
    fs::create_dir_all(&claims)?;
    let workspace = &server.workspace;
    let owner = workspace.root.to_string_lossy();
    for member in &workspace.members {
        let claim = claims.join(member);
        match fs::read_to_string(&claim) {
            Ok(other) if other == owner => continue,
            Ok(_) => {
                let mut clean = Command::new(cargo::program());
                clean.args(["clean", "--quiet", "--profile", profile, "--package"]);
                clean.arg(member).arg("--manifest-path");
                clean.arg(&server.manifest).args(arguments);
                let status = clean
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status()?;
                if !status.success() {
                    return Err(io::Error::other("cargo clean failed"));
                }
            }
            Err(_) => {}
        }
        fs::write(&claim, owner.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_end_where_others_begin() {
        let toml = "a = 1\n[profile.dev]\ndebug = 0\n\n[profile.dev.package.\"*\"]\nx = 1\n[env]\nb = 2\n[profile.release]\nlto = true";
        assert_eq!(
            tables(toml, "[profile"),
            "[profile.dev]\ndebug = 0\n\n[profile.dev.package.\"*\"]\nx = 1\n[profile.release]\nlto = true\n"
        );
        assert_eq!(tables(toml, "[env"), "[env]\nb = 2\n");
        assert_eq!(tables(toml, "[none"), "");
    }
}
