//! Connections that outlive the head of their response: WebSockets, connections that switch to another protocol, and the signal that ends them.
//! They carry bytes and messages, and know no form of objects.

pub(super) mod extended_connect;
pub(super) mod shutdown_signal;
pub(super) mod socket;
pub(super) mod switched;
pub(super) mod websocket;
