//! The expansions of annotated types: definitions, JSON form, schema keywords, hooks, conversion.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "test types")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

#[path = "macros/bytes.rs"]
mod bytes;
#[path = "macros/cel.rs"]
mod cel;
#[path = "macros/conversion.rs"]
mod conversion;
#[path = "macros/crate_path.rs"]
mod crate_path;
#[path = "macros/definition.rs"]
mod definition;
#[path = "macros/documentation.rs"]
mod documentation;
#[path = "macros/enforced.rs"]
mod enforced;
#[path = "macros/further.rs"]
mod further;
#[path = "macros/hooks.rs"]
mod hooks;
#[path = "macros/ill_typed.rs"]
mod ill_typed;
#[path = "macros/json.rs"]
mod json;
#[path = "macros/keywords.rs"]
mod keywords;
#[path = "macros/newtypes.rs"]
mod newtypes;
#[path = "macros/protobuf.rs"]
mod protobuf;
#[path = "macros/records.rs"]
mod records;
#[path = "macros/recursion.rs"]
mod recursion;
#[path = "macros/served.rs"]
mod served;
#[path = "macros/wardle.rs"]
mod wardle;
