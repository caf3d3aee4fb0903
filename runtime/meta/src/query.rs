//! Paths from the root of an object to values in its lists, for printer columns.

mod parse;

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::number;
use crate::path::JsonPath;

pub use self::parse::QueryError;

/// The JSONPath of a printer column, such as `.status.conditions[?(@.type=="Ready")].status`: field names, then steps
/// that may select list items.
///
/// ```
/// use apiloom_meta::query::{Comparison, JsonQuery, QueryFilter, QueryStep};
/// use apiloom_meta::JsonPath;
/// use serde_json::json;
/// let is_ready = QueryFilter::compares(JsonPath::new(["type"]), Comparison::Equal, "Ready");
/// let query = JsonQuery::new(JsonPath::new(["conditions"]))
///     .then(QueryStep::Where(is_ready))
///     .then(QueryStep::Field("status".to_owned()));
/// assert_eq!(query.to_string(), r#".conditions[?(@.type=="Ready")].status"#);
/// let conditions = json!([{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "False"}]);
/// assert_eq!(query.first_below(&conditions), Some(&json!("False")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonQuery {
    start: JsonPath,
    steps: Vec<QueryStep>,
}

/// A step of a [`JsonQuery`] after its field names.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryStep {
    /// `.name` or `['name']`: a field of an object.
    Field(String),
    /// `[0]`: an item of a list; a negative index counts from the end.
    Item(i64),
    /// `[*]`: all items of a list or values of an object.
    Every,
    /// `[?(..)]`: the items of a list that match a filter.
    Where(QueryFilter),
}

/// A filter for list items.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryFilter {
    path: JsonPath,
    test: Option<(Comparison, Value)>,
}

/// Comparison operator of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the operators")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonQuery {
    /// A query that begins with these fields.
    pub fn new(start: JsonPath) -> Self {
        Self {
            start,
            steps: Vec::new(),
        }
    }

    /// Appends a step.
    #[must_use]
    pub fn then(mut self, step: QueryStep) -> Self {
        self.steps.push(step);
        self
    }

    /// The field names at the beginning.
    pub fn start(&self) -> &JsonPath {
        &self.start
    }

    /// The steps after the field names.
    pub fn steps(&self) -> &[QueryStep] {
        &self.steps
    }

    /// The first result for a whole object.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.first_below(self.start.get(object)?)
    }

    /// The first result of the steps for the value at the start. A printer column shows one value.
    pub fn first_below<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        first(value, &self.steps)
    }
}

fn first<'a>(value: &'a Value, steps: &[QueryStep]) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    let items = || value.as_array().into_iter().flatten();
    match step {
        QueryStep::Field(name) => first(value.get(name)?, rest),
        QueryStep::Item(number) => {
            let items = value.as_array()?;
            let from_end = usize::try_from(number.unsigned_abs()).ok()?;
            let at = if *number < 0 {
                items.len().checked_sub(from_end)?
            } else {
                from_end
            };
            first(items.get(at)?, rest)
        }
        QueryStep::Every => {
            let values = value
                .as_object()
                .into_iter()
                .flat_map(|fields| fields.values());
            items().chain(values).find_map(|value| first(value, rest))
        }
        QueryStep::Where(filter) => items()
            .filter(|item| filter.passes(item))
            .find_map(|item| first(item, rest)),
    }
}

impl QueryFilter {
    /// A filter for items that have a value at a path.
    pub fn exists(path: JsonPath) -> Self {
        Self { path, test: None }
    }

    /// A filter for items whose value at a path compares with another as given. An empty path is the item itself.
    pub fn compares(path: JsonPath, comparison: Comparison, other: impl Into<Value>) -> Self {
        Self {
            path,
            test: Some((comparison, other.into())),
        }
    }

    /// The path, relative to the item.
    pub fn path(&self) -> &JsonPath {
        &self.path
    }

    /// Whether an item matches; without a value at the path it does not, as in Kubernetes.
    fn passes(&self, item: &Value) -> bool {
        match (self.path.get(item), &self.test) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(value), Some((comparison, other))) => comparison.holds(value, other),
        }
    }
}

impl Comparison {
    /// Whether the comparison is true; for values of different types it is not.
    fn holds(self, value: &Value, other: &Value) -> bool {
        let order = match (value, other) {
            (Value::Number(value), Value::Number(other)) => number::compare(value, other),
            (Value::String(value), Value::String(other)) => value.cmp(other),
            (Value::Bool(value), Value::Bool(other)) => value.cmp(other),
            _ => return false,
        };
        match self {
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl fmt::Display for JsonQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.start.fmt(f)?;
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for QueryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match self {
            Self::Field(name) if !name.is_empty() && name.chars().all(plain) => {
                write!(f, ".{name}")
            }
            Self::Field(name) => {
                f.write_str("['")?;
                for c in name.chars() {
                    // Kubernetes ends a name here in brackets, too.
                    if ". \t\n[]$@{}".contains(c) {
                        f.write_str("\\")?;
                    }
                    write!(f, "{c}")?;
                }
                f.write_str("']")
            }
            Self::Item(number) => write!(f, "[{number}]"),
            Self::Every => f.write_str("[*]"),
            Self::Where(filter) => write!(f, "[?({filter})]"),
        }
    }
}

impl fmt::Display for QueryFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("@")?;
        if !self.path.names().is_empty() {
            self.path.fmt(f)?;
        }
        match &self.test {
            None => Ok(()),
            // JSONPath has no escape for quotes, so the other kind of quotes is used.
            Some((comparison, Value::String(text))) if text.contains('"') => {
                write!(f, "{}'{text}'", comparison.as_str())
            }
            Some((comparison, Value::String(text))) => {
                write!(f, "{}\"{text}\"", comparison.as_str())
            }
            Some((comparison, value)) => write!(f, "{}{value}", comparison.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(step: QueryStep) -> JsonQuery {
        JsonQuery::new(JsonPath::new(["l"])).then(step)
    }

    #[track_caller]
    fn check(query: &JsonQuery, value: Value, expected: Option<Value>) {
        let document = json!({ "l": value });
        let start = query.start().get(&document);
        let found = start.and_then(|value| query.first_below(value)).cloned();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn steps_choose_among_items() {
        let list = || json!(["a", "b", "c"]);
        check(&query(QueryStep::Item(1)), list(), Some(json!("b")));
        check(&query(QueryStep::Item(-1)), list(), Some(json!("c")));
        check(&query(QueryStep::Item(3)), list(), None);
        check(&query(QueryStep::Item(-4)), list(), None);
        check(&query(QueryStep::Item(i64::MIN)), list(), None);
        check(&query(QueryStep::Item(0)), json!({"0": 1}), None);
        check(&query(QueryStep::Every), list(), Some(json!("a")));
        check(&query(QueryStep::Every), json!({"k": 1}), Some(json!(1)));
        check(&query(QueryStep::Every), json!([]), None);
        let name = query(QueryStep::Every).then(QueryStep::Field("n".into()));
        check(&name, json!([{"m": 1}, {"n": 2}]), Some(json!(2)));
        check(
            &query(QueryStep::Field("x.io/y".into())),
            json!({"x.io/y": "v"}),
            Some(json!("v")),
        );
    }

    #[test]
    fn filters_compare_values_of_one_type() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let first_that = |comparison, other: Value| {
            let filter = QueryFilter::compares(JsonPath::new(["n"]), comparison, other);
            query(QueryStep::Where(filter)).then(QueryStep::Field("is".into()))
        };
        let items = || json!([{"is": 0}, {"n": 1, "is": 1}, {"n": 2.5, "is": 2}, {"n": "x", "is": 3}, {"n": true, "is": 4}]);
        for (comparison, other, expected) in [
            (Equal, json!(2.5), Some(2)),
            (Equal, json!("x"), Some(3)),
            (Equal, json!(true), Some(4)),
            (Equal, json!("y"), None),
            (NotEqual, json!(1), Some(2)),
            (NotEqual, json!("x"), None),
            (Less, json!(2), Some(1)),
            (LessOrEqual, json!(1), Some(1)),
            (Greater, json!(1), Some(2)),
            (GreaterOrEqual, json!(2.5), Some(2)),
            (Greater, json!(3), None),
        ] {
            check(
                &first_that(comparison, other),
                items(),
                expected.map(Value::from),
            );
        }
        let has = QueryFilter::exists(JsonPath::new(["n"]));
        check(
            &query(QueryStep::Where(has)),
            items(),
            Some(json!({"n": 1, "is": 1})),
        );
        let itself = QueryFilter::compares(JsonPath::new([""; 0]), Equal, "b");
        check(
            &query(QueryStep::Where(itself.clone())),
            json!(["a", "b"]),
            Some(json!("b")),
        );
        check(&query(QueryStep::Where(itself)), json!("b"), None);
    }

    #[test]
    fn queries_are_printed_as_jsonpath() {
        let filter = |path: &[&str], other: Value| {
            let path = JsonPath::new(path.iter().copied());
            QueryStep::Where(QueryFilter::compares(path, Comparison::NotEqual, other))
        };
        for (step, expected) in [
            (QueryStep::Field("a-b".into()), ".l.a-b"),
            (QueryStep::Field("x.io/y".into()), r".l['x\.io/y']"),
            (QueryStep::Item(-1), ".l[-1]"),
            (QueryStep::Every, ".l[*]"),
            (filter(&["a", "b"], json!("c")), r#".l[?(@.a.b!="c")]"#),
            (filter(&[], json!(1.5)), ".l[?(@!=1.5)]"),
            (filter(&["a"], json!("\"")), ".l[?(@.a!='\"')]"),
            (
                QueryStep::Where(QueryFilter::exists(JsonPath::new(["a"]))),
                ".l[?(@.a)]",
            ),
        ] {
            assert_eq!(query(step).to_string(), expected);
        }
    }
}
