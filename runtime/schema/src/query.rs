//! The JSONPath of printer columns: what client-go's package `jsonpath` reads in braces, and the values that it finds.

mod evaluate;
mod json_query;
mod node;
mod parse;

pub use apiloom_vocabulary::Comparison;

pub use self::evaluate::QueryValue;
pub use self::json_query::{JsonQuery, QueryFilter, QueryStep};
pub(crate) use self::node::Node;
pub use self::parse::QueryError;

#[cfg(test)]
mod tests;
