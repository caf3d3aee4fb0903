//! What a client may do with the objects of a kind is decided by the traits of its verbs.

use apiloom::meta::kind::verbs;
use apiloom::prelude::*;

/// Rate is only read.
#[apiloom::resource(group = "example.com", version = "v1", namespaced, readonly)]
pub struct Rate {
    pub metadata: ObjectMeta,
}

/// Ledger has a client with methods of its own.
#[apiloom::resource(group = "example.com", version = "v1", namespaced, no_client_verbs)]
pub struct Ledger {
    pub metadata: ObjectMeta,
}

fn get<K: verbs::Get>(_: &K) {}
fn update<K: verbs::Update>(_: &K) {}
fn update_status<K: verbs::HasStatus>(_: &K) {}
fn scale<K: verbs::HasScale>(_: &K) {}

pub fn change(rate: &Rate, ledger: &Ledger) {
    get(rate);
    update(rate);
    update_status(rate);
    scale(rate);
    get(ledger);
}

fn main() {}
