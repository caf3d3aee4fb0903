//! The API server: registry (what create, update and delete mean), http (the wire), options and the server itself.
//!
//! `registry` never sees HTTP status codes or headers; `http` never sees sockets or TLS; only `options` reads the
//! environment. Library code never exits the process and never panics on input.

pub mod http;
pub mod options;
pub mod registry;
pub mod server;

pub use registry::{Admission, Lister, Strategy};
pub use server::{Builder, Server};
