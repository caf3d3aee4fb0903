//! The scope of a kind is a trait: clients and informers of another scope do not compile.

use apiloom::meta::kind::{ClusterKind, NamespacedKind};
use apiloom::prelude::*;

/// Shelf is in a namespace.
#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Shelf {
    pub metadata: ObjectMeta,
}

/// Room is in none.
#[apiloom::resource(group = "example.com", version = "v1", cluster)]
pub struct Room {
    pub metadata: ObjectMeta,
}

/// Review is only a body, and has no path of its own.
#[apiloom::resource(group = "example.com", version = "v1", simple)]
pub struct Review {
    pub metadata: ObjectMeta,
}

fn namespaced<K: NamespacedKind>(_: &K) {}
fn cluster<K: ClusterKind>(_: &K) {}

pub fn read(shelf: &Shelf, room: &Room, review: &Review) {
    namespaced(shelf);
    cluster(shelf);
    cluster(room);
    namespaced(room);
    namespaced(review);
}

fn main() {}
