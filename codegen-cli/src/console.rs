//! Where commands print results and problems, and how they fail.

use std::io::Write;

/// Where a command speaks to its user.
pub struct Console<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Problems and progress.
    pub err: &'a mut dyn Write,
    /// Whether `err` is a terminal: then there are colors and progress.
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
    /// Prints a result line. A reader that went away is not our failure.
    pub(crate) fn say(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{line}");
    }

    /// Says what takes time and begins now. A terminal has the progress of the build instead.
    pub(crate) fn phase(&mut self, line: impl std::fmt::Display) {
        if !self.terminal {
            self.note(line);
        }
    }

    /// Prints a line beside the results.
    pub(crate) fn note(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{line}");
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// One thing, told in one or a few lines; printed after `error: `.
    Complaint(String),
    /// Already told.
    Told,
    /// The server ran and ended with this code.
    #[cfg(not(unix))]
    Ended(u8),
}

impl From<String> for Failure {
    fn from(complaint: String) -> Failure {
        Failure::Complaint(complaint)
    }
}
