//! A server in memory as a transport: real requests and real bytes, with faults of every kind, all chosen by one seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::{Body, Transport, TransportError};
use bytes::Bytes;
use fastrand::Rng;
use futures_util::future::{BoxFuture, pending};
use futures_util::{FutureExt, StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::feed;

/// One state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) uid: u64,
    pub(crate) version: u64,
    pub(crate) value: u64,
    /// Cannot be decoded.
    pub(crate) is_bad: bool,
}

impl State {
    pub(crate) fn json(&self) -> Value {
        let value = if self.is_bad {
            Fault::Undecodable.count();
            json!("no number")
        } else {
            json!(self.value)
        };
        json!({
            "metadata": {
                "name": self.name, "namespace": "ns", "uid": self.uid.to_string(),
                "resourceVersion": self.version.to_string(),
                "managedFields": [{"manager": "m", "fieldsV1": {"f:value": {}}}],
            },
            "value": value,
        })
    }
}

/// A change that was made.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) event_type: &'static str,
    pub(crate) state: State,
}

/// What is stored: all changes since the first one.
pub(crate) struct Data {
    pub(crate) log: Vec<Change>,
    pub(crate) objects: BTreeMap<String, State>,
    pub(crate) version: u64,
    /// Versions before this one are forgotten.
    pub(crate) compacted: u64,
    down_until: Option<Instant>,
}

impl Data {
    /// The objects at a version.
    pub(crate) fn at(&self, version: u64) -> BTreeMap<String, State> {
        let mut objects = BTreeMap::new();
        for change in self.log.iter().take_while(|c| c.state.version <= version) {
            if change.event_type == "DELETED" {
                objects.remove(&change.state.name);
            } else {
                objects.insert(change.state.name.clone(), change.state.clone());
            }
        }
        objects
    }
}

/// How often each fault occurred, in all schedules.
static FAULTS: Mutex<BTreeMap<Fault, u64>> = Mutex::new(BTreeMap::new());

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// No connection, or none any more.
    Refused,
    /// The connection breaks within a list.
    ListBroken,
    /// The connection breaks between two events.
    WatchBroken,
    /// It breaks within an event.
    HalfLine,
    /// A watch stays open and sends nothing more.
    Silence,
    /// A request gets no response.
    NoResponse,
    /// Bytes of an event, or of a list, come one piece after the other, with pauses.
    SlowBytes,
    /// 410 for a list, or for its first page.
    ExpiredList,
    /// 410 between two pages.
    ExpiredPage,
    /// 410 for a watch.
    ExpiredWatch,
    /// 410 within a watch.
    ExpiredInStream,
    /// The objects of a page are in another order than their keys.
    ReorderedPage,
    /// 504: the version is not known yet.
    TooLarge,
    /// 429.
    TooMany,
    /// 500, for a request or within a watch.
    Internal,
    /// 502 of a proxy, with HTML.
    Html,
    /// A server that is stopped and started again.
    Restart,
    /// An object that cannot be decoded.
    Undecodable,
    /// A list in several pages.
    Pages,
    /// A server without streaming lists, and one that ignores them.
    NoStreams,
}

impl Fault {
    pub(crate) const ALL: [Self; 20] = [
        Self::Refused,
        Self::ListBroken,
        Self::WatchBroken,
        Self::HalfLine,
        Self::Silence,
        Self::NoResponse,
        Self::SlowBytes,
        Self::ExpiredList,
        Self::ExpiredPage,
        Self::ExpiredWatch,
        Self::ExpiredInStream,
        Self::ReorderedPage,
        Self::TooLarge,
        Self::TooMany,
        Self::Internal,
        Self::Html,
        Self::Restart,
        Self::Undecodable,
        Self::Pages,
        Self::NoStreams,
    ];

    /// Counts one.
    pub(crate) fn count(self) {
        *FAULTS.lock().entry(self).or_default() += 1;
    }
    /// How often it occurred.
    pub(crate) fn occurred(self) -> u64 {
        FAULTS.lock().get(&self).copied().unwrap_or_default()
    }
}

/// What a server does with `sendInitialEvents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streaming {
    Supported,
    Refused,
    Ignored,
}

pub(crate) struct World {
    pub(crate) random: Mutex<Rng>,
    pub(crate) data: Mutex<Data>,
    /// The newest version, for watches that wait.
    pub(crate) newest: watch::Sender<u64>,
    /// Number of restarts: connections of earlier ones break.
    pub(crate) restarts: watch::Sender<u64>,
    has_faults: Mutex<bool>,
    pub(crate) requests: Mutex<Vec<String>>,
    streaming: Streaming,
    /// Whether lists of any state come in pages.
    pages_any_state: bool,
}

/// `a` times in `b`, if there are faults.
macro_rules! chance {
    ($world:expr, $a:literal in $b:literal) => {
        $world.chance($a, $b)
    };
}
pub(crate) use chance;

impl World {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let mut random = Rng::with_seed(seed);
        // Versions grow by a digit during some schedules.
        let version = [1, 90, 980, 5_000_000_000_000_000_000][random.usize(0..4)];
        Arc::new(Self {
            streaming: [
                Streaming::Supported,
                Streaming::Supported,
                Streaming::Refused,
                Streaming::Ignored,
            ][random.usize(0..4)],
            pages_any_state: random.bool(),
            random: Mutex::new(random),
            data: Mutex::new(Data {
                log: Vec::new(),
                objects: BTreeMap::new(),
                version,
                compacted: version,
                down_until: None,
            }),
            newest: watch::Sender::new(version),
            restarts: watch::Sender::new(0),
            has_faults: Mutex::new(true),
            requests: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn pick(&self, range: std::ops::Range<u64>) -> u64 {
        self.random.lock().u64(range)
    }
    pub(crate) fn chance(&self, a: u64, b: u64) -> bool {
        *self.has_faults.lock() && self.pick(0..b) < a
    }
    pub(crate) fn end_faults(&self) {
        *self.has_faults.lock() = false;
    }
    pub(crate) async fn pause(&self, longest_ms: u64) {
        let time = self.pick(0..longest_ms + 1);
        sleep(Duration::from_millis(time)).await;
    }

    /// Makes a change.
    pub(crate) fn write(&self) {
        let name = format!("o{}", self.pick(0..8));
        let (kind, is_bad, value) = (self.pick(0..10), self.pick(0..12) == 0, self.pick(0..99));
        let mut data = self.data.lock();
        data.version += 1;
        let version = data.version;
        let old = data.objects.get(&name).cloned();
        let (event_type, state) = match old {
            Some(old) if kind < 4 => {
                data.objects.remove(&name);
                ("DELETED", State { version, ..old })
            }
            Some(old) => (
                "MODIFIED",
                State {
                    version,
                    value,
                    is_bad,
                    ..old
                },
            ),
            None => (
                "ADDED",
                State {
                    name: name.clone(),
                    uid: version,
                    version,
                    value,
                    is_bad,
                },
            ),
        };
        if event_type != "DELETED" {
            data.objects.insert(name, state.clone());
        }
        data.log.push(Change { event_type, state });
        drop(data);
        self.newest.send_replace(version);
    }
    /// Forgets old versions.
    pub(crate) fn compact(&self) {
        let mut data = self.data.lock();
        let (from, to) = (data.compacted, data.version);
        data.compacted = self.pick(from..to + 1);
    }
    /// Breaks all connections, and refuses new ones for a while.
    pub(crate) fn restart(&self) {
        let down = Duration::from_millis(self.pick(0..20_000));
        Fault::Restart.count();
        self.data.lock().down_until = Some(Instant::now() + down);
        self.restarts.send_modify(|restarts| *restarts += 1);
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<Body>, TransportError> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        self.requests.lock().push(query.clone());
        let parameters: BTreeMap<&str, &str> = query
            .split('&')
            .filter_map(|one| one.split_once('='))
            .collect();
        let is_down = self
            .data
            .lock()
            .down_until
            .is_some_and(|until| until > Instant::now());
        if is_down || chance!(self, 1 in 15) {
            Fault::Refused.count();
            return Err(TransportError::new("connection refused"));
        }
        self.pause(300).await;
        if chance!(self, 1 in 100) {
            Fault::NoResponse.count();
            return pending().await;
        }
        if chance!(self, 1 in 30) {
            Fault::TooMany.count();
            return Ok(failure(
                429,
                "TooManyRequests",
                json!({"retryAfterSeconds": self.pick(0..20)}),
            ));
        }
        if chance!(self, 1 in 40) {
            Fault::Internal.count();
            return Ok(failure(500, "InternalError", json!({})));
        }
        if chance!(self, 1 in 40) {
            Fault::Html.count();
            return Ok(response(
                502,
                "text/html",
                "<html>\nbad gateway\n</html>".to_owned(),
            ));
        }
        let number = |name: &str| {
            parameters
                .get(name)
                .and_then(|text| text.parse::<u64>().ok())
        };
        let version = number("resourceVersion");
        if !parameters.contains_key("watch") {
            let token = parameters.get("continue").map(|token| (*token).to_owned());
            return self.list(version, number("limit"), token);
        }
        let timeout =
            Duration::from_secs(number("timeoutSeconds").expect("watches have a timeout"));
        let streams = parameters.get("sendInitialEvents") == Some(&"true");
        if streams && self.streaming != Streaming::Supported {
            Fault::NoStreams.count();
        }
        if streams && self.streaming == Streaming::Refused {
            return Ok(failure(422, "Invalid", json!({})));
        }
        let streams = streams && self.streaming == Streaming::Supported;
        if let Some(refusal) = self.refuse(version) {
            if refusal.0 == 410 {
                Fault::ExpiredWatch.count();
            }
            if streams || self.pick(0..2) == 0 {
                let line =
                    json!({"type": "ERROR", "object": status(refusal.0, refusal.1, refusal.2)});
                return Ok(response(200, "application/json", format!("{line}\n")));
            }
            return Ok(failure(refusal.0, refusal.1, refusal.2));
        }
        let lines = feed::lines(
            Arc::clone(&self),
            version.unwrap_or_default(),
            streams,
            timeout,
        );
        let body = feed::bytes(self, lines);
        let frames = body.map(|piece| piece.map(|bytes| Frame::data(Bytes::from(bytes))));
        Ok(Response::new(Body::new(StreamBody::new(frames))))
    }

    /// The answer to a version that is too old or, on a replica that is behind, too new.
    fn refuse(&self, version: Option<u64>) -> Option<(u16, &'static str, Value)> {
        let version = version.filter(|version| *version > 0)?;
        if version < self.data.lock().compacted {
            return Some((410, "Expired", json!({})));
        }
        chance!(self, 1 in 20).then(|| {
            Fault::TooLarge.count();
            let causes =
                json!({"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1});
            (504, "Timeout", causes)
        })
    }

    fn list(
        self: &Arc<Self>,
        version: Option<u64>,
        limit: Option<u64>,
        token: Option<String>,
    ) -> Result<Response<Body>, TransportError> {
        if token.is_none() {
            // A list of a version is one that is not older, from a cache.
            let too_old = version.is_some_and(|version| version < self.data.lock().compacted);
            let is_refused = self.refuse(version);
            if let Some((code, reason, details)) =
                is_refused.filter(|_| !too_old || self.pick(0..2) == 0)
            {
                if code == 410 {
                    Fault::ExpiredList.count();
                }
                return Ok(failure(code, reason, details));
            }
        }
        let data = self.data.lock();
        let current = data.version;
        let (at, start) = match &token {
            Some(token) => {
                let (at, start) = token.split_once(':').expect("a token of this server");
                (at.parse().expect("a version"), start.to_owned())
            }
            None => {
                let oldest = match version {
                    None => current,
                    Some(0) => data.compacted,
                    Some(version) => version,
                };
                (self.pick(oldest..current + 1), String::new())
            }
        };
        if token.is_some() && (at < data.compacted || chance!(self, 1 in 10)) {
            Fault::ExpiredPage.count();
            return Ok(failure(410, "Expired", json!({})));
        }
        let objects = data.at(at);
        drop(data);
        let is_limited = token.is_some() || version != Some(0) || self.pages_any_state;
        // Small pages, so that there are several.
        let limit = limit.filter(|_| is_limited).map_or(usize::MAX, |_| 3);
        let mut rest = objects.range(start..).map(|(_, state)| state);
        let mut page: Vec<Value> = rest.by_ref().take(limit).map(State::json).collect();
        let mut metadata = json!({"resourceVersion": at.to_string()});
        if let Some(next) = rest.next() {
            metadata["continue"] = json!(format!("{at}:{}", next.name));
            Fault::Pages.count();
        }
        let in_order = page.clone();
        self.random.lock().shuffle(&mut page);
        if page != in_order {
            Fault::ReorderedPage.count();
        }
        let text = json!({"metadata": metadata, "items": page}).to_string();
        if chance!(self, 1 in 30) {
            Fault::ListBroken.count();
            // The connection breaks within the body.
            let half = text[..text.len() / 2].to_owned();
            let frames = [
                Ok(Frame::data(Bytes::from(half))),
                Err(TransportError::new("connection reset")),
            ];
            return Ok(Response::new(Body::new(StreamBody::new(stream::iter(
                frames,
            )))));
        }
        if chance!(self, 1 in 20) {
            Fault::SlowBytes.count();
            let world = Arc::clone(self);
            let frames = feed::slow(world, text.into_bytes());
            let frames = frames.map(|piece| piece.map(|bytes| Frame::data(Bytes::from(bytes))));
            return Ok(Response::new(Body::new(StreamBody::new(frames))));
        }
        Ok(response(200, "application/json", text))
    }
}

pub(crate) fn status(code: u16, reason: &str, details: Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": reason,
        "reason": reason, "details": details, "code": code,
    })
}

fn failure(code: u16, reason: &str, details: Value) -> Response<Body> {
    response(
        code,
        "application/json",
        status(code, reason, details).to_string(),
    )
}

fn response(code: u16, content_type: &str, body: String) -> Response<Body> {
    Response::builder()
        .status(code)
        .header("content-type", content_type)
        .body(Body::from(Bytes::from(body)))
        .expect("a valid response")
}

/// The transport of a world.
#[derive(Clone)]
pub(crate) struct Connection(pub(crate) Arc<World>);

impl Transport for Connection {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        Arc::clone(&self.0).answer(request).boxed()
    }
}
