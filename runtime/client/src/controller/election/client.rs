//! Elections over a [`Client`]: its Leases, and the guard of a leader as a layer over its transport.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_meta::kind::SmolStr;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::UPGRADE;
use http::{Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};

use super::leadership::{Leadership, NotLeader, WriteGuard};
use super::lease::Lease;
use super::revocable::Revocable;
use super::store::{LeaseError, LeaseStore};
use crate::client::{ApiObject, ApiResource, Client, Kind, Namespaced, ResourceClient};
use crate::error::Error;
use crate::object::{HasMetadata, metadata_methods};
use crate::transport::{
    Body, PendingUpgrade, SendPermission, Transport, TransportError, UpgradedConnection,
};

impl HasMetadata for Lease {
    metadata_methods!(self => self.metadata);
}

all_verbs!(Lease);
impl apiloom_meta::kind::NamespacedKind for Lease {}

impl ApiObject for Lease {
    const HAS_TYPE_FIELDS: bool = true;
}

impl Kind for Lease {
    fn api_resource() -> ApiResource {
        ApiResource {
            group: SmolStr::new_static("coordination.k8s.io"),
            version: SmolStr::new_static("v1"),
            kind: SmolStr::new_static("Lease"),
            plural: SmolStr::new_static("leases"),
        }
    }
}

/// A Lease that a client reads and writes.
///
/// The client should be another one than that of the leader's work, which the guard stops.
#[derive(Clone, Debug)]
pub struct ClientLease {
    leases: ResourceClient<Lease, Namespaced>,
    namespace: String,
    name: String,
}

impl ClientLease {
    /// The Lease with this namespace and name; it is created by the first leader.
    pub fn new(client: &Client, namespace: &str, name: &str) -> Self {
        Self {
            leases: client.namespaced(namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

fn lease_error(error: Error) -> LeaseError {
    if error.is_conflict() || error.is_already_exists() {
        return LeaseError::Conflict;
    }
    match error.code() {
        Some(400 | 401 | 403 | 404 | 405 | 422) => LeaseError::Refused(error.to_string()),
        _ => LeaseError::Other(error.into()),
    }
}

impl LeaseStore for ClientLease {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        async {
            let found = self.leases.get(&self.name).optional().await;
            found.map_err(lease_error)
        }
        .boxed()
    }

    fn create(&self, mut lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        let resource = self.leases.resource();
        lease
            .other
            .insert("apiVersion".to_owned(), resource.api_version().into());
        lease
            .other
            .insert("kind".to_owned(), (*resource.kind).into());
        lease.metadata.namespace = Some(self.namespace.clone());
        lease.metadata.name = Some(self.name.clone());
        async move { self.leases.create(&lease).await.map_err(lease_error) }.boxed()
    }

    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async move { self.leases.update(&lease).await.map_err(lease_error) }.boxed()
    }
}

impl Client {
    /// The same client, which writes only while this process leads: over a [`GuardedTransport`].
    #[must_use]
    pub fn guarded(&self, leadership: &Leadership) -> Self {
        let guard = leadership.guard().clone();
        self.wrap_transport(|transport| GuardedTransport::new(transport, guard))
    }
}

/// A transport that sends requests other than reads only while a guard permits it: see [`Client::guarded`]. A write that has
/// no response when the permission ends is given up; the server may still execute it within the time for which others wait.
///
/// A request with `Upgrade`, such as that of a WebSocket, is a write: what is sent over its socket can change anything. The
/// socket, and a response of unknown length to another write, are closed when the permission ends; a socket over HTTP/2 takes its
/// whole connection with it if bytes wait that the server has not taken yet. Reads, also logs and watches that are open, change
/// nothing and go on. The connection of a response is that of [`upgraded`](crate::transport::upgraded).
///
/// The guard is asked before a request is passed on, each time that it makes progress, and before each piece of its body goes
/// to the connection; [`HttpTransport`](crate::transport::HttpTransport) sends pieces of at most 64 KiB. It is no fence: what a
/// connection got of a write before the process stood still, it may send later. Systems that must refuse that too compare the
/// [`term`](Leadership::term).
#[derive(Clone)]
pub struct GuardedTransport {
    inner: Arc<dyn Transport>,
    guard: WriteGuard,
}

impl GuardedTransport {
    /// Guards a transport.
    pub fn new(inner: Arc<dyn Transport>, guard: WriteGuard) -> Self {
        Self { inner, guard }
    }
}

impl Transport for GuardedTransport {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let is_read = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        // What is sent over a socket can be a write.
        if is_read && !request.headers().contains_key(UPGRADE) {
            return self.inner.call(request);
        }
        let Self { inner, guard } = self.clone();
        async move {
            // Closed, so that clients do not retry: a guard never opens again.
            guard.check().map_err(TransportError::closed)?;
            let mut request = request.map(|body| {
                let guard = guard.clone();
                Body::new(GuardedBody { body, guard })
            });
            add_permission(&mut request, &guard);
            let mut call = inner.call(request);
            let guarded = poll_fn(|cx| match guard.check() {
                Ok(_) => call.poll_unpin(cx),
                Err(error) => Poll::Ready(Err(TransportError::new(error))),
            });
            // A renewal meanwhile prolongs the permission.
            let response = tokio::select! {
                response = guarded => response?,
                () = guard.closed() => return Err(TransportError::new(NotLeader)),
            };
            Ok(close_with(response, &guard))
        }
        .boxed()
    }
}

/// Has a transport that reads the body before it sends it ask the guard again.
fn add_permission(request: &mut Request<Body>, guard: &WriteGuard) {
    let guard = guard.clone();
    let permission = SendPermission::new(move || match guard.check() {
        Ok(_) => Ok(()),
        Err(error) => Err(TransportError::new(error)),
    });
    let extensions = request.extensions_mut();
    let permission = match extensions.remove::<SendPermission>() {
        Some(outer) => outer.and(permission),
        None => permission,
    };
    extensions.insert(permission);
}

/// The response to a write, whose socket or stream is closed when the permission ends.
fn close_with(mut response: Response<Body>, guard: &WriteGuard) -> Response<Body> {
    if let Some(connection) = PendingUpgrade::take(&mut response) {
        let guard = guard.clone();
        let connection = async move {
            let connection = connection.await?;
            Ok(UpgradedConnection::new(Revocable::new(connection, guard)))
        };
        PendingUpgrade::put(&mut response, connection.boxed());
        // The body is empty, and holds the stream of HTTP/2.
        return response;
    }
    // An answer with an end tells what a write did that was executed.
    if response.body().size_hint().exact().is_some() || response.body().is_end_stream() {
        return response;
    }
    let guard = guard.clone();
    response.map(|body| Body::new(Revocable::new(body, guard)))
}

/// The body of a write, which connections read when they send it.
struct GuardedBody {
    body: Body,
    guard: WriteGuard,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        match self.guard.check() {
            Ok(_) => Pin::new(&mut self.body).poll_frame(cx),
            Err(error) => Poll::Ready(Some(Err(TransportError::new(error)))),
        }
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl std::fmt::Debug for GuardedTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let guard = &self.guard;
        f.debug_tuple("GuardedTransport").field(guard).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::{advance, sleep};

    use super::super::tests::{elector, lead, stop};
    use super::super::{ElectionConfig, LeaderElector};
    use super::*;

    /// A server of objects by their paths: POST, PUT with the version that was read, GET.
    #[derive(Clone, Default)]
    struct Api(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        objects: HashMap<String, Value>,
        requests: Vec<String>,
        version: u64,
        is_stuck: bool,
    }

    impl State {
        fn answer(&mut self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
            self.requests.push(format!("{method} {path}"));
            let status = |code: u16, reason: &str| {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason});
                (code, status)
            };
            if method == Method::GET {
                let found = self.objects.get(path).cloned();
                return found.map_or_else(|| status(404, "NotFound"), |found| (200, found));
            }
            let mut object: Value = serde_json::from_slice(body).expect("an object");
            let mut path = path.to_owned();
            if method == Method::POST {
                path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
            }
            let stored = self.objects.get(&path);
            if method == Method::POST && stored.is_some() {
                return status(409, "AlreadyExists");
            }
            let version = stored.map(|stored| &stored["metadata"]["resourceVersion"]);
            if method == Method::PUT && version != Some(&object["metadata"]["resourceVersion"]) {
                return status(409, "Conflict");
            }
            self.version += 1;
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.objects.insert(path, object.clone());
            (200, object)
        }
    }

    impl Transport for Api {
        fn call(
            &self,
            request: Request<Body>,
        ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
            let api = self.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect(1 << 20).await.expect("a body");
                if head.method != Method::GET && api.0.lock().unwrap().is_stuck {
                    std::future::pending::<()>().await;
                }
                let mut state = api.0.lock().unwrap();
                let (code, answer) = state.answer(&head.method, head.uri.path(), &body);
                let body = Body::from(Bytes::from(answer.to_string()));
                let response = Response::builder().status(code);
                let response = response
                    .header("content-type", "application/json")
                    .body(body);
                Ok(response.expect("a response"))
            }
            .boxed()
        }
    }

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/test";

    fn candidate(api: &Api, identity: &str) -> LeaderElector {
        let client = Client::new(api.clone());
        let lease = ClientLease::new(&client, "kube-system", "test");
        LeaderElector::new(lease, identity, ElectionConfig::default()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn trap_43_a_client_keeps_the_fields_of_a_lease_that_it_does_not_know() {
        let api = Api::default();
        let (leadership, run) = lead(candidate(&api, "a")).await;
        let stored = || api.0.lock().unwrap().objects[PATH].clone();
        let lease = stored();
        assert_eq!(lease["apiVersion"], "coordination.k8s.io/v1");
        assert_eq!(lease["kind"], "Lease");
        assert_eq!(lease["metadata"]["namespace"], "kube-system");
        assert_eq!(lease["spec"]["holderIdentity"], "a");
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
        assert_eq!(lease["spec"]["leaseTransitions"], 0);
        // Another program changes it, so the next renewal has an old version.
        {
            let mut state = api.0.lock().unwrap();
            let lease = state.objects.get_mut(PATH).unwrap();
            lease["spec"]["strategy"] = "Other".into();
            lease["status"] = json!({"new": true});
            lease["metadata"]["resourceVersion"] = "99".into();
        }
        sleep(Duration::from_secs(60)).await;
        leadership.guard().check().unwrap();
        stop(run).await;
        let lease = stored();
        assert_eq!(lease["spec"]["strategy"], "Other");
        assert_eq!(lease["status"], json!({"new": true}));
        assert_eq!(lease["spec"]["holderIdentity"], "");
        let keys: Vec<_> = lease.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["apiVersion", "kind", "metadata", "spec", "status"]);
    }

    #[tokio::test(start_paused = true)]
    async fn two_clients_elect_one_leader_after_the_other() {
        let api = Api::default();
        let (first, run) = lead(candidate(&api, "a")).await;
        let next = tokio::spawn(lead(candidate(&api, "b")));
        sleep(Duration::from_secs(60)).await;
        first.guard().check().unwrap();
        assert!(!next.is_finished());
        stop(run).await;
        let (second, run) = next.await.unwrap();
        assert_eq!(second.term(), 1);
        stop(run).await;
    }

    #[tokio::test(start_paused = true)]
    async fn trap_42_a_guarded_client_writes_only_while_it_leads() {
        let api = Api::default();
        let server = super::super::tests::Server::default();
        let (leadership, run) = lead(elector(&server, "a")).await;
        let client = Client::new(api.clone()).guarded(&leadership);
        let leases = client.namespaced::<Lease>("kube-system");
        let mut lease = Lease::default();
        lease.metadata.name = Some("test".to_owned());
        lease = leases.create(&lease).await.unwrap();
        // A write without a response ends with the permission, before others may lead.
        api.0.lock().unwrap().is_stuck = true;
        server.set_down(true);
        let start = tokio::time::Instant::now();
        leases.update(&lease).await.unwrap_err();
        assert!(start.elapsed() <= Duration::from_secs(10));
        // The clock of the machine may have been ahead of the paused one; now the permission has ended by both.
        sleep(Duration::from_secs(10)).await;
        api.0.lock().unwrap().is_stuck = false;
        let requests = api.0.lock().unwrap().requests.len();
        let error = leases.update(&lease).await.unwrap_err();
        assert!(matches!(&error, Error::Closed(_)), "{error:?}");
        assert!(error.to_string().contains("not the leader"), "{error}");
        leases.delete("test").await.unwrap_err();
        assert_eq!(
            api.0.lock().unwrap().requests.len(),
            requests,
            "nothing was sent"
        );
        let requests = api.0.lock().unwrap().requests.len();
        let socket = client.request(Method::GET, "/api/v1/namespaces/a/pods/b/exec");
        let socket = socket.header("Upgrade", "websocket").stream();
        let error = socket.await.map(drop).unwrap_err();
        assert!(error.to_string().contains("not the leader"), "{error}");
        assert_eq!(
            api.0.lock().unwrap().requests.len(),
            requests,
            "no socket was asked for"
        );
        leases.get("test").await.unwrap();
        run.task.await.unwrap().unwrap_err();
    }

    /// Keeps the body of a request until it is told to read it.
    #[derive(Clone, Default)]
    struct Slow {
        proceed: Arc<tokio::sync::Notify>,
        body: Arc<Mutex<Option<Body>>>,
    }

    impl Transport for Slow {
        fn call(
            &self,
            request: Request<Body>,
        ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
            let slow = self.clone();
            async move {
                *slow.body.lock().unwrap() = Some(request.into_body());
                slow.proceed.notified().await;
                Ok(Response::new(Body::empty()))
            }
            .boxed()
        }
    }

    fn put(transport: &GuardedTransport) -> BoxFuture<'static, Result<(), TransportError>> {
        let body = Body::from(Bytes::from_static(b"{}"));
        let request = Request::put("/").body(body).expect("a request");
        let call = transport.call(request);
        async { call.await.map(drop) }.boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn trap_42_a_slow_write_goes_on_while_the_lease_is_renewed() {
        let server = super::super::tests::Server::default();
        let (leadership, run) = lead(elector(&server, "a")).await;
        let slow = Slow::default();
        let guarded = GuardedTransport::new(Arc::new(slow.clone()), leadership.guard().clone());
        let write = tokio::spawn(put(&guarded));
        sleep(Duration::from_secs(25)).await;
        slow.proceed.notify_one();
        write.await.unwrap().unwrap();
        // Another one ends with the permission.
        let write = tokio::spawn(put(&guarded));
        sleep(Duration::from_secs(25)).await;
        server.set_down(true);
        let start = tokio::time::Instant::now();
        let error = write.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("not the leader"), "{error}");
        assert!(start.elapsed() <= Duration::from_secs(10));
        run.task.await.unwrap().unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn trap_42_a_write_that_a_pause_of_the_process_interrupts_is_not_continued() {
        let server = super::super::tests::Server::default();
        let (leadership, run) = lead(elector(&server, "a")).await;
        let slow = Slow::default();
        let guarded = GuardedTransport::new(Arc::new(slow.clone()), leadership.guard().clone());
        slow.proceed.notify_one();
        put(&guarded).await.unwrap();
        let body = slow.body.lock().unwrap().take().expect("a body");
        assert_eq!(body.collect(2).await.unwrap(), "{}");
        let mut write = put(&guarded);
        assert!((&mut write).now_or_never().is_none());
        server.set_down(true);
        // No task runs meanwhile, and the connection could continue when they do.
        advance(Duration::from_secs(20)).await;
        slow.proceed.notify_one();
        let body = slow.body.lock().unwrap().take().expect("a body");
        let error = body.collect(2).await.unwrap_err();
        assert!(error.to_string().contains("not the leader"), "{error}");
        let error = write.await.unwrap_err();
        assert!(error.to_string().contains("not the leader"), "{error}");
        run.task.await.unwrap().unwrap_err();
    }
}
