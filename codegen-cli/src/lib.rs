//! The generator behind the command `apiloom`: source, model, view, template, file.
//!
//! [`execute`] is the whole command; [`generate`](generate::generate) is its pure core.

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
