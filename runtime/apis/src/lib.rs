//! The kinds that every server has, declared with the macros as users declare theirs; one module for each group.
//!
//! This is their data. Their rules (strategies, admission) are code of the server.

#[rustfmt::skip]
pub mod generated;

pub mod core;
