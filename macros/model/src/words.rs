//! Values that are words from a closed list.

use crate::diagnostics::DiagnosticId as Id;
use crate::kind::Verb;
use crate::{Diagnostics, SpannedValue};

/// The value of a word; an unknown one is reported with a similar spelling or the whole list.
pub(crate) fn look_up<T: Copy>(
    word: &SpannedValue<String>,
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

/// The verb of a word, one of those that are known here.
pub(crate) fn look_up_verb(
    word: &SpannedValue<String>,
    what: &str,
    known: &[Verb],
    d: &mut Diagnostics,
) -> Option<Verb> {
    let known: Vec<(&str, Verb)> = known.iter().map(|verb| (verb.word(), *verb)).collect();
    look_up(word, what, &known, d)
}
