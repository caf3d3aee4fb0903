//! Objects as table rows (`as=Table`): the columns a kind declares, between its name and its age.

mod duration;

use std::cell::LazyCell;
use std::sync::{Arc, LazyLock};

use apiloom_meta::codec::{Finder, append_json};
use apiloom_meta::kind::{Cell, CellSource, Column, ColumnType};
use apiloom_meta::{JsonPath, ListMeta, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::negotiate::MetaVersion;
use super::params::IncludeObject;
use crate::registry::{Endpoint, Json};

const UNKNOWN_AGE: &str = "<unknown>";

/// Makes tables of one kind for one request.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    endpoint: Arc<Endpoint>,
    version: MetaVersion,
    include: IncludeObject,
    finder: Finder,
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
        name: &column.name,
        column_type: type_name(column.column_type),
        format: &column.format,
        description: &column.description,
        priority: column.priority,
    });
    let last = match last_column(columns) {
        LastColumn::CreatedAt => Some(CREATED_AT),
        LastColumn::Age => Some(AGE),
        LastColumn::Declared => None,
    };
    std::iter::once(NAME).chain(declared).chain(last).collect()
}

/// The type of a column, in tables and in CRDs.
pub(super) fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::String => "string",
        ColumnType::Integer => "integer",
        ColumnType::Number => "number",
        ColumnType::Boolean => "boolean",
        ColumnType::Date => "date",
    }
}

/// Finds what the cells of a kind are made from: its name and its creation, then what its columns name.
fn finder(columns: &[Column]) -> Finder {
    let declared = columns.iter().filter_map(|column| match &column.source {
        CellSource::Path(path) => Some(path.clone()),
        CellSource::Query(query) => Some(query.start().clone()),
        CellSource::With(_) => None,
    });
    let metadata = |name| JsonPath::new(["metadata", name]);
    let known = [metadata("name"), metadata("creationTimestamp")];
    Finder::new(known.into_iter().chain(declared))
}

fn cells(columns: &[Column], finder: &Finder, json: &[u8], now: i64) -> Vec<Value> {
    let found = finder.find(json);
    let value = |json: Option<&[u8]>| json.and_then(|json| serde_json::from_slice(json).ok());
    let mut found = found.into_iter();
    let name = found.next().and_then(value);
    let created = found.next().and_then(value);
    let last = match last_column(columns) {
        // A missing timestamp reads as Go's zero time.
        LastColumn::CreatedAt => {
            Some(created.unwrap_or_else(|| Value::from("0001-01-01T00:00:00Z")))
        }
        LastColumn::Age => Some(age(created.as_ref(), now)),
        LastColumn::Declared => None,
    };
    // Decoded for functions of the whole object only.
    let object = LazyCell::new(|| serde_json::from_slice::<Value>(json).unwrap_or_default());
    let declared = columns.iter().map(|column| {
        let cell = match &column.source {
            CellSource::Path(_) => found.next().and_then(value),
            CellSource::Query(query) => found
                .next()
                .and_then(value)
                .and_then(|value| query.first_below(&value).cloned()),
            CellSource::With(compute) => computed(column, compute(&object)),
        };
        let cell = cell.filter(|cell: &Value| !cell.is_null());
        typed_cell(column.column_type, cell.as_ref(), now)
    });
    let name = name.unwrap_or_else(|| Value::from(""));
    std::iter::once(name).chain(declared).chain(last).collect()
}

fn computed(column: &Column, cell: Result<Cell, String>) -> Option<Value> {
    if let Err(error) = &cell {
        tracing::debug!(column = %column.name, %error, "a cell could not be computed");
    }
    cell.ok()
}

/// A value as a cell of its column's type; null, which prints as nothing, where it does not fit.
fn typed_cell(column_type: ColumnType, value: Option<&Value>, now: i64) -> Value {
    let Some(value) = value else {
        return Value::Null;
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

/// Writes `PartialObjectMetadata`.
pub(super) fn write_partial(json: &Json<'_>, version: MetaVersion, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    out.extend_from_slice(json.metadata());
    out.push(b'}');
}

impl Tables {
    pub(super) fn new(
        endpoint: &Arc<Endpoint>,
        version: MetaVersion,
        include: IncludeObject,
    ) -> Self {
        Self {
            finder: finder(&endpoint.def().columns),
            endpoint: Arc::clone(endpoint),
            version,
            include,
        }
    }

    /// A table up to and including the bracket that opens its rows.
    pub(super) fn write_head(&self, meta: &ListMeta, with_columns: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":\"");
        out.extend_from_slice(self.version.api_version().as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        append_json(meta, out);
        out.extend_from_slice(b",\"columnDefinitions\":");
        if with_columns {
            append_json(&definitions(&self.endpoint.def().columns), out);
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"rows\":[");
    }

    /// One row.
    pub(super) fn write_row(&self, json: &Json<'_>, out: &mut Vec<u8>) {
        let columns = &self.endpoint.def().columns;
        let now = Time::now().unix_seconds();
        out.extend_from_slice(b"{\"cells\":");
        append_json(&cells(columns, &self.finder, json.whole(), now), out);
        out.extend_from_slice(b",\"object\":");
        match self.include {
            IncludeObject::None => out.extend_from_slice(b"null"),
            IncludeObject::Object => out.extend_from_slice(json.whole()),
            IncludeObject::Metadata => write_partial(json, self.version, out),
        }
        out.push(b'}');
    }

    /// A table of one object, as GET and watch send it.
    pub(super) fn write_single(&self, json: &Json<'_>, with_columns: bool, out: &mut Vec<u8>) {
        let meta = ListMeta {
            resource_version: resource_version(json),
            ..ListMeta::default()
        };
        self.write_head(&meta, with_columns, out);
        self.write_row(json, out);
        out.extend_from_slice(b"]}");
    }
}

/// The object's resourceVersion, if it has one.
fn resource_version(json: &Json<'_>) -> Option<String> {
    static FINDER: LazyLock<Finder> =
        LazyLock::new(|| Finder::new([JsonPath::new(["resourceVersion"])]));
    let found = FINDER.find(json.metadata()).pop().flatten()?;
    let version: String = serde_json::from_slice(found).ok()?;
    Some(version).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests;
