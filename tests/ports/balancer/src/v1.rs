//! The hub, which is stored: it says the most and has all the rules.

use apiloom::prelude::*;

/// Balancer spreads connections over backends.
#[apiloom::resource(group = "lb.example.com", version = "v1", namespaced, hub, storage, status, shortname = "bal",
    printcolumn(name = "Policy", path = spec.policy), printcolumn(name = "Ready", path = status.ready))]
pub struct Balancer {
    pub metadata: ObjectMeta,
    pub spec: BalancerSpec,
    pub status: Option<BalancerStatus>,
}

/// BalancerSpec says what is listened to and where connections go.
#[apiloom::api]
pub struct BalancerSpec {
    /// The class of balancers that it belongs to.
    #[api(immutable, len = 1..=20)]
    pub class: String,
    /// How many connections it takes beside others.
    #[api(default = 1, range = 0..=100)]
    pub weight: i32,
    /// How long a connection may be idle.
    #[api(default = 60, range = 1..=86400)]
    pub timeout_seconds: i64,
    /// Which backend gets the next connection.
    #[api(default = Policy::RoundRobin)]
    pub policy: Policy,
    /// Whether connections may end before the balancer does.
    pub drain: bool,
    /// What keeps a client on one backend.
    pub session: Option<Session>,
    /// How it is found out whether a backend is well.
    pub health: Option<Health>,
    /// Where it listens.
    #[api(list = map(name), items = ..=4)]
    pub listeners: Vec<Listener>,
    /// Where connections go, by name.
    pub backends: Option<BTreeMap<String, Backend>>,
    /// What is done with a connection, in this order.
    pub steps: Vec<Step>,
    /// What it is also known as.
    #[api(list = set)]
    pub aliases: Vec<String>,
}

/// Policy is a way to choose a backend.
#[apiloom::api]
#[derive(Copy)]
pub enum Policy {
    RoundRobin,
    LeastLoaded,
    Random,
}

/// Session keeps a client on one backend.
#[apiloom::api]
pub struct Session {
    /// The name of the cookie.
    #[api(len = 1..=20)]
    pub cookie: String,
}

/// Health is how it is found out whether a backend is well.
#[apiloom::api]
#[api(union(allow_none))]
pub struct Health {
    /// A connection is opened.
    #[api(member = "Tcp")]
    pub tcp: Option<TcpCheck>,
    /// A page is fetched.
    #[api(member = "Http")]
    pub http: Option<HttpCheck>,
    /// A method is called.
    #[api(member = "Grpc")]
    pub grpc: Option<GrpcCheck>,
}

/// TcpCheck opens a connection.
#[apiloom::api]
pub struct TcpCheck {
    /// The port, that of the backend when left out.
    #[api(range = 1..=65535)]
    pub port: Option<i32>,
}

/// HttpCheck fetches a page.
#[apiloom::api]
pub struct HttpCheck {
    /// The path of the page.
    pub path: String,
    /// The status that the answer must have; any good one when left out.
    #[api(range = 100..=599)]
    pub expect: Option<i32>,
}

/// GrpcCheck calls a method.
#[apiloom::api]
pub struct GrpcCheck {
    /// The service.
    pub service: String,
}

/// Listener is an open port.
#[apiloom::api]
pub struct Listener {
    /// Its name.
    #[api(len = 1..=20)]
    pub name: String,
    /// The port.
    #[api(range = 1..=65535)]
    pub port: i32,
    /// How many connections it takes.
    pub limits: Option<Limits>,
    /// The certificate that it shows.
    pub certificate: Option<String>,
}

/// Limits bound connections.
#[apiloom::api]
pub struct Limits {
    /// How many at a time.
    #[api(min = 0)]
    pub connections: i32,
    /// How many more for a moment.
    #[api(min = 0)]
    pub burst: Option<i32>,
}

/// Backend is where connections go.
#[apiloom::api]
pub struct Backend {
    /// Its address.
    #[api(len = 1..=40)]
    pub address: String,
    /// How many connections it takes beside others.
    #[api(default = 1, range = 0..=100)]
    pub weight: i32,
}

/// Step is done with a connection.
#[apiloom::api]
pub struct Step {
    /// What is done.
    pub action: String,
    /// Why.
    pub note: Option<String>,
}

/// BalancerStatus is what the balancer reports.
#[apiloom::api]
pub struct BalancerStatus {
    /// How many backends are well.
    #[api(min = 0)]
    pub ready: i32,
    /// How many connections were refused.
    #[api(monotonic)]
    pub refused: Option<i64>,
}
