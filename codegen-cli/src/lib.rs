//! The generator behind the command `apiloom`: source, model, view, template, file.
//!
//! [`execute`] is the whole command; [`generate`](generate::generate) is its pure core.
//!
//! # Invariants
//!
//! - Generated code has no logic. It is names and registrations, committed, byte-stable and verified by `--check`.
//! - No crate of the runtime depends on kube-rs. What is generated for it is a macro call for each kind
//!   (`meta/src/codegen/kube.rs`), which names the crate `kube` of the user's package, in the release that this has.
//! - No crate of a registry is compiled twice from the clone to a first server: the command and a server enable the same
//!   features, and packages outside of the workspace are built in its folder (`codegen-cli/src/shared.rs`). What was built there
//!   is given to the package's own folder (`handover.rs`), where cargo finds it, as packages have the workspace's profiles and
//!   environment (`cargo_config.rs`). Cargo itself cannot build in the shared folder: it takes packages of one name for each other,
//!   and `cargo clean` would delete it.
//! - An expansion lists the fields of a struct as data (`macros/src/expand/record.rs`); what serializes, deserializes and
//!   describes them is written once, in `meta/src/codegen/record.rs` and `struct_schema.rs`. Structs with attributes of serde
//!   or schemars of their own keep the derives.
//! - Only the generator's `render.rs` uses tera. Macros never guess a type from tokens: they emit a bound and rustc decides.

mod build;
mod cargo;
mod cargo_config;
mod checks;
mod cli;
mod client_crate;
mod collect;
mod configurations;
mod console;
mod driver;
mod dump;
mod flags;
pub mod generate;
mod handover;
mod import;
mod markdown;
mod migrate;
pub mod model;
mod new;
mod numbers;
mod outputs;
mod package;
mod problem;
mod protoc;
mod reference;
mod render;
mod run;
mod serve;
mod settings;
mod shared;
mod source;
mod source_model;
mod store;
mod toml;
mod view;

pub use cli::execute;
pub use console::Console;
pub use import::{
    ImportedKind, definition_differences, imported_kind, imported_kinds, openapi_differences,
};
pub use render::RenderError;
