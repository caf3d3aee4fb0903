//! The reason of a decision, which is written only if it is read.

use std::fmt;
use std::sync::Arc;

/// Why an authorizer decided as it did. Cheap to clone: most requests are allowed, and the reason is not read.
///
/// ```
/// use std::sync::Arc;
///
/// use apiloom_registry::auth::{Decision, Reason};
///
/// assert_eq!(Decision::deny("closed on Sundays"), Decision::Deny("closed on Sundays".into()));
/// // Made once, for all requests that it allows.
/// let grant = Arc::new("the first 3 requests of a day are free");
/// assert_eq!(Reason::shared(grant).to_string(), "the first 3 requests of a day are free");
/// ```
#[derive(Clone, Default)]
pub struct Reason(Option<Arc<dyn fmt::Display + Send + Sync>>);

impl Reason {
    /// No reason.
    pub const NONE: Self = Self(None);

    /// A reason that others have too. One whose text is empty is not the same as none, and is shown as one.
    pub fn shared<T: fmt::Display + Send + Sync + 'static>(text: Arc<T>) -> Self {
        Self(Some(text))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Several reasons, each in a line.
    pub(super) fn lines(reasons: Vec<Self>) -> Self {
        let mut reasons = reasons.into_iter();
        let first = reasons.next().unwrap_or_default();
        reasons.fold(first, |lines, next| Self::from(format!("{lines}\n{next}")))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        if text.is_empty() {
            Self::NONE
        } else {
            Self::shared(Arc::new(text))
        }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// Its text.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |text| text.fmt(f))
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Reasons with the same text are equal.
impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Reason {}
