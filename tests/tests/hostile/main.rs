//! Hostile clients against a wardle-server process: while they attack, its memory stays bounded and another user is
//! served almost as fast as on an idle server.
//!
//! `arena.rs` has the measurements and limits, `user.rs` the other user, `wire.rs` and `frames.rs` of the crate the attackers'
//! protocols. The other modules are the attacks, by family.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on panics and says where; the measured figures are printed"
)]

mod arena;
mod process;
mod user;
mod wire;

mod bodies;
mod connections;
mod definitions;
mod documents;
mod interrupts;
mod memory;
mod objects;
mod readers;
mod selectors;
mod soak;
mod stops;
mod stored_work;
