//! Admission webhooks over TLS in the process of the test, which answer as the test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use apiloom_tests::https::{Body, HttpsServer, SignedBy, text};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

/// What a webhook does with the request of a review.
#[derive(Clone)]
pub(super) enum Reply {
    /// Allows the write, with this beside: a patch, warnings.
    Allow(Arc<dyn Fn(&Value) -> Value + Send + Sync>),
    /// Does not allow it; the status.
    Deny(Value),
    /// Another body: code, text.
    Text(u16, String),
    /// The review with this response as it is.
    Response(Value),
    /// Never answers.
    Hang,
    /// Allows the write once so many calls have come.
    Together(Arc<tokio::sync::Barrier>),
}

impl Reply {
    pub(super) fn allow() -> Self {
        Self::Allow(Arc::new(|_| json!({})))
    }

    /// Allows the write with the steps of a JSON patch.
    pub(super) fn patch(steps: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::Allow(Arc::new(
            move |request| json!({"patchType": "JSONPatch", "patch": base64(&steps(request).to_string())}),
        ))
    }
}

pub(super) fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

struct State {
    /// By the path of the URL.
    replies: Mutex<Vec<(String, Reply)>>,
    calls: Mutex<Vec<(String, Value)>>,
}

/// A running webhook; it ends when this is dropped.
pub(super) struct Hook {
    pub(super) address: SocketAddr,
    pub(super) ca_bundle: String,
    state: Arc<State>,
    _server: HttpsServer,
}

impl Hook {
    pub(super) async fn start() -> Self {
        let state = Arc::new(State {
            replies: Mutex::default(),
            calls: Mutex::default(),
        });
        let answering = Arc::clone(&state);
        let server = HttpsServer::start(SignedBy::Authority, move |request| {
            let state = Arc::clone(&answering);
            async move { answer(&state, request).await }
        });
        let server = server.await;
        Self {
            address: server.address,
            ca_bundle: server.ca_bundle.clone(),
            state,
            _server: server,
        }
    }

    /// Answers so at a path from now on.
    pub(super) fn reply(&self, path: &str, reply: Reply) {
        let mut replies = self.state.replies.lock().unwrap();
        replies.retain(|(known, _)| known != path);
        replies.push((path.to_owned(), reply));
    }

    /// The paths and reviews since the last time.
    pub(super) fn calls(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.state.calls.lock().unwrap())
    }

    /// The paths of the calls since the last time.
    pub(super) fn paths(&self) -> Vec<String> {
        self.calls().into_iter().map(|(path, _)| path).collect()
    }

    /// The client configuration of the webhook at a path.
    pub(super) fn config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle})
    }
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<Body> {
    assert_eq!(request.method(), "POST");
    assert_eq!(request.headers()["content-type"], "application/json");
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut review: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(review["kind"], "AdmissionReview");
    let mut seen = review.clone();
    seen["query"] = json!(query);
    state.calls.lock().unwrap().push((path.clone(), seen));
    let reply = {
        let replies = state.replies.lock().unwrap();
        let reply = replies.iter().find(|(known, _)| *known == path);
        reply.map_or_else(Reply::allow, |(_, reply)| reply.clone())
    };
    let uid = review["request"]["uid"].clone();
    let mut response = match reply {
        Reply::Allow(more) => {
            let mut response = more(&review["request"]);
            response["allowed"] = json!(true);
            response
        }
        Reply::Deny(status) => json!({"allowed": false, "status": status}),
        Reply::Text(code, body) => return text(code, body),
        Reply::Response(response) => {
            review["response"] = response;
            return text(200, review.to_string());
        }
        Reply::Hang => std::future::pending().await,
        Reply::Together(barrier) => {
            barrier.wait().await;
            json!({"allowed": true})
        }
    };
    response["uid"] = uid;
    let answered = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
    text(200, answered.to_string())
}
