//! The version between: another name, another choice of policies, and parts that it does not know.

use apiloom::prelude::*;

use crate::v1;

/// Balancer spreads connections over backends.
#[apiloom::resource(group = "lb.example.com", version = "v1beta1", namespaced, spoke_of = v1::Balancer, status, shortname = "bal")]
pub struct Balancer {
    pub metadata: ObjectMeta,
    pub spec: BalancerSpec,
    pub status: Option<v1::BalancerStatus>,
}

/// BalancerSpec says what is listened to and where connections go.
#[apiloom::api(convert(peer = v1::BalancerSpec, hub_only(drain = true, session = None)))]
pub struct BalancerSpec {
    /// The class of balancers that it belongs to.
    pub class: String,
    /// How many connections it takes beside others.
    #[api(default = 1)]
    pub weight: i32,
    /// How long a connection may be idle.
    #[api(default = 60, convert(rename = timeout_seconds))]
    pub idle_seconds: i64,
    /// Which backend gets the next connection.
    #[api(default = Policy::RoundRobin)]
    pub policy: Policy,
    /// What a person has to say; the hub has no place for it.
    #[api(convert(drop))]
    pub comment: Option<String>,
    /// How it is found out whether a backend is well.
    pub health: Option<Health>,
    /// Where it listens.
    #[api(list = map(name))]
    pub listeners: Vec<Listener>,
    /// Where connections go, by name.
    pub backends: Option<BTreeMap<String, Backend>>,
    /// What is done with a connection, in this order.
    pub steps: Vec<Step>,
    /// What it is also known as.
    #[api(list = set)]
    pub aliases: Vec<String>,
}

/// Policy is a way to choose a backend. Any but `RoundRobin` is one that looks at the load.
#[apiloom::api(convert(peer = v1::Policy, with = (to_policy, from_policy)))]
#[derive(Copy)]
pub enum Policy {
    RoundRobin,
    ByLoad,
}

fn to_policy(policy: Policy) -> v1::Policy {
    match policy {
        Policy::RoundRobin => v1::Policy::RoundRobin,
        Policy::ByLoad => v1::Policy::LeastLoaded,
    }
}

fn from_policy(policy: v1::Policy) -> Policy {
    match policy {
        v1::Policy::RoundRobin => Policy::RoundRobin,
        v1::Policy::LeastLoaded | v1::Policy::Random => Policy::ByLoad,
    }
}

/// Health is how it is found out whether a backend is well.
#[apiloom::api(convert(peer = v1::Health, lossy(grpc)))]
#[api(union(allow_none))]
pub struct Health {
    /// A connection is opened.
    #[api(member = "Tcp")]
    pub tcp: Option<v1::TcpCheck>,
    /// A page is fetched.
    #[api(member = "Http")]
    pub http: Option<HttpCheck>,
}

/// HttpCheck fetches a page.
#[apiloom::api(convert(peer = v1::HttpCheck, lossy(expect)))]
pub struct HttpCheck {
    /// The path of the page.
    pub path: String,
}

/// Listener is an open port.
#[apiloom::api(convert(peer = v1::Listener, lossy(certificate)))]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// The port.
    pub port: i32,
    /// How many connections it takes.
    pub limits: Option<Limits>,
}

/// Limits bound connections.
#[apiloom::api(convert(peer = v1::Limits, lossy(burst)))]
pub struct Limits {
    /// How many at a time.
    pub connections: i32,
}

/// Backend is where connections go.
#[apiloom::api(convert(peer = v1::Backend, hub_only(weight = 1)))]
pub struct Backend {
    /// Its address.
    pub address: String,
}

/// Step is done with a connection.
#[apiloom::api(convert(peer = v1::Step, lossy(note)))]
pub struct Step {
    /// What is done.
    pub action: String,
}
