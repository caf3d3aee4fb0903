//! The etcd backend over real etcd.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod backend;
mod conformance;
mod faults;
mod load;
