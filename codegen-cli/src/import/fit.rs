//! What a definition says about the fields of its kind: columns, selectable fields, scale, status. What the macros or the
//! schema would refuse is left out, with a line that says so.

use apiloom_meta::JsonPath;
use apiloom_meta::kind::Hooks;
use apiloom_meta::query::{self, JsonQuery, QueryFilter};
use apiloom_meta::schema::Schema;
use apiloom_model::kind::{Comparison, Literal, Query, QueryStep};
use apiloom_model::{ColumnSource, Diagnostics, FieldRef, parse_kind};
use serde_json::{Value, json};

use super::definition::{Column, Version};
use super::module;
use super::names;
use super::naming::NamedTypes;
use super::shapes::{Body, Type};

/// Adds the status that a subresource needs. An object without fields takes nothing, as does a field without a schema.
pub(super) fn add_status(version: &mut Version) {
    let schema = &mut version.schema;
    let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    if version.has_status && schema["properties"].get("status").is_none() {
        let mut status = json!({ "type": "object" });
        if is_open {
            status["x-kubernetes-preserve-unknown-fields"] = true.into();
        }
        schema["properties"]["status"] = status;
    }
}

/// Leaves out what cannot be said. Returns a line for each part.
pub(super) fn leave_out_unfit(version: &mut Version, named: &NamedTypes) -> Vec<String> {
    let mut lost = Vec::new();
    let schema = Schema::from_json(&version.schema, &Hooks::default());
    let schema = schema.or_else(|_| {
        Schema::of_resource(
            &json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        )
    });
    let mut columns: Vec<Column> = Vec::new();
    for column in std::mem::take(&mut version.columns) {
        let twin = columns.iter().any(|known| known.name == column.name);
        let problem = if twin {
            Some("there is another column of this name".to_owned())
        } else {
            schema
                .as_ref()
                .ok()
                .and_then(|schema| column_problem(&column, schema))
        };
        match problem {
            Some(problem) => lost.push(format!(
                "column {:?} at {}: {problem}",
                column.name, column.json_path
            )),
            None => columns.push(column),
        }
    }
    version.columns = columns;
    version.selectable.retain(|path| {
        let is_fit = at(named, path).is_some_and(|ty| match ty {
            Type::Plain(name) => matches!(*name, "String" | "bool" | "i32" | "i64" | "Time"),
            Type::Named(id) => matches!(named.types[*id].shape.body, Body::Enum(_)),
            Type::List(_) | Type::Map(_) | Type::Boxed(_) | Type::Again(_) => false,
        });
        if !is_fit {
            lost.push(format!(
                "selectable field {path}: the types have no such text, integer or boolean"
            ));
        }
        is_fit
    });
    let is_number = |path: &str| matches!(at(named, path), Some(Type::Plain("i32" | "i64")));
    let is_fit = version.scale.as_ref().is_none_or(|scale| {
        let is_text = |path: &String| at(named, path) == Some(&Type::Plain("String"));
        scale.spec.starts_with(".spec.")
            && is_number(&scale.spec)
            && scale.status.starts_with(".status.")
            && is_number(&scale.status)
            && scale.selector.as_ref().is_none_or(is_text)
    });
    if !is_fit {
        lost.push(
            "the subresource scale: its paths lead to no integers, or its selector to no text"
                .to_owned(),
        );
        version.scale = None;
    }
    if let Some(warning) = version
        .deprecation_warning
        .as_ref()
        .filter(|_| version.is_deprecated)
    {
        lost.push(format!(
            "the text of the deprecation warning: the server writes its own, not {warning:?}"
        ));
    }
    lost
}

/// The type at a plain JSONPath.
fn at<'a>(named: &'a NamedTypes, json_path: &str) -> Option<&'a Type> {
    let mut at: Option<&Type> = None;
    for name in json_path.strip_prefix('.')?.split('.') {
        let place = match at {
            None => 0,
            Some(Type::Named(id)) => *id,
            Some(_) => return None,
        };
        let Body::Struct(fields) = &named.types[place].shape.body else {
            return None;
        };
        let field = fields.iter().find(|field| field.json == name)?;
        // Paths of attributes name the fields in Rust, as `module.rs` derives them.
        if field.name != names::field(name).0 {
            return None;
        }
        at = Some(&field.ty);
    }
    at
}

/// The types of columns.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// Why a column cannot be said.
fn column_problem(column: &Column, schema: &Schema) -> Option<String> {
    // It is the only text of a column that is written without quotes.
    if !COLUMN_TYPES.contains(&&*column.column_type) {
        return Some(format!(
            "the type {:?} is none of {}",
            column.column_type,
            COLUMN_TYPES.join(", ")
        ));
    }
    let text = format!(
        "#[resource(group = \"a.b\", version = \"v1\", namespaced, {})] struct K {{ metadata: ObjectMeta }}",
        module::column(column)
    );
    let item = match syn::parse_str(&text) {
        Ok(item) => item,
        Err(error) => return Some(error.to_string()),
    };
    let mut diagnostics = Diagnostics::default();
    let kind = parse_kind(&item, &mut diagnostics);
    if let Some(error) = diagnostics.errors().first() {
        return Some(error.message.clone());
    }
    let kind = kind?;
    let is_known = match &kind.columns.first()?.source {
        ColumnSource::Field(FieldRef::Json(text)) => schema.has_path(&JsonPath::new(
            text.strip_prefix('.').unwrap_or(text).split('.'),
        )),
        ColumnSource::Query(found) => query_of(found).is_none_or(|query| schema.has_query(&query)),
        ColumnSource::Field(FieldRef::Typed(_)) | ColumnSource::With(_) => true,
    };
    (!is_known && !column.json_path.starts_with(".metadata."))
        .then(|| "the schema has nothing there".to_owned())
}

fn query_of(found: &Query) -> Option<JsonQuery> {
    let mut out = JsonQuery::new(JsonPath::new(found.start.iter().map(String::as_str)));
    for step in &found.steps {
        out = out.then(match step {
            QueryStep::Field(name) => query::QueryStep::Field(name.clone()),
            QueryStep::Item(number) => query::QueryStep::Item(*number),
            QueryStep::Every => query::QueryStep::Items,
            QueryStep::Where { path, test } => {
                let path = JsonPath::new(path.iter().map(String::as_str));
                query::QueryStep::Where(match test {
                    None => QueryFilter::exists(path),
                    Some((Comparison::Equal, literal)) => {
                        QueryFilter::compares(path, query::Comparison::Equal, value_of(literal))
                    }
                    // Which values pass does not matter here.
                    Some((_, literal)) => {
                        QueryFilter::compares(path, query::Comparison::NotEqual, value_of(literal))
                    }
                })
            }
        });
    }
    Some(out)
}

fn value_of(literal: &Literal) -> Value {
    match literal {
        Literal::Text(text) => Value::from(&**text),
        Literal::Integer(number) => Value::from(*number),
        Literal::Float(number) => Value::from(*number),
        Literal::Bool(value) => Value::from(*value),
    }
}
