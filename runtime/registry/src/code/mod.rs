//! The code of a program in place of a store, typed: what it implements to read and to write the objects of a kind.

pub(super) mod handler;
pub(super) mod reader;
pub(super) mod writer;
