//! Errors of an expression's text: syntax and types.

use std::collections::HashMap;

/// Maximum length of a line of the source that is shown with a problem, in bytes.
const MAX_LINE: usize = 500;

/// A problem at a place of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    position: usize,
    text: String,
}

impl Issue {
    pub(crate) fn new(position: usize, text: impl Into<String>) -> Self {
        Self {
            position,
            text: text.into(),
        }
    }

    /// The same problem at another place, if there is one for its own.
    pub(crate) fn moved(&mut self, places: &HashMap<u32, u32>) {
        let place = u32::try_from(self.position).ok();
        if let Some(other) = place.and_then(|place| places.get(&place)) {
            self.position = *other as usize;
        }
    }

    /// The problem with line, column and the line of the source, in the form of cel-go.
    fn shown(&self, source: &str) -> String {
        let position = self.position.min(source.len());
        let before = source.get(..position).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[start..].chars().count();
        let whole = source[start..].lines().next().unwrap_or_default();
        if whole.len() > MAX_LINE {
            return format!("ERROR: <input>:{line}:{}: {}", column + 1, self.text);
        }
        // Characters of more than one byte are marked by wide ones, as in cel-go.
        let mark = |c: char| if c.len_utf8() > 1 { '．' } else { '.' };
        let dots: String = before[start..].chars().map(mark).collect();
        let at = source.get(position..).and_then(|rest| rest.chars().next());
        let wide = at.is_some_and(|c| c.len_utf8() > 1);
        let pointer = if wide { '＾' } else { '^' };
        format!(
            "ERROR: <input>:{line}:{}: {}\n | {}\n | {dots}{pointer}",
            column + 1,
            self.text,
            whole.replace('\t', " "),
        )
    }
}

/// All problems as one text, in the order of their places.
pub(crate) fn shown(issues: &[Issue], source: &str) -> String {
    let mut ordered: Vec<&Issue> = issues.iter().collect();
    ordered.sort_by_key(|issue| issue.position);
    let lines: Vec<String> = ordered.iter().map(|issue| issue.shown(source)).collect();
    lines.join("\n")
}
