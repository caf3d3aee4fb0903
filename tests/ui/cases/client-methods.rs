//! Methods of clients: what is wrong in the declaration. A type that generated code cannot name is in `tests/tests/generator_errors.rs`.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, verbs(skip = [update]),
    subresource(name = "approval", verbs = [get], writes = only(approval)),
    method("approve"),
    method(verb = get),
    method(name = "Approve", verb = get),
    method(name = "fn", verb = get),
    method(name = "gen", verb = get),
    method(name = "get", verb = get),
    method(name = "twice", verb = get),
    method(name = "twice", verb = get),
    method(name = "look", verb = watch),
    method(name = "make", verb = creat),
    method(name = "read", verb = get, input = Bad),
    method(name = "write", verb = update),
    method(name = "approve", verb = get, subresource = "aproval"),
    method(name = "disapprove", verb = patch, subresource = "approval"),
    method(name = "both", verb = get, output = 7),
)]
pub struct Bad {
    pub metadata: ObjectMeta,
    pub approval: Option<bool>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, no_client, method(name = "read", verb = get))]
pub struct Hidden {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, no_client_verbs, no_client)]
pub struct WithoutBoth {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, no_client_verbs, index(name = "text", path = text))]
pub struct Indexed {
    pub metadata: ObjectMeta,
    pub text: String,
}

#[apiloom::resource(group = "example.com", version = "v1", simple, no_client_verbs)]
pub struct Body {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, readonly, no_client_verbs, method(name = "book", verb = create))]
pub struct NotServed {
    pub metadata: ObjectMeta,
}

fn main() {}
