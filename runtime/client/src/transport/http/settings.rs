//! Limits of the connections to one server.

use std::time::Duration;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) connect_timeout: Duration,
    pub(super) max_streams: usize,
    pub(super) max_connections: usize,
    pub(super) is_http1_only: bool,
}
