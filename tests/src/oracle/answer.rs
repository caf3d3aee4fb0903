//! An answer without what no two servers have in common: uids, versions, times, names of certificates.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::Answer as Response;

/// What is compared of a response.
#[derive(Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub code: u16,
    /// Its warnings.
    pub warnings: Vec<String>,
    /// Its document. Of a watch, the list of its events.
    pub body: Value,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.body)?;
        if self.warnings.is_empty() {
            return Ok(());
        }
        write!(f, " {:?}", self.warnings)
    }
}

impl Answer {
    /// What is compared of a response, with managedFields if `owners` are.
    pub fn of(answer: &Response, owners: bool) -> Self {
        let text = answer.text();
        let mut documents: Vec<Value> = serde_json::Deserializer::from_str(&text)
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|_| vec![Value::String(text.clone())]);
        let mut body = if documents.len() == 1 {
            documents.remove(0)
        } else {
            Value::Array(documents)
        };
        clean(&mut body, owners);
        let warnings = answer.header_all("warning").into_iter().map(str::to_owned);
        Self {
            code: answer.code,
            warnings: warnings.collect(),
            body,
        }
    }
}

/// What messages tell of the stored object, of versions, and of one call of a webhook.
static OF_OBJECT: LazyLock<Regex> = LazyLock::new(|| {
    let texts = [
        "UID in object meta: [0-9a-f-]+",
        "ResourceVersion in object meta: [0-9]+",
        r"in record \([^)]*\)",
        r"in the precondition \([0-9]{2,}\)",
        "resource version: [0-9]{6,}, current: [0-9]+",
        "the same UID: [0-9a-f-]+",
        r#"response\.uid="[0-9a-f-]+""#,
        r#"Object 'Kind' is missing in '\{"apiVersion":"webhooks.*'"#,
    ];
    Regex::new(&texts.join("|")).unwrap()
});

/// The name of the type of an object in the oracle's errors of rules, which is made of the time.
static OBJECT_TYPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"selfType[0-9]+(\.[@\w]+)*").unwrap());

/// Removes what differs between servers, at any depth.
fn clean(value: &mut Value, owners: bool) {
    match value {
        Value::Object(fields) => clean_object(fields, owners),
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, owners)),
        Value::String(text) => {
            cut_document(text);
            cut_errors_of_types(text);
            if let Cow::Owned(masked) = OBJECT_TYPE.replace_all(text, "object") {
                *text = masked;
            }
            if let Cow::Owned(masked) = OF_OBJECT.replace_all(text, "OF OBJECT") {
                *text = masked;
            }
        }
        _ => {}
    }
}

/// Takes out of a message the patched document, which has versions and times, and its fields in any order.
fn cut_document(message: &mut String) {
    const BEFORE: &str = "Invalid value: \"{\\\"apiVersion\\\"";
    if let Some(begin) = message.find(BEFORE)
        && let Some(end) = message[begin..].rfind("}\": ")
    {
        message.replace_range(begin + "Invalid value: ".len()..begin + end + 2, "DOCUMENT");
    }
}

/// Cuts off which fields of an applied document have the wrong type: the oracle visits them in any order, and stops at some.
fn cut_errors_of_types(message: &mut String) {
    if message.starts_with("failed to create typed patch object")
        && let Some(end) = message.find("): ")
    {
        message.truncate(end);
    }
}

fn clean_object(fields: &mut Map<String, Value>, owners: bool) {
    for (key, shown) in [
        ("uid", "UID"),
        ("resourceVersion", "VERSION"),
        ("creationTimestamp", "TIME"),
        ("deletionTimestamp", "TIME"),
        ("time", "TIME"),
        ("lastTransitionTime", "TIME"),
        ("continue", "CONTINUE"),
        ("storageVersionHash", "HASH"),
    ] {
        if let Some(text @ Value::String(_)) = fields.get_mut(key)
            && text != ""
        {
            *text = json!(shown);
        }
    }
    // The manager of what the server writes by itself has a name of its own.
    if let Some(manager) = fields.get_mut("manager")
        && ["oracle", "definition-controller"]
            .iter()
            .any(|name| manager == name)
    {
        *manager = json!("SERVER");
    }
    if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
        entries.iter_mut().for_each(|entry| clean(entry, owners));
        // They are ordered by their times, which are those of the run.
        entries.sort_by_cached_key(|entry| entry.to_string());
        if !owners {
            fields.remove("managedFields");
        }
    }
    order_causes(fields);
    clean_table(fields);
    fields.values_mut().for_each(|value| clean(value, owners));
}

/// Orders the causes of an invalid object: the oracle finds those of properties in any order, and tells them in that order in its
/// message, which is cut off here.
fn order_causes(fields: &mut Map<String, Value>) {
    let causes = fields
        .get_mut("details")
        .and_then(|details| details["causes"].as_array_mut());
    let Some(causes) = causes.filter(|causes| causes.len() > 1) else {
        return;
    };
    causes.sort_by_cached_key(|cause| (cause["field"].to_string(), cause["message"].to_string()));
    if let Some(Value::String(message)) = fields.get_mut("message")
        && let Some(at) = message.find("is invalid: [")
    {
        message.truncate(at);
    }
}

/// Removes the ages of a table, and the descriptions of columns that each server words by itself.
fn clean_table(fields: &mut Map<String, Value>) {
    let Some(columns) = fields
        .get_mut("columnDefinitions")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    let mut of_time = Vec::new();
    for (index, column) in columns.iter_mut().enumerate() {
        if ["Name", "Age", "Created At"]
            .iter()
            .any(|name| column["name"] == *name)
        {
            column["description"] = json!("DESCRIPTION");
        }
        if column["type"] == "date" || column["name"] == "Created At" {
            of_time.push(index);
        }
    }
    for row in fields
        .get_mut("rows")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        for index in &of_time {
            let cell = &mut row["cells"][*index];
            if cell
                .as_str()
                .is_some_and(|text| text.starts_with(|first: char| first.is_ascii_digit()))
            {
                *cell = json!("TIME");
            }
        }
    }
}
