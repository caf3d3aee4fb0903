//! The kinds that every server has, a module for each group.

pub use apiloom_apis::core;
