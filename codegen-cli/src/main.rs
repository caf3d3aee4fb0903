//! The apiloom command.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use apiloom_cli::{Console, execute};

fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let terminal = err.is_terminal();
    ExitCode::from(execute(
        std::env::args_os(),
        &mut Console {
            out: &mut out,
            err: &mut err,
            terminal,
        },
    ))
}
