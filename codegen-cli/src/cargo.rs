//! Options and environment of cargo invocations.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Build options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// With optimizations.
    pub(crate) release: bool,
    /// Features of the server package.
    pub(crate) features: Vec<String>,
    /// The target folder, if the user gave one.
    pub(crate) target_dir: Option<PathBuf>,
    /// Environment variables for cargo.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
}

/// Cargo for a package, in its folder: with the configuration and the toolchain that it has when it is called there by hand.
pub(crate) fn command(manifest: &Path) -> Command {
    let mut command = Command::new(program());
    command.current_dir(folder_of(manifest));
    command
}

/// The folder of a manifest; the empty path becomes `.`.
pub(crate) fn folder_of(manifest: &Path) -> &Path {
    let folder = manifest.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The cargo binary: inside `cargo run` the same one that runs it.
fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}
