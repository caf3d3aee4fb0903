//! The filter that shows notices.

use std::sync::Arc;

use apiloom::server::{Filter, FilterPlace, FilterRequest};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::Board;

/// The header of a notice; a response has one for each.
const HEADER: &str = "x-notice";

/// Adds the notices of a board to responses.
pub(crate) struct ShowNotices(pub(crate) Arc<Board>);

impl Filter for ShowNotices {
    fn name(&self) -> &str {
        "show-notices"
    }

    fn meaning(&self) -> &str {
        "adds a header x-notice for each notice"
    }

    /// Users see notices, and clients without a user do not.
    fn place(&self) -> FilterPlace {
        FilterPlace::AfterAuthentication
    }

    fn response(&self, _: &FilterRequest<'_>, _: StatusCode, headers: &mut HeaderMap) {
        for text in self.0.texts() {
            // The schema lets only such texts pass.
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.append(HEADER, value);
            }
        }
    }
}
