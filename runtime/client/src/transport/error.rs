//! Failures of a transport.

use std::fmt;

/// Any error, as tower services and bodies have it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request without a response, or a response whose body broke off.
#[derive(Debug)]
pub struct TransportError {
    source: BoxError,
    stage: Stage,
}

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unsent,
    Sent,
    Closed,
}

impl TransportError {
    /// A failure after which the server may have seen the request, or parts of it.
    pub fn new(source: impl Into<BoxError>) -> Self {
        Self {
            source: source.into(),
            stage: Stage::Sent,
        }
    }

    /// A failure before a byte of the request was sent, such as a refused connection.
    pub fn unsent(source: impl Into<BoxError>) -> Self {
        Self {
            source: source.into(),
            stage: Stage::Unsent,
        }
    }

    /// The transport was shut down and will not send requests again. Becomes [`Error::Closed`](crate::Error::Closed).
    pub fn closed(source: impl Into<BoxError>) -> Self {
        Self {
            source: source.into(),
            stage: Stage::Closed,
        }
    }

    /// The error of a service or of a body: kept if it is a `TransportError` already.
    pub fn from_boxed(source: BoxError) -> Self {
        match source.downcast::<Self>() {
            Ok(error) => *error,
            Err(source) => Self::new(source),
        }
    }

    /// Whether the server cannot have seen anything of the request, so that sending it again cannot repeat it.
    pub fn is_unsent(&self) -> bool {
        self.stage != Stage::Sent
    }

    /// Whether the transport will not send requests again.
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors of HTTP libraries name their reason only in their sources: "error sending request".
        write!(f, "{}", self.source)?;
        let mut source = self.source.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_error_stays_what_it_is_in_a_box() {
        let error = TransportError::from_boxed(Box::new(TransportError::unsent("refused")));
        assert!(error.is_unsent() && !error.is_closed());
        let error = TransportError::from_boxed("reset".into());
        assert!(!error.is_unsent());
        assert!(TransportError::closed("stopped").is_closed());
    }

    #[test]
    fn the_text_has_all_reasons() {
        let inner = std::io::Error::other("connection refused");
        let error = TransportError::new(TransportError::new(inner));
        assert!(error.to_string().ends_with("connection refused"), "{error}");
    }
}
