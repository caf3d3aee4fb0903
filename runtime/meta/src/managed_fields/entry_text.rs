//! The entries of managedFields as documents in memory have them: as one text with their JSON, or as a tree.
//!
//! The text is that of the encoder, so it is copied into encoded documents as it is. A tree is what a client sent, or what
//! the code of a program wrote.

use std::borrow::Cow;

use serde_json::Value;

use crate::codec;
use crate::codec::{member, value_end};

/// The member with the fields, whose value is no text.
const FIELDS: &str = "fieldsV1";

/// The members of one entry, without checks. Absent ones are empty.
#[derive(Default)]
pub(crate) struct EntryText<'a> {
    pub(crate) manager: Cow<'a, str>,
    pub(crate) operation: Cow<'a, str>,
    pub(crate) api_version: Cow<'a, str>,
    pub(crate) time: Option<Cow<'a, str>>,
    pub(crate) fields_type: Cow<'a, str>,
    pub(crate) fields: EntryJson<'a>,
    pub(crate) subresource: Cow<'a, str>,
}

/// The value of `fieldsV1`.
#[derive(Default)]
pub(crate) enum EntryJson<'a> {
    #[default]
    Absent,
    /// As the text of its JSON.
    Text(Cow<'a, str>),
    /// As an admission plugin may write it.
    Tree(&'a Value),
}

/// The entries of a value of managedFields.
///
/// # Errors
/// If it is a text that no encoder has written.
pub(crate) fn entry_texts(value: &Value) -> Result<Vec<EntryText<'_>>, String> {
    match value {
        Value::Array(entries) => Ok(entries.iter().map(of_tree).collect()),
        Value::String(json) => {
            of_text(json).ok_or_else(|| "metadata.managedFields: malformed text".to_owned())
        }
        _ => Ok(Vec::new()),
    }
}

fn of_tree(entry: &Value) -> EntryText<'_> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    let or_empty = |field: &str| Cow::Borrowed(text(field).unwrap_or_default());
    EntryText {
        manager: or_empty("manager"),
        operation: or_empty("operation"),
        api_version: or_empty("apiVersion"),
        time: text("time").map(Cow::Borrowed),
        fields_type: or_empty("fieldsType"),
        fields: match entry.get("fieldsV1") {
            None => EntryJson::Absent,
            Some(Value::String(json)) => EntryJson::Text(json.into()),
            Some(tree) => EntryJson::Tree(tree),
        },
        subresource: or_empty("subresource"),
    }
}

fn of_text(text: &str) -> Option<Vec<EntryText<'_>>> {
    let json = text.as_bytes();
    let mut entries = Vec::new();
    let mut at = 0;
    while at == 0 || json.get(at)? != &b']' {
        let separator = if at == 0 { b'[' } else { b',' };
        if json.get(at)? != &separator {
            return None;
        }
        let mut entry = EntryText::default();
        let (mut next, mut end) = (at + 2, at + 3);
        while let Some(member) = member(json, next) {
            let value = member.value..value_end(json, member.value)?;
            end = value.end + 1;
            next = end;
            let value = text.get(value)?;
            match &*member.name {
                "manager" => entry.manager = string(value)?,
                "operation" => entry.operation = string(value)?,
                "apiVersion" => entry.api_version = string(value)?,
                "time" => entry.time = Some(string(value)?),
                "fieldsType" => entry.fields_type = string(value)?,
                "fieldsV1" => entry.fields = EntryJson::Text(value.into()),
                "subresource" => entry.subresource = string(value)?,
                _ => {}
            }
            if json.get(end - 1)? != &b',' {
                break;
            }
        }
        if json.get(end - 1)? != &b'}' {
            return None;
        }
        entries.push(entry);
        at = end;
    }
    (at + 1 == json.len()).then_some(entries)
}

/// The value of a JSON string.
fn string(json: &str) -> Option<Cow<'_, str>> {
    if json.contains('\\') {
        return serde_json::from_str(json).ok().map(Cow::Owned);
    }
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    Some(Cow::Borrowed(text))
}

/// The order of the members of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberOrder {
    /// That of the API's type.
    Declared,
    /// That of their names, as custom resources have all fields.
    Sorted,
}

/// The text of entries, with their members in an order and without the empty ones.
pub(super) fn to_text<'a>(
    entries: impl IntoIterator<Item = EntryText<'a>>,
    order: MemberOrder,
) -> String {
    let mut out = Vec::with_capacity(1024);
    for entry in entries {
        out.push(if out.is_empty() { b'[' } else { b',' });
        append(&entry, order, &mut out);
    }
    out.push(b']');
    // Only whole texts were appended.
    String::from_utf8(out).unwrap_or_default()
}

fn append(entry: &EntryText<'_>, order: MemberOrder, out: &mut Vec<u8>) {
    let fields = match &entry.fields {
        EntryJson::Text(json) => json,
        EntryJson::Absent | EntryJson::Tree(_) => "",
    };
    let mut members = [
        ("manager", &*entry.manager),
        ("operation", &entry.operation),
        ("apiVersion", &entry.api_version),
        ("time", entry.time.as_deref().unwrap_or_default()),
        ("fieldsType", &entry.fields_type),
        (FIELDS, fields),
        ("subresource", &entry.subresource),
    ];
    if order == MemberOrder::Sorted {
        members.sort_unstable();
    }
    let mut separator = b'{';
    for (name, text) in members {
        if text.is_empty() {
            continue;
        }
        out.push(std::mem::replace(&mut separator, b','));
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        if name == FIELDS {
            out.extend_from_slice(text.as_bytes());
        } else {
            codec::Encoder::append_text(text, out);
        }
    }
    out.push(b'}');
}
