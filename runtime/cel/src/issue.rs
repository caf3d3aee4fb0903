//! Errors of an expression's text: syntax and types.

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
