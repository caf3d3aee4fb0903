//! The end of an evaluation by its cost or by an error.

use std::borrow::Cow;

/// The error of arguments that no signature takes.
pub(crate) const NO_OVERLOAD: &str = "no such overload";

/// Why an evaluation ended without a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The cost is above the limit. No operator hides this.
    Cost,
    Error(Cow<'static, str>),
}

impl Stop {
    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// The error of arguments that no signature of a function takes.
    pub(crate) fn overload() -> Self {
        Self::error(NO_OVERLOAD)
    }
}
