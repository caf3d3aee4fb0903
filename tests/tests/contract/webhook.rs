//! A conversion webhook over TLS in the process of the test, which answers as the test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use apiloom_tests::https::{Body, HttpsServer, SignedBy, text};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::{Value, json};

/// What the webhook does with a call.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Converts the objects.
    Convert,
    /// Converts them, and changes the review that is sent: its request is still in it.
    Change(Arc<dyn Fn(&mut Value) + Send + Sync>),
    /// Another response: code, body.
    Text(u16, &'static str),
    /// Asks to go elsewhere.
    Redirect(String),
    /// Never answers.
    Hang,
    /// A body that does not end.
    Endless,
}

impl Reply {
    pub(crate) fn change(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::Change(Arc::new(change))
    }
}

struct State {
    reply: Mutex<Reply>,
    calls: Mutex<Vec<Value>>,
}

/// A running webhook; it ends when this is dropped.
pub(crate) struct Webhook {
    pub(crate) address: SocketAddr,
    /// The authority of its certificate, as `caBundle` has it.
    pub(crate) ca_bundle: String,
    state: Arc<State>,
    _server: HttpsServer,
}

impl Webhook {
    /// Starts a webhook whose certificate has the names of this machine and of the service `default/hook`.
    pub(crate) async fn start() -> Self {
        Self::start_signed_by(SignedBy::Authority).await
    }

    /// The same with a certificate that is signed so.
    pub(crate) async fn start_signed_by(signed_by: SignedBy) -> Self {
        let state = Arc::new(State {
            reply: Mutex::new(Reply::Convert),
            calls: Mutex::default(),
        });
        let answering = Arc::clone(&state);
        let server = HttpsServer::start(signed_by, move |request| {
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

    pub(crate) fn url(&self) -> String {
        format!("https://{}/convert", self.address)
    }

    /// Answers so from now on.
    pub(crate) fn reply(&self, reply: Reply) {
        *self.state.reply.lock().unwrap() = reply;
    }

    /// The reviews since the last time.
    pub(crate) fn calls(&self) -> Vec<Value> {
        std::mem::take(&mut self.state.calls.lock().unwrap())
    }

    /// The number of reviews since the last time.
    pub(crate) fn number_of_calls(&self) -> usize {
        self.state.calls.lock().unwrap().len()
    }

    /// The names of the objects of each call since the last time.
    pub(crate) fn names(&self) -> Vec<Vec<String>> {
        let calls = self.calls();
        let objects = |call: &Value| {
            let objects = call["request"]["objects"].as_array().unwrap().iter();
            let names = objects.map(|object| object["metadata"]["name"].as_str().unwrap());
            names.map(str::to_owned).collect()
        };
        calls.iter().map(objects).collect()
    }
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<Body> {
    let target = request.uri().path_and_query().unwrap().to_string();
    assert_eq!(target, "/convert?timeout=30s");
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut review: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(review["kind"], "ConversionReview");
    state.calls.lock().unwrap().push(review.clone());
    let reply = state.reply.lock().unwrap().clone();
    match reply {
        Reply::Text(code, body) => return text(code, body),
        Reply::Redirect(location) => {
            let mut response = text(307, "");
            let headers = response.headers_mut();
            headers.insert("location", location.parse().unwrap());
            return response;
        }
        Reply::Hang => std::future::pending::<()>().await,
        Reply::Endless => {
            let piece = Bytes::from(vec![b' '; 1 << 16]);
            let pieces = futures_util::stream::repeat_with(move || Ok(Frame::data(piece.clone())));
            return Response::new(http_body_util::BodyExt::boxed(StreamBody::new(pieces)));
        }
        Reply::Convert => convert(&mut review),
        Reply::Change(change) => {
            convert(&mut review);
            change(&mut review);
        }
    }
    text(200, review.to_string())
}

/// Foos of v1 have a color, those of v2 a colour.
fn convert(review: &mut Value) {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap().to_owned();
    let mut objects = request["objects"].as_array().unwrap().clone();
    for object in &mut objects {
        assert_ne!(object["apiVersion"], to, "nothing to convert");
        let (old, new) = match &*to {
            "ex.io/v1" => ("colour", "color"),
            _ => ("color", "colour"),
        };
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(old)
        {
            spec.insert(new.to_owned(), value);
        }
        object["apiVersion"] = json!(to);
    }
    review["response"] = json!({
        "uid": request["uid"],
        "convertedObjects": objects,
        "result": {"status": "Success"},
    });
}
