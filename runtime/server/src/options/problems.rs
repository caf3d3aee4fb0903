//! Collects all problems of a command line, where clap stops at the first.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, Error};

/// Flags with a short form, which may be followed by the value: `-v2` is `--v=2`.
const SHORT: [(&str, &str); 2] = [("--v", "-v"), ("--output", "-o")];

/// Texts that clap appends to an error.
const FOOTERS: [&str; 2] = ["\n\nUsage:", "\n\nFor more information"];

/// The problems of a command line.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// The texts of the problems; a text may have several lines.
    pub(super) lines: Vec<String>,
    /// Flags that are present, but with a malformed value.
    malformed: Vec<String>,
    /// Whether there are unknown arguments, or the flags are asked for.
    pub(super) lacks_flags: bool,
}

impl Problems {
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        self.lines.push(problem.into());
    }

    /// Adds the problem that a part has with its flags, unless it names one that is malformed.
    pub(super) fn add_error(&mut self, error: &Error) {
        let text = text_of(error);
        if !self.malformed.iter().any(|flag| text.contains(flag)) {
            self.add(text);
        }
    }

    /// Adds a problem for a missing flag, unless the flag is present but malformed.
    pub(super) fn require(&mut self, flag: &str, problem: &str) {
        if !self.malformed.iter().any(|malformed| malformed == flag) {
            self.add(problem);
        }
    }

    /// Adds a problem if only one of two flags is set that require each other.
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
        self.require(missing, &format!("{given} requires {missing}"));
    }

    /// Parses the arguments, without those that have problems; `None` if clap does not report which these are.
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
            use ErrorKind::{DisplayHelp, UnknownArgument};
            self.lacks_flags |= matches!(error.kind(), DisplayHelp | UnknownArgument);
            if !error.use_stderr() {
                return Err(error.render().to_string());
            }
            self.add(text_of(&error));
            let Some(flag) = mistaken(&error).filter(|flag| remove(&mut args, flag)) else {
                return Ok(None);
            };
            self.malformed.push(flag);
        }
    }
}

/// What an error of clap says, without what is around it.
fn text_of(error: &Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = FOOTERS.iter().filter_map(|footer| text.find(footer)).min();
    text[..end.unwrap_or(text.len())].trim_end().to_owned()
}

/// The argument of an error of clap, without its value: `--secure-port`.
fn mistaken(error: &Error) -> Option<String> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(arg) => arg.split([' ', '=']).next().map(str::to_owned),
        _ => None,
    }
}

/// Removes all occurrences of an argument, with the value that follows; returns whether there were any.
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

/// Whether an argument is this flag, alone or with a value.
fn names(arg: &str, flag: &str) -> bool {
    match arg.strip_prefix(flag) {
        Some(rest) => rest.is_empty() || rest.starts_with('='),
        None => {
            let is_short = |(long, short): &(&str, &str)| flag == *long && arg.starts_with(short);
            SHORT.iter().any(is_short)
        }
    }
}
