//! The forms of an object: decoded, stored bytes, served bytes, converted; and the kind that converts between them.
//!
//! # From a body to a response
//!
//! ```text
//! request body --decode--> Object --encode--> PreparedObject --write--> stored bytes (no resourceVersion)
//!  (http/shape/body,      (meta)                |                    |
//!   writes/decode)                              |                    | the watch cache reads the change (normalizer)
//!                                               |                    v
//!                                               +-- reused by --> CachedObject: JSON as it is served,
//!                                                 the same server      |        labels, selectable fields
//!                                                                      v
//!                                  another version: converted <-- Item: key, revision, CachedObject
//!                                               |                      |
//!                                               v                      v
//! response <-- http (encode, watch) --- Document: Converted, Encoded (EncodedObject: cached bytes), Decoded
//! ```
//!
//! A file has the name of its form.
//!
//! An object becomes one of another version by the method of its kind (`meta/src/kind/conversion.rs`), which `KindVersions`
//! has: in memory by way of the hub (`objects/kind_versions.rs`), or by a new `apiVersion` (`objects/converted.rs`: bytes with
//! another head, if the other schema would leave the rest as it is), or asynchronously (`objects/asynchronous.rs`: a batch of
//! documents is awaited and checked). A conversion prunes and applies no defaults: those of a stored object are of the version
//! that its bytes have, as in kube-apiserver. The functions whose names end in `_in` await where that is needed, and do for
//! other kinds what they did before.
//!
//! - `Object` (`meta/src/object.rs`): a decoded document; hooks, admission and patches work on it.
//! - `PreparedObject`: an object of the storage version, encoded once: its JSON with the place of the resourceVersion, and the
//!   stored bytes.
//! - stored bytes: JSON of the storage version, or the same in Protobuf with the envelope of kube-apiserver
//!   (`registry/objects/stored_value.rs`). `registry/objects/kind.rs` reads them, by their own prefix: JSON, prune, default,
//!   convert. Between them and the store is the cipher of the kind (`registry/objects/encryption.rs`).
//! - `CachedObject` (`registry/objects/normalizer.rs` makes it): from the writer's `PreparedObject`, from stored bytes that
//!   are already canonical (`Encoder::verbatim`), or by decoding.
//! - `Document`: what a response shows. `Encoded` shares the bytes of the cache; `Converted` is encoded for one response;
//!   `Decoded` comes from a write or from a read of the store.
//! - `Json` (`registry/objects/json.rs`): a document as bytes, and the place of its metadata; Tables and lists are assembled
//!   from it.

pub(super) mod asynchronous;
pub(super) mod body_kind;
pub(super) mod cached_object;
pub(super) mod code;
mod code_object;
pub(super) mod converted;
mod converter_call;
pub(super) mod document;
pub(super) mod encryption;
pub(super) mod field_finder;
pub(super) mod hooks;
pub(super) mod items;
pub(super) mod json;
pub(super) mod key;
pub(super) mod kind;
pub(super) mod kind_cache;
pub(super) mod kind_version;
pub(super) mod kind_versions;
pub(super) mod listed;
pub(super) mod normalizer;
pub(super) mod prepared_object;
pub(super) mod present_object;
pub(super) mod read_counts;
pub(super) mod readers;
pub(super) mod recent_conversions;
pub(super) mod scale;
mod schema_checks;
pub(super) mod stored_form;
pub(super) mod stored_value;
pub(super) mod version_schema;
pub(super) mod versioned_resource;
