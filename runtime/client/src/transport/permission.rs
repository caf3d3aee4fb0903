//! `SendPermission`: what must hold while the bytes of a request are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::body::Body;
use super::error::TransportError;

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
    pub(crate) fn guard(self, bytes: Bytes) -> Body {
        Body::new(PermittedBody {
            rest: bytes,
            permission: self,
        })
    }
}

struct PermittedBody {
    rest: Bytes,
    permission: SendPermission,
}

impl http_body::Body for PermittedBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if let Err(error) = (self.permission.0)() {
            return Poll::Ready(Some(Err(error)));
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
