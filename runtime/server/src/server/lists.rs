//! What `print-chain` and `print-routes` print.

use apiloom_http::ListedRoute;
use serde::Serialize;
use serde_json::{Value, json};

use super::chain::ChainFilter;
use crate::options::ListFormat;

/// The text of a chain of filters.
pub(super) fn chain(filters: &[ChainFilter], format: ListFormat) -> String {
    match format {
        ListFormat::Json => document("filters", filters),
        ListFormat::Text => {
            let rows = filters
                .iter()
                .map(|filter| [&*filter.name, filter.part, &*filter.meaning]);
            columns(["FILTER", "PART", "MEANING"], rows)
        }
    }
}

/// The text of routes.
pub(super) fn routes(routes: &[ListedRoute], format: ListFormat) -> String {
    if format == ListFormat::Json {
        return document("routes", routes);
    }
    let verbs: Vec<String> = routes.iter().map(|route| route.verbs.join(",")).collect();
    let rows = routes.iter().zip(&verbs);
    let rows = rows.map(|(route, verbs)| [route.source, route.part, &*route.path, &**verbs]);
    columns(["SOURCE", "PART", "PATH", "VERBS"], rows)
}

/// A document with a list, as indented JSON.
fn document<T: Serialize>(key: &str, list: &[T]) -> String {
    let list = serde_json::to_value(list).unwrap_or(Value::Null);
    let mut document = json!({});
    document[key] = list;
    format!("{document:#}\n")
}

/// Rows in columns below a header, with three spaces between them.
fn columns<'a, const N: usize>(
    header: [&'a str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) -> String {
    let rows: Vec<[&str; N]> = std::iter::once(header).chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[&str; N]| {
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}   "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}
