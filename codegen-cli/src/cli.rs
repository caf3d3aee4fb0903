//! The command line: what can be asked, and how answers and complaints are printed.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{driver, run, source_model, store};

/// Turns annotated Rust types into a Kubernetes-style API server.
#[derive(Debug, Parser)]
#[command(name = "apiloom", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a package's generated files
    Generate(Generate),
    /// Generate, build and serve a package
    Run(Run),
    /// Print what the generator understands of a package, as JSON
    Model(Model),
    /// Check, export or import the folder of an embedded store
    #[command(subcommand)]
    Store(store::Store),
}

/// The package to work on.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The package's folder, or its Cargo.toml
    pub(crate) path: PathBuf,
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
    /// Build in this folder instead of cargo's own, or apiloom's for a package outside of its workspace
    #[arg(long, value_name = "DIR", conflicts_with = "fast")]
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

/// Flags of `model`.
#[derive(Debug, Args)]
pub(crate) struct Model {
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Where a command speaks to its user.
pub struct Console<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Problems and progress.
    pub err: &'a mut dyn Write,
    /// Whether `err` is a terminal: then there are colors and progress.
    pub terminal: bool,
}

impl std::fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console")
            .field("terminal", &self.terminal)
            .finish_non_exhaustive()
    }
}

impl Console<'_> {
    /// Prints a result line. A reader that went away is not our failure.
    pub(crate) fn say(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{line}");
    }

    /// Says what takes time and begins now. A terminal has the progress of the build instead.
    pub(crate) fn phase(&mut self, line: impl std::fmt::Display) {
        if !self.terminal {
            self.note(line);
        }
    }

    /// Prints a line beside the results.
    pub(crate) fn note(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{line}");
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// One thing, told in one or a few lines; printed after `error: `.
    Complaint(String),
    /// Already told.
    Told,
    /// The server ran and ended with this code.
    #[cfg(not(unix))]
    Ended(u8),
}

impl From<String> for Failure {
    fn from(complaint: String) -> Failure {
        Failure::Complaint(complaint)
    }
}

/// Exit code of a command that did what it was asked and found nothing wrong.
const SUCCESS: u8 = 0;
/// Exit code when something is wrong with the package, the build or the output.
const FAILURE: u8 = 1;
/// Exit code when the command line itself is wrong.
const USAGE: u8 = 2;

/// Runs the command line and says with which code the process should end. `run` replaces the process where it can.
pub fn execute(arguments: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return explain(&error, console),
    };
    let done = match cli.command {
        Command::Generate(flags) => driver::generate(&flags, console),
        Command::Run(flags) => run::run(&flags, console),
        Command::Model(flags) => source_model::print(&flags.target.path, console),
        Command::Store(command) => store::run(&command, console),
    };
    match done {
        Ok(()) => SUCCESS,
        Err(Failure::Told) => FAILURE,
        #[cfg(not(unix))]
        Err(Failure::Ended(code)) => code,
        Err(Failure::Complaint(complaint)) => {
            console.note(format_args!("error: {complaint}"));
            FAILURE
        }
    }
}

fn explain(error: &clap::Error, console: &mut Console<'_>) -> u8 {
    let text = error.render();
    let (target, code): (&mut dyn Write, u8) = if error.use_stderr() {
        (console.err, USAGE)
    } else {
        (console.out, SUCCESS)
    };
    let _ = if console.terminal {
        write!(target, "{}", text.ansi())
    } else {
        write!(target, "{text}")
    };
    code
}
