//! A server with the part.

use std::process::ExitCode;

fn main() -> ExitCode {
    apiloom::server::main("notices-server", notices::configure)
}
