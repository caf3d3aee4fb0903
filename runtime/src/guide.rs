//! Guide to apiloom, with examples that are run as tests: this module has no code.
//!
//! From a type to a controller with its test, in the order in which one needs it:
//!
//! 1. [`kinds`]: from a Rust type to a server
//! 2. [`clients`]: reading and writing objects
//! 3. [`caches`]: copies of objects that follow the server
//! 4. [`controllers`]: programs that bring the world in line with objects
//! 5. [`testing`]: their tests
//!
//! The pages 2 to 5 are in the documentation with the features `client`, `server` and `testing`. What one writes beside the types of a server:
//! [`conversion`] between versions, and with the feature `server` rules of a kind (`strategy`), kinds without a store
//! (`code`), `admission`, users and permissions (`auth`), Kubernetes' own kinds (`built_in`), and extensions of a server with
//! filters, paths, controllers and flags (`parts`). And around it: the package of a server ([`packages`]) and a server in use
//! ([`operation`]).

#[doc = include_str!("docs/kinds.md")]
pub mod kinds {}

#[cfg_attr(all(feature = "client", feature = "server"), doc = include_str!("docs/clients.md"))]
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    doc = "This page needs the features `client` and `server`."
)]
pub mod clients {}

#[cfg_attr(all(feature = "client", feature = "server"), doc = include_str!("docs/caches.md"))]
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    doc = "This page needs the features `client` and `server`."
)]
pub mod caches {}

#[cfg_attr(all(feature = "client", feature = "server"), doc = include_str!("docs/controllers.md"))]
#[cfg_attr(all(feature = "client", feature = "server"), doc = include_str!("docs/controller.md"))]
#[cfg_attr(
    all(feature = "client", feature = "server"),
    doc = "\nNext: [its test](crate::guide::testing)."
)]
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    doc = "This page needs the features `client` and `server`."
)]
pub mod controllers {}

#[cfg_attr(feature = "testing", doc = include_str!("docs/testing.md"))]
#[cfg_attr(
    not(feature = "testing"),
    doc = "This page needs the feature `testing`."
)]
pub mod testing {}

#[doc = include_str!("docs/conversion.md")]
pub mod conversion {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/strategy.md")]
pub mod strategy {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/code.md")]
pub mod code {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/admission.md")]
pub mod admission {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/auth.md")]
pub mod auth {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/built_in.md")]
pub mod built_in {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/parts.md")]
pub mod parts {}

#[doc = include_str!("docs/packages.md")]
pub mod packages {}

#[doc = include_str!("docs/operation.md")]
pub mod operation {}
