//! What is wrong with a command line: all of it, where clap stops at the first mistake.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command, Error};

/// What clap says behind the problem itself.
const FOOTERS: [&str; 2] = ["\n\nUsage:", "\n\nFor more information"];

/// The problems of a command line.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// A text each, which may have several lines.
    pub(super) lines: Vec<String>,
    /// Flags that were given and could not be read.
    malformed: Vec<String>,
}

impl Problems {
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        self.lines.push(problem.into());
    }

    /// Adds the problem that a flag is missing, unless it was given.
    pub(super) fn require(&mut self, flag: &str, problem: &str) {
        if !self.malformed.iter().any(|malformed| malformed == flag) {
            self.add(problem);
        }
    }

    /// Adds a problem when one flag of two that belong together is missing.
    pub(super) fn check_pair(
        &mut self,
        first: (&str, &Option<PathBuf>),
        second: (&str, &Option<PathBuf>),
    ) {
        let (given, missing) = match (first, second) {
            ((first, Some(_)), (second, None)) => (first, second),
            ((first, None), (second, Some(_))) => (second, first),
            _ => return,
        };
        self.require(missing, &format!("{given} needs {missing} beside it"));
    }

    /// Reads the arguments, those with mistakes left aside. `None` when clap does not say which these are.
    ///
    /// # Errors
    /// The text of `--help` or `--version`.
    pub(super) fn read_arguments(
        &mut self,
        command: &Command,
        mut args: Vec<OsString>,
    ) -> Result<Option<ArgMatches>, String> {
        loop {
            let error = match command.clone().try_get_matches_from(&args) {
                Ok(matches) => return Ok(Some(matches)),
                Err(error) => error,
            };
            let text = error.render().to_string();
            if !error.use_stderr() {
                return Err(text);
            }
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let end = FOOTERS.iter().filter_map(|footer| text.find(footer)).min();
            self.add(text[..end.unwrap_or(text.len())].trim_end());
            let Some(flag) = mistaken(&error).filter(|flag| remove(&mut args, flag)) else {
                return Ok(None);
            };
            self.malformed.push(flag);
        }
    }
}

/// The argument that clap stopped at, without its value: `--secure-port`.
fn mistaken(error: &Error) -> Option<String> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(arg) => arg.split([' ', '=']).next().map(str::to_owned),
        _ => None,
    }
}

/// Removes an argument wherever it is given, and its value behind it. Whether there was any.
fn remove(args: &mut Vec<OsString>, flag: &str) -> bool {
    let before = args.len();
    let mut is_value = false;
    let mut is_program = true;
    args.retain(|arg| {
        let arg = arg.to_string_lossy();
        let is_given = !std::mem::take(&mut is_program) && names(&arg, flag);
        let is_removed = is_given || is_value && !arg.starts_with('-');
        is_value = is_given && flag.starts_with('-') && !arg.contains('=');
        !is_removed
    });
    args.len() < before
}

/// Whether an argument is this flag, alone or with its value.
fn names(arg: &str, flag: &str) -> bool {
    match arg.strip_prefix(flag) {
        Some(rest) => rest.is_empty() || rest.starts_with('='),
        // `-v2` is the short form of `--v=2`.
        None => flag == "--v" && arg.starts_with("-v"),
    }
}
