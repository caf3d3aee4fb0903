//! Paths such as `.spec.labels['a.b']`, which rules and selectable fields have.

use serde_json::Value;

use super::reading::{members, part, text, values_of_map};
use crate::path::JsonPath;

/// Why a path does not lead to a field, in kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldPathError(String);

/// The names of a path, and the type of the field that it leads to; an empty text without a type. Keys in brackets, such
/// as `['a.b']`, are an error unless `allows_keys`: selectable fields have none.
///
/// ```
/// use apiloom_schema::structural::field_path_type;
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
///     "color": {"type": "string"}}}}});
/// let (path, json_type) = field_path_type(&schema, ".spec.color", false)?;
/// assert_eq!((path.as_field().as_str(), json_type), ("spec.color", "string"));
/// let missing = field_path_type(&schema, ".spec.size", false).unwrap_err();
/// assert_eq!(missing.to_string(), "does not refer to a valid field");
/// # Ok::<(), apiloom_schema::structural::FieldPathError>(())
/// ```
///
/// # Errors
/// If the path is malformed, or the schema has no such field.
pub fn field_path_type<'a>(
    schema: &'a Value,
    path: &str,
    allows_keys: bool,
) -> Result<(JsonPath, &'a str), FieldPathError> {
    let fail = |text: &str| Err(FieldPathError(text.to_owned()));
    let mut names: Vec<String> = Vec::new();
    let mut at = schema;
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => match tokens.next() {
                Some(name) => name.to_owned(),
                None => return fail("unexpected end of JSON path"),
            },
            "[" if !allows_keys => return fail("array notation is not allowed"),
            "[" => {
                let Some(key) = tokens.next() else {
                    return fail("unexpected end of JSON path");
                };
                let inner = key
                    .strip_prefix('\'')
                    .and_then(|key| key.strip_suffix('\''));
                let Some(inner) = inner.filter(|_| key.len() > 1) else {
                    return fail(&format!("expected single quoted string but got {key}"));
                };
                match tokens.next() {
                    Some("]") => unescaped(inner)?,
                    Some(other) => return fail(&format!("expected ] but got {other}")),
                    None => return fail("unexpected end of JSON path"),
                }
            }
            other => return fail(&format!("expected [ or . but got: {other}")),
        };
        let has_fields = members(at, "properties").next().is_some();
        let below = if has_fields {
            part(at, "properties").and_then(|fields| fields.get(&name))
        } else {
            values_of_map(at)
        };
        match below {
            Some(below) => at = below,
            None => return fail("does not refer to a valid field"),
        }
        names.push(name);
    }
    Ok((JsonPath::new(names), text(at, "type").unwrap_or_default()))
}

/// The separators of a path, the quoted texts, and the names between them.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, character)| {
                let is_end = *character == '\'' && !escaped;
                escaped = *character == '\\';
                is_end
            });
            end.map_or(rest.len(), |(end, _)| end + 1)
        } else {
            match rest.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(end) => end,
                None => rest.len(),
            }
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// A quoted text without its escapes.
fn unescaped(text: &str) -> Result<String, FieldPathError> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(escaped @ ('\\' | '\'' | '"')) => escaped,
            _ => {
                let text = format!("invalid string literal: {text:?}");
                return Err(FieldPathError(text));
            }
        });
    }
    Ok(out)
}
