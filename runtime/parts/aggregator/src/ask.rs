//! Requests of this server itself to other servers.

use apiloom_client::transport::Body;
use apiloom_http::sources::aggregation::add_aggregator;
use http::{Method, Request};

/// A GET of this server itself.
pub(super) fn request(path: &str) -> Result<Request<Body>, String> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = path
        .parse()
        .map_err(|error| format!("{path:?} is no path: {error}"))?;
    add_aggregator(request.headers_mut());
    Ok(request)
}
