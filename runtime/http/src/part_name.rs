//! The names under which a server lists who brought its filters, routes, kinds and checks.

/// The name of a part of a server.
pub type PartName = &'static str;

/// The part that is the server itself.
pub const HOST: PartName = "host";

/// The part that is the program of the server: what it gives to the builder without a part of its own.
pub const PROGRAM: PartName = "program";
