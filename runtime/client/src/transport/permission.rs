//! `SendPermission`: what must hold while the bytes of a request are sent.

use std::sync::Arc;

use bytes::Bytes;

use super::body::Body;
use super::error::TransportError;
use super::pieces::PiecesBody;

/// Most bytes of a body that are sent after the permission was asked for once.
const PIECE: usize = 64 * 1024;

type Check = dyn Fn() -> Result<(), TransportError> + Send + Sync;

/// Asked before each piece of a request's body, as an extension of the request: a transport that reads bodies before it sends
/// them asks again when it does.
#[derive(Clone)]
pub(crate) struct SendPermission(Arc<Check>);

impl SendPermission {
    pub(crate) fn new(
        check: impl Fn() -> Result<(), TransportError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(check))
    }

    /// The permission of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self::new(move || (self.0)().and_then(|()| (other.0)()))
    }

    /// A body that breaks off when the permission ends.
    pub(crate) fn guard(self, mut bytes: Bytes) -> Body {
        let length = bytes.len();
        let piece = move || Some((self.0)().map(|()| bytes.split_to(bytes.len().min(PIECE))));
        Body::new(PiecesBody::new(length, std::iter::from_fn(piece)))
    }
}
