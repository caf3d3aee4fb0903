//! Values that are words from a closed list.

use crate::diagnostics::DiagnosticId as Id;
use crate::{Diagnostics, Spanned};

/// The value of a word; an unknown one is reported with a similar spelling or the whole list.
pub(crate) fn look_up<T: Copy>(
    word: &Spanned<String>,
    what: &str,
    known: &[(&str, T)],
    d: &mut Diagnostics,
) -> Option<T> {
    if let Some((_, value)) = known.iter().find(|(name, _)| *word == *name) {
        return Some(*value);
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let error = d.error(
        Id::UnknownValue,
        word.span,
        format!("unknown {what} `{}`", word.value),
    );
    error.help(format!("one of: {}", names.join(", ")));
    error.suggest(word, names);
    None
}
