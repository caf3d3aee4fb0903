//! Objects as table rows (`as=Table`): the columns a kind declares, between its name and its age.

mod duration;

use std::sync::Arc;

use apiloom_meta::codec::encode_json;
use apiloom_meta::kind::{CellSource, Column, ColumnType};
use apiloom_meta::{JsonPath, ListMeta, Object, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::encode::{encode_partial, write_object};
use super::negotiate::MetaVersion;
use super::params::IncludeObject;
use crate::registry::Endpoint;

const UNKNOWN_AGE: &str = "<unknown>";

/// Makes tables of one kind for one request.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) version: MetaVersion,
    pub(super) include: IncludeObject,
}

/// `TableColumnDefinition`; every key is always written.
#[derive(Debug, Serialize, PartialEq)]
struct ColumnDefinition<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    column_type: &'a str,
    format: &'a str,
    description: &'a str,
    priority: i32,
}

const NAME: ColumnDefinition<'_> = ColumnDefinition {
    name: "Name",
    column_type: "string",
    format: "name",
    description: "The name of the object, unique among the objects of its kind and namespace.",
    priority: 0,
};
const CREATED_AT: ColumnDefinition<'_> = ColumnDefinition {
    name: "Created At",
    column_type: "date",
    format: "",
    description: "When the server created the object, in UTC.",
    priority: 0,
};
const AGE: ColumnDefinition<'_> = ColumnDefinition {
    name: "Age",
    column_type: "date",
    format: "",
    description: "How long ago the server created the object.",
    priority: 0,
};

/// The last column of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastColumn {
    /// Of kinds that declare no columns: a timestamp.
    CreatedAt,
    /// Of kinds that declare columns, but none called Age.
    Age,
    /// Of kinds that say themselves what their age is.
    Declared,
}

fn last_column(columns: &[Column]) -> LastColumn {
    if columns.is_empty() {
        LastColumn::CreatedAt
    } else if columns
        .iter()
        .any(|column| column.name.eq_ignore_ascii_case("age"))
    {
        LastColumn::Declared
    } else {
        LastColumn::Age
    }
}

fn definitions(columns: &[Column]) -> Vec<ColumnDefinition<'_>> {
    let declared = columns.iter().map(|column| ColumnDefinition {
        name: column.name,
        column_type: type_name(column.column_type),
        format: column.format,
        description: column.description,
        priority: column.priority,
    });
    let last = match last_column(columns) {
        LastColumn::CreatedAt => Some(CREATED_AT),
        LastColumn::Age => Some(AGE),
        LastColumn::Declared => None,
    };
    std::iter::once(NAME).chain(declared).chain(last).collect()
}

fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::String => "string",
        ColumnType::Integer => "integer",
        ColumnType::Number => "number",
        ColumnType::Boolean => "boolean",
        ColumnType::Date => "date",
    }
}

fn cells(columns: &[Column], object: &Object, now: i64) -> Vec<Value> {
    let created = object.meta().and_then(|meta| meta.get("creationTimestamp"));
    let last = match last_column(columns) {
        // A missing timestamp reads as Go's zero time.
        LastColumn::CreatedAt => Some(
            created
                .cloned()
                .unwrap_or_else(|| Value::from("0001-01-01T00:00:00Z")),
        ),
        LastColumn::Age => Some(age(created, now)),
        LastColumn::Declared => None,
    };
    let declared = columns.iter().map(|column| cell(column, object, now));
    std::iter::once(Value::from(object.name()))
        .chain(declared)
        .chain(last)
        .collect()
}

fn cell(column: &Column, object: &Object, now: i64) -> Value {
    let value = match &column.source {
        CellSource::Path(path) => lookup(object, path).cloned(),
        CellSource::With(compute) => match compute(&Value::Object(object.fields().clone())) {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::debug!(column = column.name, object = object.name(), %error, "a cell could not be computed");
                None
            }
        },
    };
    typed_cell(
        column.column_type,
        value.filter(|value| !value.is_null()).as_ref(),
        now,
    )
}

/// A value as a cell of its column's type; null, which prints as nothing, where it does not fit.
fn typed_cell(column_type: ColumnType, value: Option<&Value>, now: i64) -> Value {
    let Some(value) = value else {
        return if column_type == ColumnType::Date {
            age(None, now)
        } else {
            Value::Null
        };
    };
    match (column_type, value) {
        (ColumnType::Date, _) => age(Some(value), now),
        (ColumnType::String, Value::String(_)) => value.clone(),
        (ColumnType::String, _) => Value::from(value.to_string()),
        (ColumnType::Integer, Value::Number(number)) => whole(number),
        (ColumnType::Number, Value::Number(_)) | (ColumnType::Boolean, Value::Bool(_)) => {
            value.clone()
        }
        _ => Value::Null,
    }
}

/// A number without its fraction.
fn whole(number: &serde_json::Number) -> Value {
    if number.is_i64() || number.is_u64() {
        return Value::from(number.clone());
    }
    // `as` saturates, which is the best a number beyond 64 bits can be shown as.
    number
        .as_f64()
        .map_or(Value::Null, |float| Value::from(float as i64))
}

/// The time since a timestamp, for people.
fn age(timestamp: Option<&Value>, now: i64) -> Value {
    let Some(timestamp) = timestamp else {
        return Value::from(UNKNOWN_AGE);
    };
    match Time::deserialize(timestamp) {
        Ok(time) => Value::from(duration::human(now.saturating_sub(time.unix_seconds()))),
        Err(_) => Value::from("<invalid>"),
    }
}

fn lookup<'a>(object: &'a Object, path: &JsonPath) -> Option<&'a Value> {
    let (first, rest) = path.names().split_first()?;
    rest.iter()
        .try_fold(object.fields().get(first)?, |value, name| value.get(name))
}

impl Tables {
    /// A table up to and including the bracket that opens its rows.
    pub(super) fn write_head(&self, meta: &ListMeta, with_columns: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":\"");
        out.extend_from_slice(self.version.api_version().as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        out.extend_from_slice(&encode_json(meta));
        out.extend_from_slice(b",\"columnDefinitions\":");
        if with_columns {
            out.extend_from_slice(&encode_json(&definitions(&self.endpoint.def().columns)));
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"rows\":[");
    }

    /// One row.
    pub(super) fn write_row(&self, object: &Object, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"cells\":");
        out.extend_from_slice(&encode_json(&cells(
            &self.endpoint.def().columns,
            object,
            Time::now().unix_seconds(),
        )));
        out.extend_from_slice(b",\"object\":");
        match self.include {
            IncludeObject::None => out.extend_from_slice(b"null"),
            IncludeObject::Object => write_object(object, self.endpoint.schema(), out),
            IncludeObject::Metadata => {
                out.extend_from_slice(&encode_partial(
                    object,
                    self.version,
                    self.endpoint.schema(),
                ));
            }
        }
        out.push(b'}');
    }

    /// A table of one object, as GET and watch send it.
    pub(super) fn write_single(&self, object: &Object, with_columns: bool, out: &mut Vec<u8>) {
        let resource_version =
            Some(object.resource_version().to_owned()).filter(|text| !text.is_empty());
        self.write_head(
            &ListMeta {
                resource_version,
                ..ListMeta::default()
            },
            with_columns,
            out,
        );
        self.write_row(object, out);
        out.extend_from_slice(b"]}");
    }
}

#[cfg(test)]
mod tests;
