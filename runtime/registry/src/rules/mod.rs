//! Rules for writes: strategies of kinds, admission plugins.

pub(super) mod admission;
pub(super) mod definition_room;
pub(super) mod strategy;
