//! Reads the conversions between the versions of a type and of its fields.

use super::{Conversion, FieldConversion};
use crate::Diagnostics;
use crate::args::Arg;
use crate::diagnostics::DiagnosticId as Id;
use crate::keys::Target;

/// Reads `convert(..)` of a type.
pub(super) fn read_conversion(arg: &Arg, d: &mut Diagnostics) -> Option<Conversion> {
    let args = arg.list(Target::Convert, d)?;
    let (mut peer, mut manual, mut with) = (None, false, None);
    let (mut hub_only, mut lossy) = (Vec::new(), Vec::new());
    for arg in &args {
        match arg.key {
            "peer" => peer = arg.code(d),
            "manual" => manual = arg.flag(d),
            "with" => with = arg.code_pair(d),
            "hub_only" => hub_only = arg.assignments(d),
            "lossy" => lossy = arg.names(d),
            _ => {}
        }
    }
    if !args.has("peer") {
        d.error(Id::MissingKey, arg.span(), "`peer` is missing")
            .help("add `peer = v1::Spec`, the type of the other version");
    }
    Some(Conversion {
        peer: peer?,
        manual,
        with,
        hub_only,
        lossy,
    })
}

/// Reads `convert(..)` of a field.
pub(super) fn read_field_conversion(arg: &Arg, d: &mut Diagnostics) -> Option<FieldConversion> {
    let args = arg.list(Target::FieldConvert, d)?;
    let mut convert = FieldConversion {
        span: Some(arg.span()),
        ..FieldConversion::default()
    };
    for arg in &args {
        match arg.key {
            "rename" => convert.rename = arg.names(d).into_iter().next(),
            "with" => convert.with = arg.code_pair(d),
            "drop" => convert.drop = arg.flag(d),
            "default" => convert.default = arg.code(d),
            _ => {}
        }
    }
    if let (false, Some(default)) = (args.has("drop"), args.find("default")) {
        d.error(Id::MissingKey, default.span(), "`default` needs `drop`")
            .help("it is what a dropped field gets on the way back");
    }
    Some(convert)
}
