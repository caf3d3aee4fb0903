//! Builds packages outside apiloom's workspace with the artifacts of that workspace: in its build folder, with the
//! versions, profiles and environment of its own build. What is built is handed over to the package's own folder.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cargo::{self, Options};
use crate::cargo_config;
use crate::console::Console;
use crate::handover::hand_over;
use crate::package::{Package, Server, Workspace};
use crate::toml;

/// The default target folder, below the workspace root.
const TARGET: &str = "target";

/// The folder of the command's builds, in cargo's folder: of its binaries, and in a shared one of this module's files.
const OWN: &str = "apiloom-builds";

/// A build in the folder of apiloom's workspace. It holds a lock, so that other such builds wait.
#[derive(Debug)]
pub(crate) struct SharedBuild {
    /// The shared folder.
    pub(crate) dir: PathBuf,
    /// Arguments for cargo.
    pub(crate) arguments: Vec<OsString>,
    /// The folder in which cargo builds the package itself, if it has the settings of this build there.
    own_dir: Option<PathBuf>,
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
        let settings = settings(&shared, own, &dir).ok()?;
        let own_dir = own.build_dir.clone().filter(|_| settings.is_empty());
        let mut arguments = folders(&own.target_dir, &dir);
        for file in settings {
            arguments.extend(["--config".into(), file.into_os_string()]);
        }
        claim(&dir, server, options, &arguments).ok()?;
        Some(SharedBuild {
            dir,
            arguments,
            own_dir,
            _lock: lock,
        })
    }

    /// Gives what was built to the package's own builds, and returns how many crates those need not compile.
    pub(crate) fn hand_over(&self, artifacts: &[Vec<PathBuf>]) -> usize {
        let own = self.own_dir.as_deref();
        own.map_or(0, |own| hand_over(artifacts, &self.dir, own))
    }
}

/// Arguments for cargo: binaries are put into a folder of their own below cargo's, so that they replace none that was built
/// with other features, and all else is in the folder of builds, which knows features apart.
pub(crate) fn folders(target_dir: &Path, build_dir: &Path) -> Vec<OsString> {
    // Strings of JSON are valid in TOML too.
    let text = serde_json::Value::from(build_dir.to_string_lossy());
    vec![
        "--target-dir".into(),
        target_dir.join(OWN).into_os_string(),
        "--config".into(),
        format!("build.build-dir={text}").into(),
    ]
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

/// Files with the settings of apiloom's workspace that a workspace does not have itself.
fn settings(shared: &Workspace, own: &Workspace, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    // The paths in it are relative to its folder.
    let config = shared.root.join(cargo_config::FILE);
    if config.is_file() && !cargo_config::has_own(&own.root, cargo_config::ENVIRONMENT) {
        files.push(config);
    }
    if !cargo_config::has_own(&own.root, cargo_config::PROFILES) {
        let manifest = fs::read_to_string(shared.root.join("Cargo.toml"))?;
        let profiles = toml::tables(&manifest, cargo_config::PROFILES);
        let file = dir.join(OWN).join("profiles.toml");
        fs::write(&file, profiles)?;
        files.push(file);
    }
    Ok(files)
}

/// Records whose members were built here last, by their names. Cargo does not distinguish members of the same name and
/// version in different workspaces, so artifacts of another workspace under one of these names are removed.
fn claim(dir: &Path, server: &Server, options: &Options, arguments: &[OsString]) -> io::Result<()> {
    let profile = if options.release { "release" } else { "dev" };
    let claims = dir.join(OWN).join("claims").join(profile);
    fs::create_dir_all(&claims)?;
    let workspace = &server.workspace;
    let owner = workspace.root.to_string_lossy();
    for member in &workspace.members {
        let claim = claims.join(member);
        match fs::read_to_string(&claim) {
            Ok(other) if other == owner => continue,
            Ok(_) => {
                let mut clean = cargo::command(&server.manifest);
                clean.args(["clean", "--quiet", "--profile", profile, "--package"]);
                clean.arg(member).args(arguments);
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
