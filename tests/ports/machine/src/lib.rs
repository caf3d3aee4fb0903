//! Machines, whose subresources have code of their own: a restart, the power, a token signed by a key of the program, and
//! streams: the log, the console, and a proxy to its HTTP server.

#[rustfmt::skip]
pub mod generated;
pub mod v1;

use apiloom::prelude::*;

apiloom::group! { name = "machine.example.com", versions = [v1] }

/// Gives the handlers what they do not have by default.
pub fn configure(builder: Builder) -> Builder {
    builder.subresource::<v1::Machine>(v1::Issuer::new("the key of this program"))
}
