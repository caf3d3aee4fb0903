//! Names and literals in CEL.

use serde_json::Value;

use super::kind::Kind;

/// Reserved words of CEL.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The name of a field, escaped as in kube-apiserver; `None` for a name that rules cannot contain.
pub(super) fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '_' if rest.next_if_eq(&'_').is_some() => out.push_str("__underscores__"),
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            plain if plain.is_ascii_alphanumeric() || plain == '_' => out.push(plain),
            _ => return None,
        }
    }
    Some(out)
}

/// A string literal.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::from("'");
    for character in text.chars() {
        match character {
            '\\' | '\'' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Other control characters.
            control if control.is_control() => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            plain => out.push(plain),
        }
    }
    out.push('\'');
    out
}

/// A literal of a type; `None` if CEL has none for the value.
pub(super) fn literal(value: &Value, kind: Option<Kind>) -> Option<String> {
    match (value, kind?) {
        (Value::String(text), Kind::Text) => Some(quote(text)),
        (Value::Bool(flag), Kind::Bool) => Some(flag.to_string()),
        (Value::Number(number), Kind::Integer) => number.as_i64().map(|number| number.to_string()),
        // A number without a dot would be an integer.
        (Value::Number(number), Kind::Float) => number.as_f64().map(|number| format!("{number:?}")),
        _ => None,
    }
}
