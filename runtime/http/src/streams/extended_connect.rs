//! WebSocket over HTTP/2: a CONNECT request with `:protocol` (RFC 8441). The filters convert it to a GET with an upgrade, its
//! form over HTTP/1.1, so that both are authenticated, authorized and answered in the same way.
//!
//! Invariant: any other CONNECT is refused, and this one is answered with 2xx only for a WebSocket. hyper would open a tunnel
//! for it.

use std::any::Any;
use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_meta::field::{echoed, go_quote};
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Method, Version};
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;

/// A value that is dropped when the upgraded stream of a request has ended, or was not opened.
#[derive(Clone)]
pub struct UpgradeGuard {
    _held: Arc<dyn Any + Send + Sync>,
}

impl UpgradeGuard {
    /// Holds `held` until then.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self {
            _held: Arc::new(held),
        }
    }
}

/// Converts a CONNECT request for WebSocket to a GET; other methods are not changed.
///
/// # Errors
/// BadRequest for any other CONNECT.
pub fn convert(request: &mut Parts) -> Result<(), ApiError> {
    if request.method != Method::CONNECT {
        return Ok(());
    }
    let Some(protocol) = request.extensions.remove::<Protocol>() else {
        return Err(ApiError::bad_request(
            "CONNECT is supported only over HTTP/2 and with the pseudo-header :protocol, which must be \"websocket\"",
        ));
    };
    if !protocol.as_str().eq_ignore_ascii_case("websocket") {
        let protocol = go_quote(&echoed(protocol.as_str()));
        return Err(ApiError::bad_request(format!(
            "unsupported :protocol {protocol} of a CONNECT request: only \"websocket\" is supported"
        )));
    }
    request.method = Method::GET;
    // A client cannot send these headers over HTTP/2.
    let headers = &mut request.headers;
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    Ok(())
}

/// Whether a request was a CONNECT for WebSocket. hyper makes no other requests over HTTP/2 upgradable.
pub(crate) fn is_converted(request: &Parts) -> bool {
    request.version == Version::HTTP_2 && request.extensions.get::<OnUpgrade>().is_some()
}

/// The error for a CONNECT to a path without WebSocket.
pub(crate) fn no_websocket() -> ApiError {
    ApiError::bad_request(
        "CONNECT is supported only for subresources that serve WebSocket: use GET",
    )
}

#[cfg(test)]
mod tests {
    use apiloom_meta::StatusReason;
    use http::Request;

    use super::*;

    fn connect(protocol: Option<&str>) -> (Parts, Result<(), ApiError>) {
        let request = Request::builder().method("CONNECT").uri("https://x/y");
        let (mut request, ()) = request.body(()).unwrap().into_parts();
        if let Some(name) = protocol {
            request.extensions.insert(Protocol::from(name));
        }
        let converted = convert(&mut request);
        (request, converted)
    }

    #[test]
    fn only_websocket_is_converted() {
        for name in ["websocket", "WebSocket"] {
            let (request, converted) = connect(Some(name));
            assert_eq!(converted, Ok(()));
            assert_eq!(request.method, Method::GET);
            assert_eq!(request.headers[UPGRADE], "websocket");
        }
        for name in [
            None,
            Some(""),
            Some("connect-udp"),
            Some("websocket2"),
            Some("web\nsocket"),
        ] {
            let (request, converted) = connect(name);
            let error = converted.expect_err("not WebSocket");
            assert_eq!(error.reason, Some(StatusReason::BadRequest));
            assert!(!error.message.contains('\n'), "{}", error.message);
            assert_eq!(request.method, Method::CONNECT);
        }
    }

    #[test]
    fn other_methods_are_not_changed() {
        let (mut request, ()) = Request::get("/x").body(()).unwrap().into_parts();
        assert_eq!(convert(&mut request), Ok(()));
        assert!(request.headers.is_empty());
    }
}
