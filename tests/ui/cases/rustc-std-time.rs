//! Times and durations of the standard library have no form that Kubernetes knows.

use std::time::{Duration as Std, SystemTime};

use apiloom::prelude::*;

type Alias = SystemTime;

#[apiloom::api]
pub struct Part {
    pub timeout: std::time::Duration,
    pub period: Option<Std>,
    pub at: Alias,
    pub all: BTreeMap<String, Vec<SystemTime>>,
    /// These are right.
    pub right: Duration,
    pub time: Option<Time>,
}

#[apiloom::api]
pub enum Choice {
    After(std::time::Duration),
}

fn main() {}
