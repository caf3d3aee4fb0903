//! Tables of objects (`as=Table`): the name, the columns that a kind declares, and the age.

mod duration;

use std::cell::LazyCell;
use std::sync::{Arc, LazyLock};

use apiloom_meta::codec::{Encoder, Finder};
use apiloom_meta::go_value::go_text;
use apiloom_meta::interrupt::is_interrupted;
use apiloom_meta::kind::{Cell, CellSource, Column, ColumnType};
use apiloom_meta::query::{JsonQuery, QueryValue};
use apiloom_meta::{JsonPath, ListMeta, ResourceDef, Time};
use apiloom_registry::{Endpoint, Json};
use serde_json::Value;

use super::form::MetaVersion;
use super::format::Sink;
use crate::request::params::IncludeObject;

const UNKNOWN_AGE: &str = "<unknown>";
const INVALID_AGE: &str = "<invalid>";
/// A text for which a row has no more room.
const TOO_LONG: &str = "<too long>";
/// The texts of a row, in bytes: more than an object has. Columns may all show the same part of it, and Kubernetes bounds neither
/// their number nor what they show.
const MAX_ROW_BYTES: usize = 4 * 1024 * 1024;
/// Go's time that is not set.
const GO_ZERO_TIME: &str = "0001-01-01T00:00:00Z";
/// The longest duration of Go, of 64 bits of nanoseconds: an age is not higher.
const MAX_SECONDS: i64 = i64::MAX / 1_000_000_000;

/// Builds the tables of one kind for one request.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    endpoint: Arc<Endpoint>,
    version: MetaVersion,
    include: IncludeObject,
    finder: Finder,
    frame: Frame,
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

/// The columns that a table has before and after the declared ones.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Whether the name is the first one.
    has_name: bool,
    last: LastColumn,
}

impl Frame {
    fn of(def: &ResourceDef) -> Self {
        if def.dialect.has_declared_columns {
            return Self {
                has_name: true,
                last: LastColumn::Declared,
            };
        }
        Self::around(&def.columns)
    }

    fn around(columns: &[Column]) -> Self {
        let is_age = |column: &Column| column.name.eq_ignore_ascii_case("age");
        let has_name = !columns.iter().any(|column| column.name == NAME.name);
        let last = if columns.is_empty() {
            LastColumn::CreatedAt
        } else if !has_name || columns.iter().any(is_age) {
            LastColumn::Declared
        } else {
            LastColumn::Age
        };
        Self { has_name, last }
    }
}

fn definitions(columns: &[Column], frame: Frame) -> Vec<ColumnDefinition<'_>> {
    let declared = columns.iter().map(|column| ColumnDefinition {
        name: &column.name,
        column_type: type_name(column.column_type),
        format: &column.format,
        description: &column.description,
        priority: column.priority,
    });
    let last = match frame.last {
        LastColumn::CreatedAt => Some(CREATED_AT),
        LastColumn::Age => Some(AGE),
        LastColumn::Declared => None,
    };
    let name = frame.has_name.then_some(NAME);
    name.into_iter().chain(declared).chain(last).collect()
}

/// The type of a column, in tables and in CRDs.
pub(crate) fn type_name(column_type: ColumnType) -> &'static str {
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
        CellSource::Query(query) => starts_below(query).then(|| query.start().clone()),
        CellSource::With(_) => None,
    });
    let metadata = |name| JsonPath::new(["metadata", name]);
    let known = [metadata("name"), metadata("creationTimestamp")];
    Finder::new(known.into_iter().chain(declared))
}

/// Whether a query starts below the object, at a field.
fn starts_below(query: &JsonQuery) -> bool {
    !query.start().names().is_empty()
}

/// The values below which the queries of a row start. Columns often start at the same one, which is decoded once.
#[derive(Default)]
struct Starts<'j> {
    last: Option<(&'j [u8], Option<Value>)>,
}

impl<'j> Starts<'j> {
    /// The value of JSON that was found for a column.
    fn decoded(&mut self, json: &'j [u8]) -> Option<&Value> {
        let is_last = self
            .last
            .as_ref()
            .is_some_and(|(last, _)| std::ptr::eq(*last, json));
        if !is_last {
            self.last = Some((json, decoded(json)));
        }
        self.last.as_ref()?.1.as_ref()
    }
}

/// Writes the cells of columns that have texts of [`MAX_ROW_BYTES`] together. When there is no room for one, later ones are not made.
struct Cells<'o> {
    out: &'o mut dyn Sink,
    now: i64,
    /// How many bytes of texts may follow.
    room: usize,
}

impl<'o> Cells<'o> {
    fn new(out: &'o mut dyn Sink, now: i64) -> Self {
        Self {
            out,
            now,
            room: MAX_ROW_BYTES,
        }
    }

    /// Writes the JSON that was found for a cell. What the object has as a cell needs it is written as it is there.
    fn found(&mut self, column_type: ColumnType, found: Option<&[u8]>) {
        match (column_type, found) {
            (_, None) => self.out.json(b"null"),
            (ColumnType::String, Some(json)) if json.starts_with(b"\"") => {
                if self.takes(json.len()) {
                    self.out.json(json);
                } else {
                    self.out.text(TOO_LONG);
                }
            }
            (ColumnType::String, Some(_)) if self.room == 0 => self.out.text(TOO_LONG),
            // No column of another type shows them.
            (_, Some([b'{' | b'[', ..])) if column_type != ColumnType::String => {
                self.out.json(b"null");
            }
            (_, Some(json)) => {
                let value = decoded(json);
                self.queried(column_type, value.as_ref().map(QueryValue::Value));
            }
        }
    }

    /// Writes a value of a query. Text shows all values, as client-go prints them.
    fn queried(&mut self, column_type: ColumnType, found: Option<QueryValue<'_>>) {
        match (column_type, found) {
            (_, None) => self.out.json(b"null"),
            (ColumnType::String, Some(value)) => self.text(|| printed(value)),
            (_, Some(value)) => self.typed(column_type, value.as_value()),
        }
    }

    /// Writes a value as a cell of its column's type; null, which is printed as nothing, if the type does not match.
    fn typed(&mut self, column_type: ColumnType, value: Option<&Value>) {
        match (column_type, value.filter(|value| !value.is_null())) {
            (ColumnType::String, Some(value)) => self.text(|| printed(QueryValue::Value(value))),
            (_, value) => self.out.value(&typed_cell(column_type, value, self.now)),
        }
    }

    fn text(&mut self, text: impl FnOnce() -> String) {
        if self.room > 0 {
            let text = text();
            if self.takes(text.len()) {
                return self.out.text(&text);
            }
        }
        self.out.text(TOO_LONG);
    }

    /// Whether there is room for a text. If not, there is none for any after it.
    fn takes(&mut self, len: usize) -> bool {
        let room = self.room.checked_sub(len);
        self.room = room.unwrap_or_default();
        room.is_some()
    }
}

/// What the cells of one row are made by.
struct Row<'t> {
    columns: &'t [Column],
    frame: Frame,
    finder: &'t Finder,
    /// The time of ages, in Unix seconds.
    now: i64,
}

impl Row<'_> {
    /// Writes the cells of an object. An interrupted row has not all of them.
    fn write(&self, json: &Json<'_>, out: &mut dyn Sink) {
        let (frame, now) = (self.frame, self.now);
        let found = json.find(self.finder);
        let mut found = found.into_iter();
        let name = found.next().flatten();
        let created = found.next().flatten();
        // Decoded only if a column needs the whole object.
        let object = LazyCell::new(|| decoded(json.whole()).unwrap_or_default());
        if frame.has_name {
            out.json(name.unwrap_or(b"\"\""));
        }
        let mut starts = Starts::default();
        let mut cells = Cells::new(out, now);
        for column in self.columns {
            if is_interrupted() {
                return;
            }
            let column_type = column.column_type;
            match &column.source {
                CellSource::Path(_) => cells.found(column_type, found.next().flatten()),
                CellSource::Query(query) => {
                    if starts_below(query) {
                        let start = found.next().flatten();
                        let len = start.map_or(0, <[u8]>::len);
                        let start = start.and_then(|json| starts.decoded(json));
                        let value = query.first_below(start, max_values(len));
                        cells.queried(column_type, value);
                    } else {
                        let max_values = max_values(json.whole().len());
                        let value = query.first_below(Some(&object), max_values);
                        cells.queried(column_type, value);
                    }
                }
                CellSource::With(compute) => {
                    let cell = computed(column, compute(&object)).filter(|cell| !cell.is_null());
                    match column_type {
                        // As an age: the function knows all there is to know of the time.
                        ColumnType::Date => cells.out.text(&match cell {
                            None => UNKNOWN_AGE.to_owned(),
                            Some(Value::String(time)) => age(&time, now),
                            Some(_) => INVALID_AGE.to_owned(),
                        }),
                        _ => cells.typed(column_type, cell.as_ref()),
                    }
                }
            }
        }
        match frame.last {
            // A missing timestamp is shown as Go's zero time.
            LastColumn::CreatedAt => match created {
                Some(created) => out.json(created),
                None => out.text(GO_ZERO_TIME),
            },
            LastColumn::Age => out.text(&age_of(created, now)),
            LastColumn::Declared => {}
        }
    }
}

fn decoded(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok()
}

/// How many values a query may look at in JSON of this size: several times as many as it can have.
fn max_values(len: usize) -> usize {
    len.saturating_mul(4).saturating_add(1_000)
}

fn computed(column: &Column, cell: Result<Cell, String>) -> Option<Value> {
    if let Err(error) = &cell {
        tracing::debug!(column = %column.name, %error, "a cell could not be computed");
    }
    cell.ok()
}

/// A value as client-go prints it: text as it is, lists and objects as JSON.
fn printed(value: QueryValue<'_>) -> String {
    match value {
        QueryValue::Integer(integer) => integer.to_string(),
        QueryValue::Byte(byte) => byte.to_string(),
        QueryValue::Value(Value::Null) => "<no value>".to_owned(),
        QueryValue::Value(json @ (Value::Array(_) | Value::Object(_))) => {
            String::from_utf8_lossy(&Encoder::json(json)).into_owned()
        }
        QueryValue::Value(plain) => go_text(plain),
    }
}

/// A value as a cell of a column that shows no text as it is.
fn typed_cell(column_type: ColumnType, value: Option<&Value>, now: i64) -> Value {
    match (column_type, value) {
        (ColumnType::Date, Some(Value::String(time))) => age(time, now).into(),
        (ColumnType::Integer, Some(Value::Number(number))) => whole(number),
        // A float, also of an integer that no float has.
        (ColumnType::Number, Some(Value::Number(number))) => number.as_f64().into(),
        (ColumnType::Boolean, Some(Value::Bool(is_true))) => (*is_true).into(),
        _ => Value::Null,
    }
}

/// The integer part of a number.
fn whole(number: &serde_json::Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => Value::from(integer),
        // `as` saturates for numbers beyond 64 bits.
        (None, Some(float)) => Value::from(float as i64),
        (None, None) => Value::Null,
    }
}

/// The time since a timestamp, for people.
fn age(time: &str, now: i64) -> String {
    if matches!(time, "" | "null" | GO_ZERO_TIME) {
        return UNKNOWN_AGE.to_owned();
    }
    match time.parse::<Time>() {
        Ok(time) => duration::human(now.saturating_sub(time.unix_seconds()).min(MAX_SECONDS)),
        Err(_) => INVALID_AGE.to_owned(),
    }
}

/// The same, of a timestamp in JSON.
fn age_of(timestamp: Option<&[u8]>, now: i64) -> String {
    match timestamp.map(serde_json::from_slice::<Value>) {
        None => UNKNOWN_AGE.to_owned(),
        Some(Ok(Value::String(time))) => age(&time, now),
        Some(_) => INVALID_AGE.to_owned(),
    }
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
    pub(crate) fn new(
        endpoint: &Arc<Endpoint>,
        version: MetaVersion,
        include: IncludeObject,
    ) -> Self {
        Self {
            finder: finder(&endpoint.def().columns),
            frame: Frame::of(endpoint.def()),
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
            for definition in definitions(&def.columns, self.frame) {
                definition.write(out);
            }
            out.end_list();
        } else {
            out.json(b"null");
        }
    }

    /// Writes one row.
    pub(super) fn write_row(&self, json: &Json<'_>, out: &mut dyn Sink) {
        let row = Row {
            columns: &self.endpoint.def().columns,
            frame: self.frame,
            finder: &self.finder,
            now: self.endpoint.writes().now().unix_seconds(),
        };
        out.begin_map();
        out.key("cells");
        out.begin_list();
        row.write(json, out);
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
