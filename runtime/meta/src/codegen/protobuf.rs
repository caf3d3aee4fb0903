//! The Protobuf form of types, for the descriptions that expansions contain.

use apiloom_schema::ApiType;

use super::hooks::Probe;
use crate::kind::{ProtobufMessage, ProtobufType};

impl<T: ApiType> Probe<T> {
    /// The type of the fields in Protobuf.
    pub const PROTOBUF: Option<ProtobufType> = T::PROTOBUF;
}

/// The constant of [`Probe`] for types of other crates.
pub trait ProbeForeignProtobuf {
    /// No form in Protobuf.
    const PROTOBUF: Option<ProtobufType> = None;
}

impl<T> ProbeForeignProtobuf for Probe<T> {}

/// The type of a field with a number. Compilation fails elsewhere if there is none.
pub const fn protobuf_type(form: Option<ProtobufType>) -> ProtobufType {
    match form {
        Some(form) => form,
        None => ProtobufType::RawExtension,
    }
}

/// The problem of a field with a number: its type has no form.
pub const fn protobuf_problem(form: Option<ProtobufType>, missing: &'static str) -> &'static str {
    match form {
        None => missing,
        Some(_) => "",
    }
}

/// The problem of a flattened field with a number: its type is no message.
pub const fn flattened_problem(form: Option<ProtobufType>, missing: &'static str) -> &'static str {
    match form {
        Some(ProtobufType::Message(_)) => "",
        _ => missing,
    }
}

/// The message of a kind.
pub fn protobuf_message<T: ApiType>() -> Option<&'static ProtobufMessage> {
    match T::PROTOBUF {
        Some(ProtobufType::Message(message)) => Some(message()),
        _ => None,
    }
}
