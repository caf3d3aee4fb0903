//! Checks the literal arguments of `format`: its clauses, their number, and the types of what they show.

use crate::ast::{Expr, Kind};
use crate::issue::Issue;
use crate::types::{Opaque, Type};

/// What the clause `s` shows.
const TEXTS: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                     durations, and timestamps";

const PRECISION: &str = "could not parse formatting clause: error while parsing precision";

/// The first problem of a template with a literal list of arguments. `position` is that of the call, `type_of` gives the
/// types of the arguments and of their parts.
pub(crate) fn problem(
    template: &str,
    items: &[(Expr, bool)],
    position: u32,
    type_of: &impl Fn(&Expr) -> Type,
) -> Option<Issue> {
    let issue = |text: String| Some(Issue::new(position as usize, text));
    let mut rest = template;
    let mut used = 0;
    while let Some((_, after)) = rest.split_once('%') {
        rest = after;
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let count = after.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, after) = after.split_at(count);
            if after.is_empty() {
                let text = "could not find end of precision specifier";
                return issue(format!("{PRECISION}: {text}"));
            }
            if digits.parse::<i64>().is_err() {
                let reason = if digits.is_empty() {
                    "invalid syntax"
                } else {
                    "value out of range"
                };
                return issue(format!(
                    "{PRECISION}: error while converting precision to integer: strconv.Atoi: parsing \"{digits}\": \
                     {reason}"
                ));
            }
            rest = after;
        }
        let mut characters = rest.chars();
        let Some(verb) = characters.next() else {
            return issue("unexpected end of string".to_owned());
        };
        // cel-go tells a byte.
        let shown = rest.bytes().next().map_or(verb, char::from);
        rest = characters.as_str();
        if !matches!(verb, 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o') {
            return issue(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{shown}\""
            ));
        }
        let Some((item, _)) = items.get(used) else {
            return issue(format!("index {used} out of range"));
        };
        used += 1;
        if let Some(issue) = unfit(verb, item, type_of) {
            return Some(issue);
        }
    }
    if used < items.len() {
        return issue(format!(
            "too many arguments supplied to string.format (expected {used}, got {})",
            items.len()
        ));
    }
    None
}

/// The problem of a clause with its argument.
fn unfit(verb: char, item: &Expr, type_of: &impl Fn(&Expr) -> Type) -> Option<Issue> {
    let found = type_of(item);
    if matches!(found, Type::Dyn | Type::Variable(_)) {
        return None;
    }
    let is_integer = matches!(found, Type::Int | Type::Uint);
    // A text is shown as it is where a number is infinite or none.
    let is_double = matches!(found, Type::Double | Type::Text);
    let (is_fit, text) = match verb {
        's' => {
            let parts: Vec<&Expr> = match &item.kind {
                Kind::List(items) => items.iter().map(|(item, _)| item).collect(),
                Kind::Map(entries) => {
                    let parts = entries.iter().flat_map(|entry| [&entry.key, &entry.value]);
                    parts.collect()
                }
                _ => Vec::new(),
            };
            if let Some(issue) = parts.into_iter().find_map(|part| unfit('s', part, type_of)) {
                return Some(issue);
            }
            let is_other = matches!(found, Type::Object(_) | Type::Optional(_) | Type::Opaque(_));
            (!is_other, TEXTS)
        }
        'd' => (is_integer, "decimal clause can only be used on integers"),
        'f' => (is_double, "fixed-point clause can only be used on doubles"),
        'e' => (is_double, "scientific clause can only be used on doubles"),
        'b' => (
            is_integer || matches!(found, Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'o' => (is_integer, "octal clause can only be used on integers"),
        _ => (
            is_integer || matches!(found, Type::Text | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    (!is_fit).then(|| {
        let name = name(&found);
        let text = format!("error during formatting: {text}, was given {name}");
        Issue::new(item.position as usize, text)
    })
}

/// The name of a type without those of its parts.
fn name(found: &Type) -> String {
    match found {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Null => "null_type".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Opaque(opaque) => Opaque::name(*opaque).to_owned(),
        other => other.to_string(),
    }
}
