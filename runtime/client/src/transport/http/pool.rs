//! The connections to one server. Those of HTTP/2 are shared up to a number of streams; those of HTTP/1.1 are idle or in use.
//!
//! A request without a connection waits, and gets the first one that has room. Connections are made in tasks of their own:
//! a caller that gives up ends none that others wait for, and requests that need several do not wait for one after the other.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::connect::{self, BoxStream, NewConnection};
use super::connection::{Http1Sender, Http2Sender, Lease, LeaseEnd, Sender, StreamEnd};
use super::origin::Origin;
use super::server_settings::{LiveSettings, ServerSettings};
use super::settings::Settings;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::transport::TransportError;

/// How long an idle connection of HTTP/1.1 is kept: less than servers keep theirs, which is 90 seconds and more.
const IDLE: Duration = Duration::from_secs(60);

/// Most idle connections of HTTP/1.1.
const MAX_IDLE: usize = 32;

/// The connections to one server.
pub(super) struct Pool {
    origin: Origin,
    /// Where connections go instead of the host and port of the origin.
    peer: Option<(String, u16)>,
    settings: Settings,
    state: Mutex<State>,
}

struct State {
    #[cfg(feature = "tls")]
    tls: Option<Arc<Tls>>,
    /// Incremented by each change of the TLS options: connections of another generation are not used again.
    generation: u64,
    /// Whether the last connection was of HTTP/1.1.
    is_http1: bool,
    /// How many streams the newest connection of HTTP/2 allows, or the last one allowed.
    streams: usize,
    /// The newest one is the last.
    shared: Vec<SharedConnection>,
    idle: Vec<Idle>,
    /// The requests without a connection, the first one in front.
    waiting: VecDeque<Waiting>,
    /// Number of connections that are being made.
    connecting: usize,
}

/// A request without a connection.
struct Waiting {
    sender: oneshot::Sender<Result<Lease, TransportError>>,
    /// Where a connection can be made for it: what ends a stream may be outside of every runtime.
    runtime: Handle,
}

/// A connection of HTTP/2, whose streams several requests have at the same time.
struct SharedConnection {
    sender: Http2Sender,
    /// One reference is the pool's, each other one a stream's.
    streams: Arc<()>,
    /// What the server allows at present. It may lower the number of streams below those that there are.
    settings: LiveSettings,
    /// Most streams by the settings of the transport.
    max_streams: usize,
}

/// A connection of HTTP/1.1 without a request.
struct Idle {
    sender: Http1Sender,
    since: tokio::time::Instant,
}

impl SharedConnection {
    fn has_room(&self) -> bool {
        !self.sender.is_closed() && Arc::strong_count(&self.streams) <= self.most_streams()
    }

    fn most_streams(&self) -> usize {
        self.settings().most_streams.min(self.max_streams)
    }

    fn settings(&self) -> ServerSettings {
        self.settings.borrow().unwrap_or_default()
    }
}

impl Pool {
    pub(super) fn new(
        origin: Origin,
        peer: Option<(String, u16)>,
        settings: Settings,
        #[cfg(feature = "tls")] tls: Option<Tls>,
    ) -> Self {
        let state = State {
            #[cfg(feature = "tls")]
            tls: tls.map(Arc::new),
            generation: 0,
            is_http1: settings.is_http1_only || !origin.is_https,
            streams: settings.max_streams,
            shared: Vec::new(),
            idle: Vec::new(),
            waiting: VecDeque::new(),
            connecting: 0,
        };
        Self {
            origin,
            peer,
            settings,
            state: Mutex::new(state),
        }
    }

    #[cfg(feature = "tls")]
    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    #[cfg(feature = "tls")]
    pub(super) fn set_tls(&self, tls: Tls) {
        let former = {
            let mut state = self.state.lock();
            state.tls = Some(Arc::new(tls));
            state.generation += 1;
            state.idle.clear();
            std::mem::take(&mut state.shared)
        };
        drop(former);
    }

    /// A connection that takes a request: one that exists, or a new one.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, TransportError> {
        let runtime = Handle::try_current().map_err(TransportError::unsent)?;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if let Some(lease) = self.existing(&mut state) {
                return Ok(lease);
            }
            state.waiting.push_back(Waiting { sender, runtime });
        }
        self.serve_waiting();
        let lease = receiver.await;
        lease.unwrap_or_else(|_| Err(TransportError::unsent("the connections were dropped")))
    }

    /// A stream of a connection of HTTP/2 on which the server takes WebSockets, if there is one with room.
    pub(super) fn existing_for_websocket(self: &Arc<Self>) -> Option<Lease> {
        let state = self.state.lock();
        let mut shared = state.shared.iter();
        let found =
            shared.find(|shared| shared.settings().has_extended_connect && shared.has_room());
        found.map(|shared| self.lease_of(shared))
    }

    fn lease_of(self: &Arc<Self>, shared: &SharedConnection) -> Lease {
        Lease {
            sender: Sender::Http2(shared.sender.clone()),
            end: self.stream_end(Arc::clone(&shared.streams)),
            is_reused: false,
        }
    }

    /// A new connection of HTTP/1.1, which the response of its request may switch to another protocol.
    pub(super) async fn connect_http1(self: &Arc<Self>) -> Result<Lease, TransportError> {
        let (connected, generation) = self.connect(true).await?;
        let sender = match connected {
            NewConnection::Http1(sender) => Sender::Http1(sender),
            NewConnection::Http2 { sender, .. } => Sender::Http2(sender),
        };
        Ok(Lease {
            sender,
            end: self.idle_end(generation),
            is_reused: false,
        })
    }

    /// Takes back a connection of HTTP/1.1 whose response has ended.
    fn give_back(self: &Arc<Self>, sender: Http1Sender, generation: u64) {
        {
            let mut state = self.state.lock();
            let is_kept = state.generation == generation && state.idle.len() < MAX_IDLE;
            if is_kept && !sender.requests.is_closed() {
                let since = tokio::time::Instant::now();
                state.idle.push(Idle { sender, since });
            }
        }
        self.serve_waiting();
    }

    /// Drops the connections that have ended, without the lock: a request that one of them left behind is given back thereby.
    fn forget_ended(&self) {
        let ended: Vec<SharedConnection> = {
            let mut state = self.state.lock();
            let ended = state
                .shared
                .extract_if(.., |shared| shared.sender.is_closed());
            ended.collect()
        };
        drop(ended);
    }

    /// A connection with room for a request.
    fn existing(self: &Arc<Self>, state: &mut State) -> Option<Lease> {
        state
            .idle
            .retain(|idle| !idle.sender.requests.is_closed() && idle.since.elapsed() < IDLE);
        let generation = state.generation;
        // The oldest one with room: so newer ones become idle first.
        if let Some(shared) = state.shared.iter().find(|shared| shared.has_room()) {
            return Some(self.lease_of(shared));
        }
        // The last one used: the others may reach their time.
        let at = state
            .idle
            .iter()
            .rposition(|idle| idle.sender.requests.is_ready())?;
        let idle = state.idle.remove(at);
        Some(Lease {
            sender: Sender::Http1(idle.sender),
            end: self.idle_end(generation),
            is_reused: true,
        })
    }

    /// The end of a response of HTTP/1.1. The pool is not kept alive by it.
    fn idle_end(self: &Arc<Self>, generation: u64) -> LeaseEnd {
        let pool = Arc::downgrade(self);
        LeaseEnd {
            give_back: Some(Box::new(move |sender| {
                if let Some(pool) = pool.upgrade() {
                    pool.give_back(sender, generation);
                }
            })),
            _stream: None,
        }
    }

    /// The end of a response of HTTP/2.
    fn stream_end(self: &Arc<Self>, streams: Arc<()>) -> LeaseEnd {
        let pool = Arc::downgrade(self);
        LeaseEnd {
            give_back: None,
            _stream: Some(StreamEnd::new(move || {
                drop(streams);
                if let Some(pool) = pool.upgrade() {
                    pool.serve_waiting();
                }
            })),
        }
    }

    /// Gives the connections that have room to the requests that wait, and makes more for the others.
    fn serve_waiting(self: &Arc<Self>) {
        self.forget_ended();
        loop {
            // A lease is dropped without the lock: its end needs it.
            let (waiting, lease) = {
                let mut state = self.state.lock();
                state.drop_cancelled();
                if state.waiting.is_empty() {
                    return;
                }
                let Some(lease) = self.existing(&mut state) else {
                    let needed = self.needed(&mut state);
                    drop(state);
                    return begin(needed);
                };
                (state.waiting.pop_front(), lease)
            };
            if let Some(waiting) = waiting {
                let _ = waiting.sender.send(Ok(lease));
            }
        }
    }

    /// The connections that requests which wait need besides those that are being made. They are begun without the lock.
    fn needed(self: &Arc<Self>, state: &mut State) -> Vec<(Handle, Attempt)> {
        state.drop_cancelled();
        if let Some(newest) = state.shared.last() {
            state.streams = newest.most_streams();
        }
        // Until a server has shown that it speaks HTTP/1.1, its connections are expected to be shared. One that allows no
        // streams gets one connection, which shows when it allows some again, or ends.
        let (most, share) = match state.streams {
            _ if state.is_http1 => (state.waiting.len(), 1),
            0 => (usize::from(state.shared.is_empty()), usize::MAX),
            streams => (state.waiting.len().div_ceil(streams), streams),
        };
        let mut missing = most.saturating_sub(state.connecting);
        if !state.is_http1 {
            let present = state.shared.len() + state.connecting;
            missing = missing.min(self.settings.max_connections.saturating_sub(present));
        }
        state.connecting += missing;
        // The last ones: those before them have their connections already.
        let runtimes = state.waiting.iter().rev().step_by(share).take(missing);
        let attempts = runtimes.map(|waiting| {
            let attempt = Attempt {
                pool: Arc::downgrade(self),
                share,
                result: None,
            };
            (waiting.runtime.clone(), attempt)
        });
        attempts.collect()
    }

    /// Makes a connection within the time for it, and its generation.
    async fn connect(&self, for_upgrade: bool) -> Result<(NewConnection, u64), TransportError> {
        let most = self.settings.connect_timeout;
        let connecting = tokio::time::timeout(most, self.connection(for_upgrade));
        connecting.await.map_err(|_| {
            TransportError::unsent(format!("no connection to {} within {most:?}", self.origin))
        })?
    }

    async fn connection(&self, for_upgrade: bool) -> Result<(NewConnection, u64), TransportError> {
        let unsent = |error: std::io::Error| {
            TransportError::unsent(format!("cannot connect to {}: {error}", self.origin))
        };
        let Origin { host, port, .. } = &self.origin;
        let (host, port) = self
            .peer
            .as_ref()
            .map_or((host, port), |(host, port)| (host, port));
        let tcp = connect::tcp(host, *port).await.map_err(unsent)?;
        let (generation, tls) = {
            let state = self.state.lock();
            #[cfg(feature = "tls")]
            let tls = state.tls.clone();
            #[cfg(not(feature = "tls"))]
            let tls = ();
            (state.generation, tls)
        };
        #[cfg(feature = "tls")]
        if let Some(tls) = tls {
            let (stream, is_http2) = tls.connect(tcp, for_upgrade).await.map_err(unsent)?;
            return Ok((connect::handshake(stream, is_http2).await?, generation));
        }
        let _ = (for_upgrade, tls);
        let stream: BoxStream = Box::pin(tcp);
        Ok((connect::handshake(stream, false).await?, generation))
    }

    /// Uses a new connection: for the first request that waits, and for the others as soon as the server has said how many
    /// it takes at a time.
    async fn take(self: &Arc<Self>, connected: NewConnection, generation: u64) {
        let (sender, mut settings, end) = match connected {
            NewConnection::Http1(sender) => {
                self.state.lock().is_http1 = true;
                let lease = Lease {
                    sender: Sender::Http1(sender),
                    end: self.idle_end(generation),
                    is_reused: false,
                };
                if let Some(unused) = self.hand_over(lease)
                    && let Sender::Http1(sender) = unused.sender
                {
                    self.give_back(sender, generation);
                }
                return;
            }
            NewConnection::Http2 {
                sender,
                settings,
                end,
            } => (sender, settings, end),
        };
        let streams = Arc::new(());
        let first = Lease {
            sender: Sender::Http2(sender.clone()),
            end: self.stream_end(Arc::clone(&streams)),
            is_reused: false,
        };
        drop(self.hand_over(first));
        let most = self.settings.connect_timeout;
        let first_settings = settings.wait_for(Option::is_some);
        let Ok(Ok(_)) = tokio::time::timeout(most, first_settings).await else {
            tracing::debug!("a connection of HTTP/2 broke off before the server's settings");
            return;
        };
        {
            let mut state = self.state.lock();
            state.is_http1 = false;
            if state.generation == generation {
                state.shared.push(SharedConnection {
                    sender,
                    streams,
                    settings: settings.clone(),
                    max_streams: self.settings.max_streams,
                });
            }
        }
        // It forgets the connection when that ends, so the pool has it by now.
        tokio::spawn(follow(Arc::downgrade(self), settings, end));
    }

    /// Gives a connection to the first request that waits; back if there is none.
    fn hand_over(&self, mut lease: Lease) -> Option<Lease> {
        loop {
            let first = self.state.lock().waiting.pop_front();
            let Some(first) = first else {
                return Some(lease);
            };
            match first.sender.send(Ok(lease)) {
                Ok(()) | Err(Err(_)) => return None,
                Err(Ok(unused)) => lease = unused,
            }
        }
    }
}

/// Serves the requests that wait whenever the server of a connection allows another number of streams, and when the
/// connection ends.
async fn follow(
    pool: Weak<Pool>,
    mut settings: LiveSettings,
    mut end: oneshot::Receiver<Infallible>,
) {
    loop {
        let has_ended = tokio::select! {
            Ok(()) = settings.changed() => false,
            _ = &mut end => true,
        };
        let Some(pool) = pool.upgrade() else {
            return;
        };
        pool.serve_waiting();
        if has_ended {
            return;
        }
    }
}

/// Makes connections, each in the runtime of a request that needs it.
fn begin(attempts: Vec<(Handle, Attempt)>) {
    for (runtime, attempt) in attempts {
        runtime.spawn(attempt.run());
    }
}

impl State {
    /// Forgets requests whose callers gave up.
    fn drop_cancelled(&mut self) {
        self.waiting.retain(|waiting| !waiting.sender.is_closed());
    }
}

/// A connection that is being made for requests that wait. Also if its runtime ends, it leaves no request waiting for it.
struct Attempt {
    pool: Weak<Pool>,
    /// How many requests it is for.
    share: usize,
    /// `None` while it is being made.
    result: Option<Result<(), TransportError>>,
}

impl Attempt {
    async fn run(mut self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        self.result = Some(match pool.connect(false).await {
            Ok((connected, generation)) => {
                pool.take(connected, generation).await;
                Ok(())
            }
            Err(error) => Err(error),
        });
    }
}

impl Drop for Attempt {
    /// Ends the requests for which a connection could not be made, also those that came meanwhile: to wait as long again would
    /// tell them nothing else.
    fn drop(&mut self) {
        let Some(pool) = self.pool.upgrade() else {
            return;
        };
        let result = self.result.take();
        let result = result.unwrap_or_else(|| {
            let problem = "the runtime ended while a connection was being made";
            Err(TransportError::unsent(problem))
        });
        let failed: Vec<Waiting> = {
            let mut state = pool.state.lock();
            state.connecting -= 1;
            state.drop_cancelled();
            let number = match &result {
                Ok(()) => 0,
                Err(_) => self.share.min(state.waiting.len()),
            };
            state.waiting.drain(..number).collect()
        };
        if let Err(error) = result {
            for waiting in failed {
                let same = TransportError::unsent(error.to_string());
                let _ = waiting.sender.send(Err(same));
            }
        }
        pool.serve_waiting();
    }
}

#[cfg(test)]
mod tests;
