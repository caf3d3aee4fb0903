//! What expansions let rustc find out about types while it compiles: what the macros cannot see in their tokens.

use std::marker::PhantomData;

use apiloom_meta::fields::{JsonName, JsonNames, Values};
use schemars::JsonSchema;

use super::const_text::{ConstText, same_text};

/// What a type is that another name may hide. The inherent constants win where they exist, those of [`OtherLeaf`] are the
/// answer for all other types.
#[derive(Debug)]
pub struct Leaf<T>(PhantomData<T>);

impl Leaf<std::time::Duration> {
    /// What is wrong with the type wherever it stands; nothing when it is empty.
    pub const PROBLEM: &'static str =
        "std::time::Duration has no form that Kubernetes knows: use apiloom::meta::Duration";
}
impl Leaf<std::time::SystemTime> {
    /// What is wrong with the type wherever it stands.
    pub const PROBLEM: &'static str = "std::time::SystemTime has no form that Kubernetes knows: use apiloom::meta::Time or apiloom::meta::MicroTime";
}
impl Leaf<std::time::Instant> {
    /// What is wrong with the type wherever it stands.
    pub const PROBLEM: &'static str = "std::time::Instant has no form that Kubernetes knows: use apiloom::meta::Time or apiloom::meta::MicroTime";
}
impl Leaf<Vec<u8>> {
    /// What is wrong with the type inside of a container.
    pub const NESTED_PROBLEM: &'static str = "write out `Vec<u8>`: behind another name its bytes would be a list of numbers and no base64 text";
}
impl<T> Leaf<Option<T>> {
    /// What is wrong with the type inside of a container.
    pub const NESTED_PROBLEM: &'static str = "this is an `Option` by another name: null is no element, and what is absent is not absent twice";
}

/// The answer of [`Leaf`] for all other types.
pub trait OtherLeaf {
    /// Nothing is wrong with the type itself.
    const PROBLEM: &'static str = "";
    /// Nothing is wrong with the type in a container.
    const NESTED_PROBLEM: &'static str = "";
}

impl<T> OtherLeaf for Leaf<T> {}

/// Stops the compiler at a problem.
#[track_caller]
pub const fn refuse(problem: &'static str) {
    if !problem.is_empty() {
        panic!("{}", problem);
    }
}

/// A type of a field: one with a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an API type",
    label = "put `#[apiloom::api]` on `{Self}`",
    note = "for a type of another crate without `JsonSchema`, say the schema with `#[schemars(with = \"..\")]` on the field"
)]
pub trait FieldType {}

// Else rustc would name `JsonSchema`, one of the traits that the attribute gives.
#[diagnostic::do_not_recommend]
impl<T: JsonSchema + ?Sized> FieldType for T {}

/// Proves, in the type of a constant, that a type is one of a field: rustc checks types of constants before bodies, so
/// that this error comes before those of the traits that are missing.
#[derive(Debug)]
pub struct FieldTypeProof<T: FieldType + ?Sized>(PhantomData<T>);

/// The values of a tag, which are known of an enum that is a string.
#[derive(Debug)]
pub struct TagValues<T>(PhantomData<T>);

impl<T: Values> TagValues<T> {
    /// The values, if they are known.
    pub const VALUES: Option<&'static [&'static str]> = Some(T::VALUES);
}

/// The answer of [`TagValues`] for all other types.
pub trait OtherTag {
    /// The values are not known.
    const VALUES: Option<&'static [&'static str]> = None;
}

impl<T> OtherTag for TagValues<T> {}

/// The fields of a type that is flattened into another, as far as they are known.
#[derive(Debug)]
pub struct Flattened<T>(PhantomData<T>);

impl<T: JsonNames> Flattened<T> {
    /// The names.
    pub const NAMES: &'static [JsonName] = T::NAMES;
}

/// The answer of [`Flattened`] for all other types.
pub trait OtherFlattened {
    /// The names are not known.
    const NAMES: &'static [JsonName] = &[];
}

impl<T> OtherFlattened for Flattened<T> {}

/// Stops the compiler at a flattened field whose type has a name that stands beside it already.
#[track_caller]
pub const fn refuse_shared_name(beside: &[JsonName], flattened: &[JsonName]) {
    if let Some(name) = shared_name(beside, flattened) {
        let mut text = ConstText::new();
        text.push("two fields of one JSON object would be named \"");
        text.push(name);
        text.push("\", and one of them comes from this type");
        panic!(
            "{}",
            text.as_str_or("two fields of one JSON object would have the same name")
        );
    }
}

/// A name that two sets of fields have in common.
const fn shared_name(mut left: &[JsonName], right: &[JsonName]) -> Option<&'static str> {
    while let [first, rest @ ..] = left {
        match first {
            JsonName::Own(name) if has_name(right, name) => return Some(name),
            JsonName::Own(_) => {}
            JsonName::Flattened(names) => {
                if let Some(name) = shared_name(names, right) {
                    return Some(name);
                }
            }
        }
        left = rest;
    }
    None
}

const fn has_name(mut names: &[JsonName], name: &str) -> bool {
    while let [first, rest @ ..] = names {
        let found = match first {
            JsonName::Own(own) => same_text(own, name),
            JsonName::Flattened(names) => has_name(names, name),
        };
        if found {
            return true;
        }
        names = rest;
    }
    false
}
