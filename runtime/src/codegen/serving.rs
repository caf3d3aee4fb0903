//! What the generated `install` and `main` call.

use std::process::ExitCode;

use apiloom_server::server::Builder;

use super::{CONTRACT, GroupDef, Release, Resource};

/// The registry store of one kind in one version.
pub fn store<K: Resource>(builder: Builder) -> Builder {
    builder.kind::<K>()
}

/// Declares a group: versions in order of preference, and the release that lifecycles compare with.
pub fn group(
    builder: Builder,
    name: &'static str,
    versions: &'static [&'static str],
    release: Option<(u32, u32)>,
) -> Builder {
    let release = release.map(|(major, minor)| Release { major, minor });
    builder.group(GroupDef {
        name,
        versions,
        release,
    })
}

/// The generated `main`: refuses to run what was generated for another runtime, then serves.
pub fn main(name: &str, contract: u32, assemble: impl FnOnce(Builder) -> Builder) -> ExitCode {
    if contract != CONTRACT {
        use std::io::Write as _;
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(
            std::io::stderr(),
            "error: {name} was generated for contract {contract} of apiloom, this is contract {CONTRACT}; run: apiloom generate"
        );
        return ExitCode::FAILURE;
    }
    apiloom_server::server::main(name, assemble)
}
