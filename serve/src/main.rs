//! The server of `apiloom serve`: it serves the built-in kinds and those of CustomResourceDefinitions.

use std::process::ExitCode;

apiloom::codegen::allocator!();

fn main() -> ExitCode {
    apiloom::codegen::serve_definitions("apiloom")
}
