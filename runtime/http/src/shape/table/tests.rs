//! Cells and columns of kinds with and without declared columns.

use apiloom_meta::codec::Encoder;
use apiloom_meta::query::{Comparison, JsonQuery, QueryFilter, QueryStep};
use serde_json::json;

use super::*;
use crate::shape::format::{JSON, Writer as _};

const NOW: i64 = 1_700_000_000;

fn column(name: &'static str, column_type: ColumnType, path: &str) -> Column {
    Column {
        name: name.into(),
        column_type,
        format: "".into(),
        priority: 0,
        description: "".into(),
        source: CellSource::Path(JsonPath::parse(path).expect("a path")),
    }
}

fn check(columns: &[Column], value: Value, expected: &Value) {
    let json = Json::new(Encoder::json(&value).to_vec().into());
    let row = Row {
        columns,
        frame: Frame::around(columns),
        finder: &finder(columns),
        now: NOW,
    };
    let show = |out: &mut dyn Sink| {
        out.begin_list();
        row.write(&json, out);
        out.end_list();
    };
    let cells: Value = serde_json::from_slice(&JSON.document(&show, 0)).expect("JSON");
    assert_eq!(&cells, expected);
}

fn names(columns: &[Column]) -> Vec<String> {
    definitions(columns, Frame::around(columns))
        .iter()
        .map(|definition| definition.name.to_owned())
        .collect()
}

#[test]
fn declared_columns_stand_between_name_and_age() {
    let columns = [column("Type", ColumnType::String, ".spec.type")];
    assert_eq!(names(&columns), ["Name", "Type", "Age"]);
    let value = json!({"metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:08:20Z"}, "spec": {"type": "t"}});
    check(&columns, value, &json!(["a", "t", "5m"]));
}

#[test]
fn a_declared_age_takes_the_place_of_ours() {
    let columns = [column("AGE", ColumnType::Date, ".spec.since")];
    assert_eq!(names(&columns), ["Name", "AGE"]);
    check(
        &columns,
        json!({"metadata": {"name": "a"}, "spec": {"since": "2023-11-14T22:13:19Z"}}),
        &json!(["a", "1s"]),
    );
}

#[test]
fn a_kind_without_columns_shows_name_and_creation() {
    assert_eq!(names(&[]), ["Name", "Created At"]);
    let value = json!({"metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:08:20Z"}});
    check(&[], value, &json!(["a", "2023-11-14T22:08:20Z"]));
}

#[test]
fn missing_values_are_null_and_a_missing_age_is_unknown() {
    let columns = [
        column("T", ColumnType::String, ".spec.t"),
        column("D", ColumnType::Date, ".spec.d"),
    ];
    check(&columns, json!({}), &json!(["", null, null, "<unknown>"]));
    check(
        &columns,
        json!({"spec": {"t": null, "d": "never"}}),
        &json!(["", "<no value>", "<invalid>", "<unknown>"]),
    );
}

#[test]
fn cells_have_the_type_of_their_column() {
    let cells = |column_type, value: Value, expected: Value| {
        let columns = [column("C", column_type, ".c")];
        check(
            &columns,
            json!({"c": value}),
            &json!(["", expected, "<unknown>"]),
        );
    };
    cells(ColumnType::String, json!({"a": 1}), json!("{\"a\":1}"));
    cells(ColumnType::String, json!(5), json!("5"));
    cells(ColumnType::Integer, json!(5.7), json!(5));
    cells(ColumnType::Integer, json!("x"), Value::Null);
    cells(ColumnType::Integer, json!({"a": 1}), Value::Null);
    cells(ColumnType::Number, json!(5.5), json!(5.5));
    cells(ColumnType::Number, json!(5), json!(5));
    cells(ColumnType::Date, json!(5), Value::Null);
    cells(ColumnType::Date, json!([""]), Value::Null);
    cells(ColumnType::Date, json!(""), json!("<unknown>"));
    cells(ColumnType::Boolean, json!(true), json!(true));
    cells(ColumnType::Boolean, json!("true"), Value::Null);
}

#[test]
fn the_texts_of_a_row_have_a_bound_together() {
    let large = json!({"a": "x".repeat(MAX_ROW_BYTES / 2 - 8)});
    let text = large.to_string();
    let query = JsonQuery::new(JsonPath::new(["spec"]));
    let columns = [
        column("1", ColumnType::String, ".spec"),
        column("2", ColumnType::String, ".spec"),
        column("3", ColumnType::String, ".short"),
        column("4", ColumnType::Integer, ".number"),
        column("5", ColumnType::String, ".missing"),
        Column {
            source: CellSource::Query(query),
            ..column("6", ColumnType::String, "x")
        },
        column("7", ColumnType::Date, ".since"),
    ];
    let value = json!({"spec": large, "short": "a", "number": 1, "since": "2023-11-14T22:13:19Z"});
    assert_eq!(text.len(), MAX_ROW_BYTES / 2);
    let expected = json!([
        "",
        text,
        text,
        TOO_LONG,
        1,
        null,
        TOO_LONG,
        "1s",
        "<unknown>"
    ]);
    check(&columns, value, &expected);
}

#[test]
fn computed_cells_come_from_the_whole_object() {
    fn labels(object: &Value) -> Result<Cell, String> {
        object
            .pointer("/metadata/name")
            .cloned()
            .ok_or_else(|| "nameless".to_owned())
    }
    let columns = [Column {
        source: CellSource::With(labels),
        ..column("L", ColumnType::String, "x")
    }];
    check(
        &columns,
        json!({"metadata": {"name": "a"}}),
        &json!(["a", "a", "<unknown>"]),
    );
    check(&columns, json!({}), &json!(["", null, "<unknown>"]));
}

#[test]
fn a_column_definition_has_all_five_keys() {
    let columns = [column("T", ColumnType::Integer, "x")];
    let json = JSON.document(
        &|out| definitions(&columns, Frame::around(&columns))[1].write(out),
        0,
    );
    assert_eq!(
        json,
        "{\"name\":\"T\",\"type\":\"integer\",\"format\":\"\",\"description\":\"\",\"priority\":0}\n"
    );
}

#[test]
fn a_query_shows_one_value_of_a_list() {
    let of_condition = |name, field: &str, column_type| {
        let is_it = QueryFilter::compares(JsonPath::new(["type"]), Comparison::Equal, "Ready");
        let query = JsonQuery::new(JsonPath::new(["status", "conditions"]))
            .then(QueryStep::Where(is_it))
            .then(QueryStep::Field(field.to_owned()));
        Column {
            source: CellSource::Query(query),
            ..column(name, column_type, "x")
        }
    };
    let columns = [
        of_condition("Ready", "status", ColumnType::String),
        column("Type", ColumnType::String, ".spec.type"),
        of_condition("Since", "lastTransitionTime", ColumnType::Date),
    ];
    let status = json!({"conditions": [
        {"type": "Synced", "status": "True"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "2023-11-14T22:08:20Z"},
    ]});
    check(
        &columns,
        json!({"metadata": {"name": "a"}, "spec": {"type": "t"}, "status": status}),
        &json!(["a", "False", "t", "5m", "<unknown>"]),
    );
    let none = json!(["a", null, "t", null, "<unknown>"]);
    for status in [
        json!({}),
        json!({"conditions": []}),
        json!({"conditions": [{"status": "True"}]}),
    ] {
        let object = json!({"metadata": {"name": "a"}, "spec": {"type": "t"}, "status": status});
        check(&columns, object, &none);
    }
}

#[test]
fn a_custom_resource_has_a_name_beside_a_column_of_that_name() {
    let columns = [column("Name", ColumnType::String, ".spec.name")];
    assert_eq!(names(&columns), ["Name"]);
    let frame = Frame {
        has_name: true,
        last: LastColumn::Declared,
    };
    let names: Vec<_> = definitions(&columns, frame)
        .iter()
        .map(|it| it.name.to_owned())
        .collect();
    assert_eq!(names, ["Name", "Name"]);
}
