//! The model that macros and generator share: from syn to plain data.
//!
//! Both front ends call the same parse functions, so a macro and the generator cannot disagree about a name, a default
//! or an error. Data holds strings, numbers and flags; the only tokens in it are [`Code`], the user's own expressions,
//! which the macros put back where they came from, and the spans that diagnostics point at.
//!
//! ```
//! use apiloom_model::{Diagnostics, parse_kind};
//!
//! let item: syn::DeriveInput = syn::parse_str(
//!     r#"#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
//!        pub struct Policy { pub metadata: ObjectMeta }"#,
//! )?;
//! let mut diagnostics = Diagnostics::default();
//! let kind = parse_kind(&item, &mut diagnostics).expect("the item is well-formed");
//! assert_eq!(kind.plural, "policies");
//! # Ok::<(), syn::Error>(())
//! ```

pub mod api;
mod args;
mod crate_path;
pub mod diagnostics;
mod formats;
mod group;
mod item;
mod keys;
pub mod kind;
pub mod markers;
pub mod names;
mod source;
mod values;
mod words;

pub use api::{ApiEnum, ApiNewtype, ApiStruct, ApiType, Field, Rules, Variant, parse_api};
pub use crate_path::{crate_path_of_group, crate_path_of_item};
pub use diagnostics::{Diagnostic, DiagnosticId, Diagnostics};
pub use group::{Group, parse_group};
pub use item::is_attribute;
pub use kind::{
    Column, ColumnSource, FieldRef, Kind, Lifecycle, Scope, Verb, parse_derived_kind, parse_kind,
};
pub use source::{Code, Name, SourceSpan, SpannedValue};
