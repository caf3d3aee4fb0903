//! The `fieldPath` of a rule: `.spec.size` or `['a.b']`, relative to the value.

use serde_json::Value as Json;

use crate::schema::{properties, values_of};

/// The path as it is in errors; `None` if it is malformed, or not that of a field of the schema.
pub(crate) fn normalized(path: &str, schema: &Json) -> Option<String> {
    let mut found = String::new();
    let (mut rest, mut schema) = (path, schema);
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            name = after[..end].to_owned();
            rest = &after[end..];
        } else {
            (name, rest) = quoted(rest.strip_prefix("['")?)?;
        }
        if let Some(fields) = properties(schema) {
            schema = fields.get(&name)?;
            if !found.is_empty() {
                found.push('.');
            }
            found.push_str(&name);
        } else {
            schema = values_of(schema)?;
            found.push_str(&format!("[{name}]"));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// A quoted name, and the text after its bracket.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\'' => return Some((name, text[at + 1..].strip_prefix(']')?)),
            '\\' => name.push(match characters.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    None
}
