//! Structural schemas, which are a crate of their own, `apiloom-schema`.

pub use apiloom_schema::{
    CrdSchema, DefaultsTooLarge, Metadata, Schema, SchemaErrors, conceal, conceal_steps,
    merge_difference,
};
#[cfg(feature = "schema")]
pub use apiloom_schema::{Digests, StoredSchema, has_format, plain_text, structural};
