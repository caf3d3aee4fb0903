//! `apiloom serve`: runs the server without a package. It is a program of its own, `apiloom-serve`, which is installed like any
//! other, so that this command contains no server, is built as fast as without it, and needs neither sources nor cargo here.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::console::Failure;
use crate::flags::Serve;
use crate::run;

/// The name of the program, and of its package.
const PROGRAM: &str = "apiloom-serve";

/// Runs the program; returns only if it could not be started or, without `exec`, has ended.
pub(crate) fn serve(flags: &Serve) -> Result<(), Failure> {
    let own = env::current_exe()
        .map_err(|error| format!("cannot find the file of this command: {error}"))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let program = find(&own, &path).ok_or_else(|| {
        format!(
            "the server is a program of its own, `{PROGRAM}`, and is neither in {} nor on PATH\n  \
             help: install it, in a clone of apiloom: cargo install --path serve --debug --locked",
            own.parent().unwrap_or(&own).display()
        )
    })?;
    run::serve(Command::new(&program).args(&flags.server), &program)
}

/// The program beside this command, else the first one on the path.
fn find(own: &Path, path: &OsStr) -> Option<PathBuf> {
    let name = format!("{PROGRAM}{EXE_SUFFIX}");
    let beside = own.with_file_name(&name);
    let on_path = env::split_paths(path).map(|folder| folder.join(&name));
    [beside]
        .into_iter()
        .chain(on_path)
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_program_beside_the_command_comes_first() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folders = ["own", "empty", "first", "second"].map(|name| root.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).expect("a folder");
        }
        let program = |folder: &PathBuf| folder.join(format!("{PROGRAM}{EXE_SUFFIX}"));
        let path = env::join_paths(&folders[1..]).expect("a path");
        let found = || find(&folders[0].join("apiloom"), &path);
        assert_eq!(found(), None);
        for folder in [&folders[3], &folders[2], &folders[0]] {
            fs::write(program(folder), "").expect("a file");
            assert_eq!(found(), Some(program(folder)));
        }
    }
}
