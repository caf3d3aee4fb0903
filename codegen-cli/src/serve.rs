//! `apiloom serve`: runs the server without a package. It is a program of its own, `apiloom-serve`, so that this command
//! contains no server and is built as fast as without it.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::build_server;
use crate::cargo::Options;
use crate::console::{Console, Failure};
use crate::flags::Serve;
use crate::new;
use crate::package::{Server, Workspace};
use crate::run;

/// The name of the program, and of its package.
const PROGRAM: &str = "apiloom-serve";

/// The folder of the package, in a clone of apiloom.
const FOLDER: &str = "serve";

/// Finds or builds the program and runs it; returns only if it could not be started or, without `exec`, has ended.
pub(crate) fn serve(flags: &Serve, console: &mut Console<'_>) -> Result<(), Failure> {
    let own = std::env::current_exe()
        .map_err(|error| format!("cannot find the file of this command: {error}"))?;
    let clone = new::own_checkout().and_then(|runtime| Some(runtime.parent()?.join(FOLDER)));
    let program = match place_of(&own, clone) {
        Place::Installed(program) => program,
        Place::Clone(folder) => build(&folder, console)?,
        Place::Nowhere(beside) => {
            let complaint = format!(
                "{} does not exist\n  help: install it beside this command: cargo install --path {FOLDER}, in a clone of apiloom",
                beside.display()
            );
            return Err(complaint.into());
        }
    };
    run::serve(Command::new(&program).args(&flags.server), &program)
}

/// Where the program is.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Beside this command.
    Installed(PathBuf),
    /// In the clone with this folder of its package, where it is built.
    Clone(PathBuf),
    /// It would be here.
    Nowhere(PathBuf),
}

/// Where the program is for a command at this path, built from a clone with this folder of the program's package.
fn place_of(own: &Path, clone: Option<PathBuf>) -> Place {
    let beside = own.with_file_name(format!("{PROGRAM}{EXE_SUFFIX}"));
    // In cargo's target folder it may be older than its source.
    let is_installed = beside.is_file() && !own.with_file_name(".fingerprint").is_dir();
    match clone.filter(|folder| folder.is_dir()) {
        _ if is_installed => Place::Installed(beside),
        Some(folder) => Place::Clone(folder),
        None if beside.is_file() => Place::Installed(beside),
        None => Place::Nowhere(beside),
    }
}

/// Builds the program, with optimizations if this command has them.
fn build(folder: &Path, console: &mut Console<'_>) -> Result<PathBuf, Failure> {
    let server = Server {
        manifest: folder.join("Cargo.toml"),
        dir: String::new(),
        bin: PROGRAM.to_owned(),
        features: Vec::new(),
        workspace: Workspace::default(),
    };
    let options = Options {
        release: !cfg!(debug_assertions),
        ..Options::default()
    };
    build_server(&server, None, &options, console)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_beside_the_command_or_built_from_the_clone() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (own, beside) = (root.path().join("apiloom"), root.path().join(PROGRAM));
        let clone = root.path().join("serve");
        let place = |clone: &Path| place_of(&own, Some(clone.to_owned()));
        assert_eq!(place(&clone), Place::Nowhere(beside.clone()));
        std::fs::create_dir(&clone).expect("a folder");
        assert_eq!(place(&clone), Place::Clone(clone.clone()));
        std::fs::write(&beside, "").expect("a file");
        assert_eq!(place(&clone), Place::Installed(beside.clone()));
        assert_eq!(place_of(&own, None), Place::Installed(beside.clone()));
        // In a target folder of cargo it is built again.
        std::fs::create_dir(root.path().join(".fingerprint")).expect("a folder");
        assert_eq!(place(&clone), Place::Clone(clone.clone()));
        assert_eq!(place_of(&own, None), Place::Installed(beside));
    }
}
