//! Prints a difference for `--check`: one line for the file, then the changed lines, as in `diff -u`.

use similar::TextDiff;

use crate::console::Console;
use crate::outputs::Change;

/// Longer diffs are cut: the same command fixes all of them.
const MAX_LINES: usize = 40;
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;

/// Prints the change.
pub(super) fn show(change: &Change, console: &mut Console<'_>) {
    console.say(format_args!("{}: {}", change.kind.word(), change.path));
    // Hashes are not readable, and added or removed files are already named above.
    if change.is_manifest() || change.old.is_empty() || change.new.is_empty() {
        return;
    }
    let (old, new) = (
        String::from_utf8_lossy(&change.old),
        String::from_utf8_lossy(&change.new),
    );
    let diff = TextDiff::from_lines(old.as_ref(), new.as_ref());
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&change.path, "as generated now")
        .to_string();
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(MAX_LINES) {
        console.say(format_args!("  {line}"));
    }
    if lines.len() > MAX_LINES {
        console.say(format_args!("  ... {} more lines", lines.len() - MAX_LINES));
    }
}
