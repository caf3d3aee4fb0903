//! Rules in CEL: `cel("self.min <= self.max", message = "..", path = min)`.

use crate::args::Arg;
use crate::keys::Target;
use crate::words::look_up;
use crate::{Diagnostics, Name, SpannedValue};

/// A rule in CEL, which the server and CustomResourceDefinitions evaluate.
#[derive(Clone, Debug)]
pub struct CelRule {
    /// The expression, which must be true.
    pub rule: SpannedValue<String>,
    /// The text of the error; by default it names the expression.
    pub message: Option<String>,
    /// An expression for the text of the error.
    pub message_expression: Option<String>,
    /// The reason in Kubernetes' spelling: `FieldValueForbidden`.
    pub reason: Option<&'static str>,
    /// The field that the error is about.
    pub path: Option<Name>,
    /// Whether `oldSelf` is an optional, and the rule is evaluated for new values too.
    pub has_optional_old: bool,
}

const REASONS: &[(&str, &str)] = &[
    ("invalid", "FieldValueInvalid"),
    ("forbidden", "FieldValueForbidden"),
    ("required", "FieldValueRequired"),
    ("duplicate", "FieldValueDuplicate"),
];

pub(crate) fn read_cel(arg: &Arg, d: &mut Diagnostics) -> Option<CelRule> {
    let (rule, args) = arg.text_and_list(Target::Cel, d)?;
    let mut read = CelRule {
        rule,
        message: None,
        message_expression: None,
        reason: None,
        path: None,
        has_optional_old: false,
    };
    for arg in &args {
        match arg.key {
            "message" => read.message = arg.string(d).map(|text| text.value),
            "message_expression" => {
                read.message_expression = arg.string(d).map(|text| text.value);
            }
            "reason" => {
                let word = arg.word(d);
                read.reason = word.and_then(|word| look_up(&word, "reason", REASONS, d));
            }
            "path" => read.path = arg.names(d).into_iter().next(),
            "optional_old" => read.has_optional_old = arg.flag(d),
            _ => {}
        }
    }
    Some(read)
}
