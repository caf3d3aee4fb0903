//! The example of a storage backend, a package outside of the workspace: its own tests, built here with everything else.

#[path = "../../examples/backend/tests/conformance.rs"]
mod conformance;
#[path = "../../examples/backend/tests/server.rs"]
mod server;
