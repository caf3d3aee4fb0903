//! Rules for writes: strategies of kinds, admission plugins.

pub(super) mod admission;
pub(super) mod built_in;
pub(super) mod definition_room;
pub(super) mod namespace;
pub(super) mod strategy;
