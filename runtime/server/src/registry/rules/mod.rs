//! Rules for writes: strategies of kinds, handlers, admission plugins.

pub(super) mod admission;
pub(super) mod built_in;
pub(super) mod definition_room;
pub(super) mod handler;
pub(super) mod namespace;
pub(super) mod strategy;
