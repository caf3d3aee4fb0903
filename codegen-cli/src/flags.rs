//! The flags of the commands, as clap reads them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// The package to work on.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The package's folder, or its Cargo.toml
    pub(crate) path: PathBuf,
}

/// Flags of `new`.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The package's folder, which must be new or empty
    pub(crate) path: PathBuf,
    /// The package's name; that of the folder unless given
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The API group; NAME.example.com unless given
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// The kind; the name in CamelCase unless given
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Adds types for programs with kube-rs, and a test with it
    #[arg(long)]
    pub(crate) kube: bool,
    /// A clone of apiloom to depend on; without it, the clone around the folder or the one that this command was built from,
    /// else the release of this command
    #[arg(long, value_name = "DIR")]
    pub(crate) apiloom_path: Option<PathBuf>,
}

/// Flags of `generate`.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Write nothing; show what differs and exit with 1 if anything does
    #[arg(long)]
    pub(crate) check: bool,
    /// Only what follows from the source, without a build: leaves out OpenAPI and CRDs
    #[arg(long)]
    pub(crate) fast: bool,
    /// Overwrite generated files that were edited by hand
    #[arg(long, conflicts_with = "check")]
    pub(crate) force: bool,
    /// Write clients of the kinds to this folder too, as a package of their own
    #[arg(long, value_name = "DIR")]
    pub(crate) client_crate: Option<PathBuf>,
    /// Take OpenAPI and CRDs from this server of the package, which was built before, instead of building it
    #[arg(long, value_name = "FILE", conflicts_with = "fast")]
    pub(crate) server: Option<PathBuf>,
    /// Build in this folder instead of cargo's own, or apiloom's for a package outside of its workspace
    #[arg(long, value_name = "DIR", conflicts_with_all = ["fast", "server"])]
    pub(crate) target_dir: Option<PathBuf>,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Build with optimizations
    #[arg(long)]
    pub(crate) release: bool,
    /// Cargo features of the server package or of apiloom, separated by commas; `etcd` for --storage-backend=etcd
    #[arg(long, value_delimiter = ',', value_name = "F")]
    pub(crate) features: Vec<String>,
    /// Build in this folder instead of cargo's own, or apiloom's for a package outside of its workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) target_dir: Option<PathBuf>,
    /// Flags of the server; `-- --help` lists them
    #[arg(last = true, value_name = "SERVER FLAGS")]
    pub(crate) server: Vec<OsString>,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Flags of the server
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SERVER FLAGS"
    )]
    pub(crate) server: Vec<OsString>,
}

/// Flags of `model`.
#[derive(Debug, Args)]
pub(crate) struct Model {
    #[command(flatten)]
    pub(crate) target: Target,
}
