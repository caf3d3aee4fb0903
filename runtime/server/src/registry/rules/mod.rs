//! What decides whether an object may be written: a kind's strategy, validation and admission plugins.

pub(super) mod admission;
pub(super) mod handler;
pub(super) mod namespace;
pub(super) mod strategy;
