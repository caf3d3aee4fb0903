//! The generator behind the command `apiloom`: source to model to view to template to file.
//!
//! [`execute`] is the whole command; [`generate`](generate::generate) is its pure core.

mod cargo;
mod checks;
mod cli;
mod collect;
mod driver;
mod dump;
pub mod generate;
pub mod model;
mod outputs;
mod package;
mod problem;
mod protoc;
mod render;
mod run;
mod shared;
mod source;
mod source_model;
mod store;
mod view;

pub use cli::{Console, execute};
pub use render::RenderError;
