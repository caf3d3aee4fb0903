//! Code of a program in place of a store: what answers creates of kinds without one.

pub(super) mod handler;
