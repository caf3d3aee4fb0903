//! Tables of objects (`as=Table`): the name, the columns that a kind declares, and the age.

mod duration;

use std::cell::LazyCell;
use std::sync::{Arc, LazyLock};

use apiloom_meta::codec::Finder;
use apiloom_meta::kind::{Cell, CellSource, Column, ColumnType};
use apiloom_meta::{JsonPath, ListMeta, ResourceDef, Time};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::form::MetaVersion;
use super::format::Sink;
use super::params::IncludeObject;
use crate::registry::{Endpoint, Json};

const UNKNOWN_AGE: &str = "<unknown>";

/// Builds the tables of one kind for one request.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    endpoint: Arc<Endpoint>,
    version: MetaVersion,
    include: IncludeObject,
    finder: Finder,
    last: LastColumn,
}

/// `TableColumnDefinition`; all keys are always written.
#[derive(Debug, PartialEq)]
struct ColumnDefinition<'a> {
    name: &'a str,
    column_type: &'a str,
    format: &'a str,
    description: &'a str,
    priority: i32,
}

impl ColumnDefinition<'_> {
    fn write(&self, out: &mut dyn Sink) {
        out.begin_map();
        out.text_field("name", self.name);
        out.text_field("type", self.column_type);
        out.text_field("format", self.format);
        out.text_field("description", self.description);
        out.key("priority");
        out.integer(self.priority.into());
        out.end_map();
    }
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
    /// A creation timestamp, for kinds without declared columns.
    CreatedAt,
    /// An age, for kinds with declared columns, none of which is called Age or Name.
    Age,
    /// A column that the kind declares: Age, or any if it declares the column Name too.
    Declared,
}

/// The last column of a kind. Custom resources have those of their definition alone.
fn last_column_of(def: &ResourceDef) -> LastColumn {
    if def.custom.is_some() {
        LastColumn::Declared
    } else {
        last_column(&def.columns)
    }
}

fn last_column(columns: &[Column]) -> LastColumn {
    if columns.is_empty() {
        LastColumn::CreatedAt
    } else if declares_name(columns)
        || columns
            .iter()
            .any(|column| column.name.eq_ignore_ascii_case("age"))
    {
        LastColumn::Declared
    } else {
        LastColumn::Age
    }
}

fn definitions(columns: &[Column], last: LastColumn) -> Vec<ColumnDefinition<'_>> {
    let declared = columns.iter().map(|column| ColumnDefinition {
        name: &column.name,
        column_type: type_name(column.column_type),
        format: &column.format,
        description: &column.description,
        priority: column.priority,
    });
    let last = match last {
        LastColumn::CreatedAt => Some(CREATED_AT),
        LastColumn::Age => Some(AGE),
        LastColumn::Declared => None,
    };
    let name = (!declares_name(columns)).then_some(NAME);
    name.into_iter().chain(declared).chain(last).collect()
}

/// Whether a kind declares the column Name, which is the first one otherwise.
fn declares_name(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.name == NAME.name)
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

/// Finds the values for the cells of a kind: name and creation timestamp, then those of its columns.
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

/// Writes the cells of a row. What the object has as a cell needs it is written as it is there.
fn write_cells(
    (columns, last): (&[Column], LastColumn),
    finder: &Finder,
    json: &Json<'_>,
    now: i64,
    out: &mut dyn Sink,
) {
    let found = json.find(finder);
    let mut found = found.into_iter();
    let name = found.next().flatten();
    let created = found.next().flatten();
    // Decoded only if a column is computed from the whole object.
    let object = LazyCell::new(|| decoded(json.whole()).unwrap_or_default());
    if !declares_name(columns) {
        out.json(name.unwrap_or(b"\"\""));
    }
    for column in columns {
        let column_type = column.column_type;
        match &column.source {
            CellSource::Path(_) => write_found(column_type, found.next().flatten(), now, out),
            CellSource::Query(query) => {
                let start = found.next().flatten().and_then(decoded);
                let value = start.as_ref().and_then(|start| query.first_below(start));
                out.value(&typed_cell(column_type, value, now));
            }
            CellSource::With(compute) => {
                let cell = computed(column, compute(&object)).filter(|cell| !cell.is_null());
                match column_type {
                    // As an age: the function knows all there is to know of the time.
                    ColumnType::Date => out.text(&age(cell, now)),
                    _ => out.value(&typed_cell(column_type, cell.as_ref(), now)),
                }
            }
        }
    }
    match last {
        // A missing timestamp is shown as Go's zero time.
        LastColumn::CreatedAt => out.json(created.unwrap_or(b"\"0001-01-01T00:00:00Z\"")),
        LastColumn::Age => out.text(&age_of(created, now)),
        LastColumn::Declared => {}
    }
}

fn decoded(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok()
}

/// Writes the JSON that was found for a cell.
fn write_found(column_type: ColumnType, found: Option<&[u8]>, now: i64, out: &mut dyn Sink) {
    match (column_type, found) {
        (_, None | Some(b"null")) => out.json(b"null"),
        (ColumnType::Date, found) => out.text(&age_of(found, now)),
        (ColumnType::String, Some(json)) if json.starts_with(b"\"") => out.json(json),
        (_, Some(json)) => out.value(&typed_cell(column_type, decoded(json).as_ref(), now)),
    }
}

fn computed(column: &Column, cell: Result<Cell, String>) -> Option<Value> {
    if let Err(error) = &cell {
        tracing::debug!(column = %column.name, %error, "a cell could not be computed");
    }
    cell.ok()
}

/// A value as a cell of its column's type; null, which is printed as nothing, if the type does not match.
fn typed_cell(column_type: ColumnType, value: Option<&Value>, now: i64) -> Value {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Value::Null;
    };
    match (column_type, value) {
        (ColumnType::Date, _) => age(Some(value), now).into(),
        (ColumnType::String, Value::String(_)) => value.clone(),
        (ColumnType::String, _) => Value::from(value.to_string()),
        (ColumnType::Integer, Value::Number(number)) => whole(number),
        (ColumnType::Number, Value::Number(_)) | (ColumnType::Boolean, Value::Bool(_)) => {
            value.clone()
        }
        _ => Value::Null,
    }
}

/// The integer part of a number.
fn whole(number: &serde_json::Number) -> Value {
    if number.is_i64() || number.is_u64() {
        return Value::from(number.clone());
    }
    // `as` saturates for numbers beyond 64 bits.
    number
        .as_f64()
        .map_or(Value::Null, |float| Value::from(float as i64))
}

/// The time since a timestamp, for people.
fn age<'de>(timestamp: Option<impl Deserializer<'de>>, now: i64) -> String {
    let Some(timestamp) = timestamp else {
        return UNKNOWN_AGE.to_owned();
    };
    match Time::deserialize(timestamp) {
        Ok(time) => duration::human(now.saturating_sub(time.unix_seconds())),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// The same, of a timestamp in JSON.
fn age_of(timestamp: Option<&[u8]>, now: i64) -> String {
    let mut json = timestamp.map(serde_json::Deserializer::from_slice);
    age(json.as_mut(), now)
}

/// Writes a `PartialObjectMetadata`.
pub(super) fn write_partial(json: &Json<'_>, version: MetaVersion, out: &mut dyn Sink) {
    out.begin_map();
    out.text_field("kind", "PartialObjectMetadata");
    out.text_field("apiVersion", version.api_version());
    out.key("metadata");
    out.json(json.metadata());
    out.end_map();
}

impl Tables {
    pub(super) fn new(
        endpoint: &Arc<Endpoint>,
        version: MetaVersion,
        include: IncludeObject,
    ) -> Self {
        Self {
            finder: finder(&endpoint.def().columns),
            last: last_column_of(endpoint.def()),
            endpoint: Arc::clone(endpoint),
            version,
            include,
        }
    }

    /// Writes a table up to its rows.
    pub(super) fn write_head(&self, meta: &ListMeta, with_columns: bool, out: &mut dyn Sink) {
        out.begin_map();
        out.text_field("kind", "Table");
        out.text_field("apiVersion", self.version.api_version());
        out.list_meta(meta);
        out.key("columnDefinitions");
        if with_columns {
            out.begin_list();
            let def = self.endpoint.def();
            for definition in definitions(&def.columns, self.last) {
                definition.write(out);
            }
            out.end_list();
        } else {
            out.json(b"null");
        }
    }

    /// Writes one row.
    pub(super) fn write_row(&self, json: &Json<'_>, out: &mut dyn Sink) {
        let def = self.endpoint.def();
        let columns = (&def.columns[..], self.last);
        let now = self.endpoint.writes().now().unix_seconds();
        out.begin_map();
        out.key("cells");
        out.begin_list();
        write_cells(columns, &self.finder, json, now, out);
        out.end_list();
        out.key("object");
        match self.include {
            IncludeObject::None => out.json(b"null"),
            IncludeObject::Object => out.json(json.whole()),
            IncludeObject::Metadata => write_partial(json, self.version, out),
        }
        out.end_map();
    }

    /// Writes a table with one object, for GET and watch.
    pub(super) fn write_single(&self, json: &Json<'_>, with_columns: bool, out: &mut dyn Sink) {
        let meta = ListMeta {
            resource_version: resource_version(json),
            ..ListMeta::default()
        };
        self.write_head(&meta, with_columns, out);
        out.key("rows");
        out.begin_list();
        self.write_row(json, out);
        out.end_list();
        out.end_map();
    }
}

/// The object's resourceVersion; `None` if it has none.
fn resource_version(json: &Json<'_>) -> Option<String> {
    static FINDER: LazyLock<Finder> =
        LazyLock::new(|| Finder::new([JsonPath::new(["resourceVersion"])]));
    let found = FINDER.find(json.metadata()).pop().flatten()?;
    let version: String = serde_json::from_slice(found).ok()?;
    Some(version).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests;
