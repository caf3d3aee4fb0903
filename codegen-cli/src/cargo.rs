//! Options and environment of cargo invocations.

use std::ffi::OsString;
use std::path::PathBuf;

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

/// The cargo binary: inside `cargo run` the same one that runs it.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}
