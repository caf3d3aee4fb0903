//! Commands that must succeed.

use std::process::Command;

/// Runs a command, and returns what it has written to its standard output. Panics with what it has written to the other one if it fails.
pub fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
