//! The rules of schemas, `x-kubernetes-validations`, in CEL: parsed, checked with the types of the schema, and evaluated
//! over documents without a copy of them.
//!
//! ```
//! use apiloom_cel::compile;
//! use apiloom_schema::field::FieldPath;
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
//!     "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min is above max"}],
//!     "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}}}});
//! let compiled = compile(&schema, &FieldPath::root());
//! assert!(compiled.errors.is_empty());
//! let rules = compiled.rules.expect("the schema has a rule");
//! assert!(rules.validate(&json!({"spec": {"min": 1, "max": 2}}), None).is_empty());
//! let errors = rules.validate(&json!({"spec": {"min": 3, "max": 2}}), None);
//! assert_eq!(errors[0].to_string(), "spec: Invalid value: min is above max");
//! ```
//!
//! # Why not a crate that exists
//!
//! A rule is the text of a tenant, so it must be bounded in time and memory. The crate `cel` (0.15.0, and 0.13 below
//! `kube-cel` 0.8) has neither a count of costs while a rule runs nor a hook to add one. Measured on one core: eight
//! nested `all` over lists of ten (260 bytes) ran longer than 20 s; 28 nested `[s].map(x, x + x)` (692 bytes) took 14 s and
//! 7.9 GB; `1+1+..` of 200 KB ended the process by an overflow of its stack. `kube-cel` estimates costs, but only as
//! advice. The same expressions are tests here (`src/tests/hostile.rs`).
//!
//! # Bounds
//!
//! - An expression has at most 100,000 characters and 250 levels.
//! - Every step adds to the cost before its result is made: as in kube-apiserver, at most 1,000,000 for an expression
//!   ([`MAX_CALL_COST`]) and 10,000,000 for an object ([`MAX_OBJECT_COST`]). Where its costs do not follow the work, as for
//!   comparisons of values that share parts or for the result of `replace`, the work is added.
//! - Patterns match in linear time, and have a maximum size. Those that are not literals cost extra.
//! - Lists that are added are not copied.
//!
//! # Differences from kube-apiserver
//!
//! - There are no literals of messages, such as `google.protobuf.Int32Value{value: 1}`.
//! - Of several errors of syntax the first is reported.

mod ast;
mod check;
mod declare;
mod equality;
mod estimate;
mod expression;
mod field_path;
mod fold;
mod functions;
mod issue;
mod lexer;
mod library;
mod literal_format;
mod meter;
mod names;
mod operator;
mod parser;
mod patterns;
mod program;
mod rules;
mod run;
mod schema;
mod scope;
mod stop;
mod types;
mod value;
mod walk;

pub use self::declare::{Compilation, compile};
pub use self::expression::{Condition, Expression, Failure, Variables};
pub use self::rules::{
    MAX_CALL_COST, MAX_OBJECT_COST, Rules, Violations, blocks_rules, not_checked,
};

#[cfg(test)]
mod tests;
