//! A transport whose watches can be made to expire, so that a client reads the whole state again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apiloom_client::{Body, Transport, TransportError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyStream, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch;

const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}"#;

/// Breaks watches.
#[derive(Clone)]
pub(crate) struct Expiring {
    inner: Arc<dyn Transport>,
    /// Whether the next watch from a version is refused.
    refuses: Arc<AtomicBool>,
    breaks: watch::Sender<()>,
}

impl Expiring {
    pub(crate) fn new(inner: Arc<dyn Transport>) -> Self {
        Self {
            inner,
            refuses: Arc::default(),
            breaks: watch::Sender::new(()),
        }
    }
    /// Breaks the watches that are open, and refuses the next one.
    pub(crate) fn expire(&self) {
        self.refuses.store(true, Ordering::SeqCst);
        self.breaks.send_replace(());
    }
}

impl Transport for Expiring {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.contains("watch=1");
        let has_state = query.contains("sendInitialEvents");
        if is_watch && !has_state && self.refuses.swap(false, Ordering::SeqCst) {
            let response = Response::builder().status(410);
            let response = response.header("content-type", "application/json");
            let body = Body::from(Bytes::from_static(EXPIRED.as_bytes()));
            let response = response.body(body);
            let failure = |_| TransportError::new("the response is valid");
            return std::future::ready(response.map_err(failure)).boxed();
        }
        let response = self.inner.call(request);
        let mut breaks = self.breaks.subscribe();
        async move {
            let response = response.await?;
            if !is_watch {
                return Ok(response);
            }
            Ok(response.map(|body| {
                let broken = async move {
                    // Fails only when no client is left.
                    let _ = breaks.changed().await;
                    Err::<Frame<Bytes>, _>(TransportError::new("broken for a measurement"))
                };
                let frames = stream::select(BodyStream::new(body), stream::once(broken));
                Body::new(StreamBody::new(frames.boxed()))
            }))
        }
        .boxed()
    }
}
