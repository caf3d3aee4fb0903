//! How cargo is called.

use std::ffi::OsString;
use std::path::PathBuf;

/// How to build.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// With optimizations.
    pub(crate) release: bool,
    /// Features of the server package.
    pub(crate) features: Vec<String>,
    /// The folder to build in, when the user names one.
    pub(crate) target_dir: Option<PathBuf>,
    /// Environment variables for cargo.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
}

/// Inside `cargo run` the same cargo as outside.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}
