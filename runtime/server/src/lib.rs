//! The host of an API server: `options` (flags) and `server` (listener, filters, controllers, life cycle), over
//! `apiloom-http`, the wire, and `apiloom-registry`, the meaning of the verbs.
//!
//! `registry` uses no HTTP status codes or headers; `http` uses no sockets or TLS; only `options` reads the
//! environment. Library code never exits the process and never panics on input.
//!
//! # Three traces
//!
//! A create: `server/listener.rs` -> `server/connection.rs` -> `server/filters.rs` (`http/request/request_info.rs`: the path;
//! `auth/authenticate.rs`: the user; `http/verbs/call.rs`: query, verb, deadline; limits; `auth/authorize.rs`: allowed or not) ->
//! `http/api.rs` (the deadlines) -> `http/sources/resources.rs`, `http/verbs/route.rs` (the endpoint, and whether it takes the verb) ->
//! `http/verbs/resource.rs` (form and format) -> `registry/large.rs` (polls a large document off the threads of other requests;
//! `server/attended.rs` gives its request a task of its own) -> `http/verbs/create.rs` (formats, body, options) ->
//! `registry/writes/decode.rs` (prune, default, strict fields) -> `registry/writes/create.rs` (generated names, uid and times; owners of
//! fields in `owners`, admission and strategy in `rules.rs`, validation in `judge.rs`) -> `registry/objects/prepared_object.rs` (bytes) ->
//! `registry/writes/commit.rs` -> `storage` (a revision) -> `http/shape/encode.rs` (201). A test counts the functions on this way.
//! Beside it, the watch cache takes the change in `storage/src/cache/fill.rs`.
//!
//! All work on a document ends with its deadline and its client. A request is polled within the scope of an interrupt
//! (`schema/src/interrupt.rs`), which is set at the deadline or when the request is dropped. What loops over values asks it for each of
//! them, which costs a count and now and then a look at the clock, and returns early with an error or a part of its result; so it is asked
//! once more between the steps (`RequestContext::pause`), before anything is stored (`writes/commit.rs`), and before the answer. What others
//! share is made apart from it: schemas, stored objects, conversions. A search for a pattern that may take long is made in steps
//! (`schema/src/regexp/stepped.rs`).
//!
//! A list: the same as far as `http/verbs/resource.rs` -> `http/verbs/list.rs` -> `registry/reads/list.rs` (page and state; selectors in
//! `registry/reads/selection.rs`) -> `registry/reads/cached.rs` (waits for the state of the cache, selects) or the store ->
//! `registry/objects/items.rs` (the objects, one after the other while the client reads; `registry/objects/readers.rs` limits
//! slow ones) -> `http/shape/encode.rs` (JSON, YAML, Table, in chunks).
//!
//! A watch: `http/verbs/watch.rs` -> `registry/reads/watch.rs` (initial events, then changes) -> `registry/reads/cached.rs` (selects
//! and converts each change) <- a cursor of `storage/src/cache/cursor.rs`, woken by the index of what it selects ->
//! `http/shape/event_key.rs` (an event is encoded once for all watchers of the same form and format: its bytes are kept with the
//! change, by `storage/src/cache/encodings.rs`; those of the objects that a watch begins with are kept for half a second, by
//! `registry/endpoint/first_encodings.rs`) -> `server/streams.rs`.

pub mod options;
pub mod server;
pub mod webhook;

pub use apiloom_http as http;
pub use apiloom_kinds as kinds;
pub use apiloom_registry as registry;
pub use apiloom_registry::auth;
pub use apiloom_registry::{
    Admission, AdmissionContext, AdmissionRequest, AdmittedObject, CreateOptions,
    CreateSubresource, GetSubresource, Handler, ListOptions, Lister, ObjectEvent, ObjectEvents,
    ObjectList, Operation, Reader, RequestContext, Strategy, Subresource, SubresourceRequest,
    UpdateSubresource, Writer,
};
/// The attribute for impls of [`Admission`], [`Handler`], [`Reader`] and [`Writer`], whose methods are asynchronous.
pub use async_trait::async_trait;
pub use server::{
    Backend, BoundServer, Builder, Capability, CapabilityContext, Config, ControllerNames,
    Endpoints, HookContext, Host, InProcess, Loopback, Part, Program, Server, ServerError, host,
    services,
};
