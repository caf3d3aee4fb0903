//! From options to a listening server: certificates, kubeconfig, listener, shutdown.

/// An unfinished [`Server`].
pub struct Builder {}

/// A server that has everything but its listener.
pub struct Server {}
