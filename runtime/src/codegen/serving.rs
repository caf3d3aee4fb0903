//! The entry point of the generated `main`.

use std::process::ExitCode;

use apiloom_server::server::Builder;

use super::CONTRACT;

/// The generated `main`: refuses code that was generated for another runtime, then serves.
pub fn main(name: &str, contract: u32, assemble: impl FnOnce(Builder) -> Builder) -> ExitCode {
    if contract != CONTRACT {
        use std::io::Write as _;
        // A failed write to stderr cannot be reported anywhere.
        let _ = writeln!(
            std::io::stderr(),
            "error: {name} was generated for contract {contract} of apiloom, this is contract {CONTRACT}; run: apiloom generate"
        );
        return ExitCode::FAILURE;
    }
    apiloom_server::server::main(name, assemble)
}
