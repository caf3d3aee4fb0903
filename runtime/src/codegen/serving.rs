//! The entry point of the generated `main`: `serve!(name, contract, steps..)`.

use std::process::ExitCode;

use apiloom_server::server::Builder;

use super::{CONTRACT, allocator};

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
    allocator::prepare();
    apiloom_parts::main(name, assemble)
}

/// The `main` of a server without a package; see [`apiloom_parts::serve_definitions`].
#[cfg(feature = "apis-apiextensions")]
pub fn serve_definitions(name: &str) -> ExitCode {
    allocator::prepare();
    apiloom_parts::serve_definitions(name)
}

/// Whether a cargo feature for built-in kinds is on.
pub const HAS_BUILT_IN: bool = cfg!(any(
    feature = "apis-core",
    feature = "apis-apiextensions",
    feature = "apis-apiregistration",
    feature = "apis-coordination"
));

/// The body of the generated `main`: its steps register what is served, after the built-in kinds if the package has the
/// feature `apis` and it is on. A macro sees the features of the package in which it is used.
#[doc(hidden)]
#[macro_export]
macro_rules! __serve {
    ($name:expr, $contract:expr, $($step:path),+ $(,)?) => {{
        #[allow(unexpected_cfgs, reason = "a package need not have the feature")]
        const IS_ON: bool = cfg!(feature = "apis");
        const {
            assert!(
                !IS_ON || $crate::codegen::HAS_BUILT_IN,
                "the feature `apis` of this package enables no built-in kinds; write in Cargo.toml: apis = [\"apiloom/apis\"]"
            );
        }
        $crate::codegen::main($name, $contract, |builder| {
            let builder = if IS_ON { builder.all_built_in() } else { builder };
            $(let builder = $step(builder);)+
            builder
        })
    }};
}
