//! The names that expressions spell: of variables, types and functions. A dot before one says that it is global.

use crate::ast::{Expr, Kind};

/// The dotted name that an expression spells, if it consists of names only.
pub(crate) fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Identifier(name) => Some(without_dot(name).to_owned()),
        Kind::Select {
            operand,
            field,
            is_optional: false,
        } => {
            // The longest name of a type or a function has four parts.
            let name = (operand.depth < 5).then(|| dotted(operand)).flatten()?;
            Some(format!("{name}.{field}"))
        }
        _ => None,
    }
}

/// The name of an identifier, which a dot before it calls a global one.
pub(crate) fn without_dot(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

/// The first name of an expression that consists of names and fields.
pub(crate) fn head_name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        Kind::Identifier(name) => Some(without_dot(name)),
        Kind::Select { operand, .. } => head_name(operand),
        _ => None,
    }
}

/// The name of a type that is a value.
pub(crate) fn type_name(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "optional_type",
        "net.IP",
        "net.CIDR",
    ];
    NAMES.iter().find(|known| **known == name).copied()
}
