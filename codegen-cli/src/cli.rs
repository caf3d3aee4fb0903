//! The command line, and how results and errors are printed.

use std::ffi::OsString;
use std::io::Write;

use clap::{Parser, Subcommand};

use crate::console::{Console, Failure};
use crate::flags::{Generate, Model, New, Run, Serve};
use crate::{driver, import, new, run, serve, source_model, store};

/// Turns annotated Rust types into a Kubernetes-style API server.
#[derive(Debug, Parser)]
#[command(name = "apiloom", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a new package: a kind, its server, a controller and a test
    New(New),
    /// Write a new package with the kinds of CustomResourceDefinitions
    Import(import::Import),
    /// Write a package's generated files
    Generate(Generate),
    /// Generate, build and serve a package
    Run(Run),
    /// Serve the kinds of CustomResourceDefinitions, without a package; `apiloom serve --help` lists the flags
    #[command(disable_help_flag = true)]
    Serve(Serve),
    /// Print what the generator understands of a package, as JSON
    Model(Model),
    /// Check, export or import the folder of an embedded store, or migrate the objects of a running server
    #[command(subcommand)]
    Store(store::Store),
}

/// Exit code of success.
const SUCCESS: u8 = 0;
/// Exit code of a failure in the package, the build or the output.
const FAILURE: u8 = 1;
/// Exit code of an invalid command line.
const USAGE: u8 = 2;

/// Runs the command line and returns the exit code of the process. On Unix `run` and `serve` replace the process instead.
pub fn execute(arguments: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return explain(&error, console),
    };
    let done = match cli.command {
        Command::New(flags) => new::new(&flags, console),
        Command::Import(flags) => import::run(&flags, console),
        Command::Generate(flags) => driver::generate(&flags, console),
        Command::Run(flags) => run::run(&flags, console),
        Command::Serve(flags) => serve::serve(&flags),
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
