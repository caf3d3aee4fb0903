//! Compile-time checks of types that macros cannot see in their tokens.

use std::marker::PhantomData;

use crate::fields::{JsonName, JsonNames, Values};
use schemars::JsonSchema;

use super::const_text::{ConstText, same_text};

/// Detects types behind aliases. The inherent constants take precedence where they exist; [`OtherLeaf`] has those of
/// all other types.
#[derive(Debug)]
pub struct Leaf<T>(PhantomData<T>);

impl Leaf<std::time::Duration> {
    /// The error if the type is used at all; empty for none.
    pub const PROBLEM: &'static str =
        "std::time::Duration has no form that Kubernetes knows: use apiloom::meta::Duration";
}
impl Leaf<std::time::SystemTime> {
    /// The error if the type is used at all.
    pub const PROBLEM: &'static str = "std::time::SystemTime has no form that Kubernetes knows: use apiloom::meta::Time or apiloom::meta::MicroTime";
}
impl Leaf<std::time::Instant> {
    /// The error if the type is used at all.
    pub const PROBLEM: &'static str = "std::time::Instant has no form that Kubernetes knows: use apiloom::meta::Time or apiloom::meta::MicroTime";
}
impl Leaf<Vec<u8>> {
    /// The error if the type is used inside a container.
    pub const NESTED_PROBLEM: &'static str = "write out `Vec<u8>`: behind another name its bytes would be a list of numbers and no base64 text";
}
impl<T> Leaf<Option<T>> {
    /// The error if the type is used inside a container.
    pub const NESTED_PROBLEM: &'static str = "this is an `Option` by another name: null is no element, and what is absent is not absent twice";
}

/// The constants of [`Leaf`] for all other types.
pub trait OtherLeaf {
    /// No error for the type itself.
    const PROBLEM: &'static str = "";
    /// No error for the type in a container.
    const NESTED_PROBLEM: &'static str = "";
}

impl<T> OtherLeaf for Leaf<T> {}

/// Fails compilation with a problem.
#[track_caller]
pub const fn refuse(problem: &'static str) {
    if !problem.is_empty() {
        panic!("{}", problem);
    }
}

/// A type of a field: it has a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an API type",
    label = "put `#[apiloom::api]` on `{Self}`",
    note = "for a type of another crate without `JsonSchema`, say the schema with `#[schemars(with = \"..\")]` on the field"
)]
pub trait FieldType {}

// Without this, rustc would name `JsonSchema`, one of the traits that the attribute adds.
#[diagnostic::do_not_recommend]
impl<T: JsonSchema + ?Sized> FieldType for T {}

/// Checks that a type is an API type. It is used in the type of a constant, which rustc checks before bodies, so that
/// this error comes before those of the missing traits.
#[derive(Debug)]
pub struct FieldTypeProof<T: FieldType + ?Sized>(PhantomData<T>);

/// The values of a tag, known if it is an enum of strings.
#[derive(Debug)]
pub struct TagValues<T>(PhantomData<T>);

impl<T: Values> TagValues<T> {
    /// The values, if they are known.
    pub const VALUES: Option<&'static [&'static str]> = Some(T::VALUES);
}

/// The constant of [`TagValues`] for all other types.
pub trait OtherTag {
    /// The values are not known.
    const VALUES: Option<&'static [&'static str]> = None;
}

impl<T> OtherTag for TagValues<T> {}

/// The field names of a flattened type, if they are known.
#[derive(Debug)]
pub struct FlattenedNames<T>(PhantomData<T>);

impl<T: JsonNames> FlattenedNames<T> {
    /// The names.
    pub const NAMES: &'static [JsonName] = T::NAMES;
}

/// The constant of [`FlattenedNames`] for all other types.
pub trait OtherFlattenedNames {
    /// The names are not known.
    const NAMES: &'static [JsonName] = &[];
}

impl<T> OtherFlattenedNames for FlattenedNames<T> {}

/// Fails compilation if a flattened type has a field name that its parent also has.
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

/// A name that both sets of fields have.
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
