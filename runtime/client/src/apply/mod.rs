//! Apply configurations: the fields that a program sets by server-side apply, in builders where every field is optional.
//!
//! `apiloom generate` declares the builders of a package's kinds, if it has `clients = true`; the declarations expand to
//! calls of this module. A builder holds the JSON of the fields that were set and nothing else, so no field is owned by
//! accident, and what was extracted from an object is sent again as it was.
//!
//! ```no_run
//! # mod v1 {
//! #     apiloom_client::configurations! {
//! #         kind Lease(namespaced) of apiloom_kinds::coordination::v1::Lease: spec "spec": part(LeaseSpec, edit_spec);
//! #         part LeaseSpec: holder_identity "holderIdentity": text, lease_duration_seconds "leaseDurationSeconds": value(i32);
//! #     }
//! # }
//! # use apiloom_client::{Client, Error, apply::Part as _};
//! # async fn example(client: Client) -> Result<(), Error> {
//! let leases = client.namespaced("default");
//! let spec = v1::LeaseSpec::new().holder_identity("a").lease_duration_seconds(15);
//! let lease = v1::Lease::new("default", "job").labels([("app", "x")]).spec(spec);
//! let stored = leases.apply(&lease, "my-controller").force().await?;
//!
//! let mine = v1::Lease::extract(&stored, "my-controller")?;
//! let mine = mine.edit_spec(|spec| spec.holder_identity("b").unset("leaseDurationSeconds"));
//! leases.apply(&mine, "my-controller").await?;
//! # Ok(())
//! # }
//! ```
//!
//! | wanted | how |
//! |---|---|
//! | an empty list or map | give the setter an empty one: `.words([""; 0])`, `.labels([("", ""); 0])`; an empty struct: `.spec(LeaseSpec::new())` |
//! | null | `.note(None)`; only setters of fields with `nullable` take it |
//! | to give up a field | leave it out of the next apply ([`Part::unset`]): the server removes it unless another manager has it |
//! | a field that the type does not have | [`Part::set`] |
//!
//! # Inside
//!
//! - A builder (`apply` in `runtime/client`) is a map of the JSON that its setters were given, so nothing else is sent, and what
//!   was extracted is sent again as it was. `configurations!` declares builders; all that they do is in `apply/fields.rs`.
//! - The generator finds the builders of a version by following the types of fields from its kinds (`codegen-cli/src/configurations.rs`)
//!   and writes how each field is given. Types of other crates, and those with a JSON form of their own, are given whole.
//! - Which items are the same, and what a manager's `fieldsV1` means for a document, is decided by the schema of the type:
//!   `managed_fields/items.rs` and `extract.rs` in `meta`. An extraction that would lose a field is an error.

mod configuration;
mod declare;
mod extract;
mod fields;

#[doc(hidden)]
pub use apiloom_meta::OwnerReference;
#[doc(hidden)]
pub use apiloom_meta::codegen::Base64;
pub use configuration::Configuration;
#[doc(hidden)]
pub use configuration::{document, metadata_text};
#[doc(hidden)]
pub use extract::extract;
pub use extract::{ExtractError, extract_part};
pub use fields::{Fields, FromJson, Part};
#[doc(hidden)]
pub use fields::{new, set_metadata, with_texts};

/// A configuration as it is sent.
pub type Document = serde_json::Map<String, serde_json::Value>;

#[cfg(test)]
mod tests;
