//! A transport for tests: answers in the order of a script, and records what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::transport::{Body, Transport, TransportError};

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

type Step = Box<dyn FnOnce() -> Result<Response<Body>, TransportError> + Send>;

/// The script. A request after its last step fails the test.
#[derive(Clone, Default)]
pub(crate) struct Script {
    steps: Arc<Mutex<VecDeque<Step>>>,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Script {
    /// An empty script.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a step.
    pub(crate) fn then(
        self,
        step: impl FnOnce() -> Result<Response<Body>, TransportError> + Send + 'static,
    ) -> Self {
        self.steps.lock().unwrap().push_back(Box::new(step));
        self
    }

    /// Adds a JSON answer.
    pub(crate) fn answer(self, code: u16, body: &str) -> Self {
        self.answer_with(code, &[], body)
    }

    /// Adds a JSON answer with headers.
    pub(crate) fn answer_with(
        self,
        code: u16,
        headers: &[(&'static str, &'static str)],
        body: &str,
    ) -> Self {
        let mut response = Response::builder()
            .status(code)
            .header("content-type", "application/json");
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let response = response.body(Body::from(Bytes::from(body.to_owned())));
        self.then(move || Ok(response.unwrap()))
    }

    /// Adds an answer in pieces, which then ends, breaks off with an error, or stays open.
    pub(crate) fn pieces(self, pieces: &[&str], end: End) -> Self {
        let mut frames: Vec<Result<Frame<Bytes>, TransportError>> = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::from((*piece).to_owned()))))
            .collect();
        if end == End::Broken {
            frames.push(Err(TransportError::new("connection reset")));
        }
        let frames = stream::iter(frames);
        let body = if end == End::Open {
            Body::new(StreamBody::new(frames.chain(stream::pending())))
        } else {
            Body::new(StreamBody::new(frames))
        };
        self.then(move || Ok(Response::new(body)))
    }

    /// Adds an answer with this piece again and again, which is always ready. The clock goes on by a second for each thousand.
    pub(crate) fn endless(self, piece: &'static str) -> Self {
        let pieces = stream::unfold(0_u32, move |count| async move {
            if count % 1000 == 999 {
                tokio::time::advance(std::time::Duration::from_secs(1)).await;
            }
            let frame = Frame::data(Bytes::from_static(piece.as_bytes()));
            Some((Ok::<_, TransportError>(frame), count.wrapping_add(1)))
        });
        self.then(move || Ok(Response::new(Body::new(StreamBody::new(pieces)))))
    }

    /// Adds a failure.
    pub(crate) fn fail(self, error: TransportError) -> Self {
        self.then(move || Err(error))
    }

    /// The requests so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// Methods and paths of the requests so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let sent = self.sent();
        let line = |sent: &Sent| format!("{} {}", sent.method, sent.uri);
        sent.iter().map(line).collect()
    }
}

/// How an answer in pieces goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Broken,
    Open,
}

impl Transport for Script {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let script = self.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect(1 << 20).await.unwrap();
            let sent = Sent {
                method: parts.method,
                uri: parts.uri.to_string(),
                headers: parts.headers,
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            let step = script.steps.lock().unwrap().pop_front();
            let step = step.unwrap_or_else(|| panic!("the script has no answer to {sent:?}"));
            script.sent.lock().unwrap().push(sent);
            step()
        }
        .boxed()
    }
}
