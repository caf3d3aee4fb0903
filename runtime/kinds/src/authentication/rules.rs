//! The registration of reviews and of requests for tokens. They are served where a part answers them, which also checks them.

#[cfg(feature = "core")]
mod tokens;

#[cfg(feature = "core")]
pub use self::tokens::{ServiceAccountTokens, TokenIssuer};

use super::v1::{SelfSubjectReview, TokenReview};
use crate::review::reviews;

reviews! { SelfSubjectReview TokenReview }
