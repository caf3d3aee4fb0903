//! Output streams of the commands, and their errors.

use std::io::Write;

/// The output streams of a command.
pub struct Console<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Problems and progress.
    pub err: &'a mut dyn Write,
    /// Whether `err` is a terminal, which gets colors and progress.
    pub terminal: bool,
}

impl std::fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console")
            .field("terminal", &self.terminal)
            .finish_non_exhaustive()
    }
}

impl Console<'_> {
    /// Prints a result line. A closed pipe is not an error.
    pub(crate) fn say(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{line}");
    }

    /// Prints the start of a long step. A terminal shows the build's progress instead.
    pub(crate) fn phase(&mut self, line: impl std::fmt::Display) {
        if !self.terminal {
            self.note(line);
        }
    }

    /// Prints a line to the error stream.
    pub(crate) fn note(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{line}");
    }
}

/// The message of a program that failed, which may begin as our own lines do.
pub(crate) fn cause(stderr: &str) -> &str {
    let text = stderr.trim();
    text.strip_prefix("error: ").unwrap_or(text)
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error message of one or a few lines; printed after `error: `.
    Complaint(String),
    /// The error was already printed.
    Told,
    /// The exit code of the server.
    #[cfg(not(unix))]
    Ended(u8),
}

impl From<String> for Failure {
    fn from(complaint: String) -> Failure {
        Failure::Complaint(complaint)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_message_of_a_program_has_no_head_of_its_own() {
        for text in ["error: no server\n", "  error: no server", "no server"] {
            assert_eq!(super::cause(text), "no server");
        }
        assert_eq!(super::cause("error: a\nerror: b"), "a\nerror: b");
    }
}
