//! A query, and how one is built of its steps.

use std::fmt;

use apiloom_vocabulary::Comparison;
use serde_json::Value;

use super::evaluate::{QueryValue, first};
use super::node::{Filter, Node, Operator, Slice, write};
use crate::path::JsonPath;

/// How many values of a document a query looks at unless told otherwise.
const MAX_VALUES: usize = 1 << 20;

/// The JSONPath of a printer column, such as `.status.conditions[?(@.type=="Ready")].status`: field names, then steps
/// that may select among the values found so far.
///
/// ```
/// use apiloom_schema::query::{Comparison, JsonQuery, QueryFilter, QueryStep};
/// use apiloom_schema::JsonPath;
/// use serde_json::json;
/// let is_ready = QueryFilter::compares(JsonPath::new(["type"]), Comparison::Equal, "Ready");
/// let query = JsonQuery::new(JsonPath::new(["conditions"]))
///     .then(QueryStep::Where(is_ready))
///     .then(QueryStep::Field("status".to_owned()));
/// assert_eq!(query.to_string(), r#".conditions[?(@.type=="Ready")].status"#);
/// let conditions = json!({"conditions": [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "False"}]});
/// assert_eq!(query.first(&conditions).unwrap().as_value(), Some(&json!("False")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonQuery {
    pub(super) start: JsonPath,
    pub(super) steps: Vec<Node>,
    /// What follows in further braces, `.a}{.b`: none of its values is shown, but an error in it leaves nothing to show.
    /// A query with any starts at the object.
    pub(super) further: Vec<Vec<Node>>,
}

/// A step of a [`JsonQuery`] after its field names.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryStep {
    /// `.name` or `['name']`: a field of an object.
    Field(String),
    /// `[0]`: an item of a list; a negative index counts from the end.
    Item(i64),
    /// `[*]`: all items of a list.
    Items,
    /// `.*`: all items of a list or values of an object.
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

impl JsonQuery {
    /// A query that begins with these fields.
    pub fn new(start: JsonPath) -> Self {
        Self {
            start,
            steps: Vec::new(),
            further: Vec::new(),
        }
    }

    /// Appends a step.
    #[must_use]
    pub fn then(mut self, step: QueryStep) -> Self {
        self.steps.push(step.into());
        self
    }

    /// The field names at the beginning.
    pub fn start(&self) -> &JsonPath {
        &self.start
    }

    /// Whether it is no more than the field names at the beginning.
    pub fn is_path(&self) -> bool {
        self.steps.is_empty() && !self.start.names().is_empty()
    }

    /// The steps after the field names.
    pub(crate) fn steps(&self) -> &[Node] {
        &self.steps
    }

    /// The first result for a whole object.
    pub fn first<'a>(&'a self, object: &'a Value) -> Option<QueryValue<'a>> {
        self.first_below(self.start.get(object), MAX_VALUES)
    }

    /// The first result of the steps for the value at the start, if there is one. A printer column shows one value. It shows none
    /// if more values than these have to be looked at for it, or if a step does not fit a value before it, as in client-go.
    pub fn first_below<'a>(
        &'a self,
        value: Option<&'a Value>,
        max_values: usize,
    ) -> Option<QueryValue<'a>> {
        let actions = std::iter::once(&self.steps).chain(&self.further);
        first(value, actions, max_values)
    }
}

impl From<QueryStep> for Node {
    fn from(step: QueryStep) -> Self {
        match step {
            QueryStep::Field(name) => Self::Field(name),
            QueryStep::Item(number) => Self::Item(number),
            QueryStep::Items => Self::Slice(Slice::default()),
            QueryStep::Every => Self::Every,
            QueryStep::Where(filter) => Self::Where(filter.into()),
        }
    }
}

impl From<QueryFilter> for Filter {
    fn from(filter: QueryFilter) -> Self {
        let names = filter.path.names().iter();
        Self {
            left: names.map(|name| Node::Field(name.clone())).collect(),
            test: filter
                .test
                .map(|(comparison, other)| (Operator::Known(comparison), vec![literal(other)])),
        }
    }
}

/// A value as a part of a query.
fn literal(value: Value) -> Node {
    match value.as_i64() {
        Some(integer) => Node::Integer(integer),
        None => Node::Literal(value),
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
}

impl fmt::Display for JsonQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start.names().is_empty() && self.steps.is_empty() {
            f.write_str("$")?;
        } else if !self.start.names().is_empty() {
            self.start.fmt(f)?;
        }
        write(&self.steps, true, f)?;
        self.further.iter().try_for_each(|steps| {
            f.write_str("}{")?;
            write(steps, false, f)
        })
    }
}
