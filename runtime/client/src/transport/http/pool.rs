//! The connections to one server. Those of HTTP/2 are shared up to a number of streams; those of HTTP/1.1 are idle or in use.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use parking_lot::Mutex;

use super::connect::{self, BoxStream};
use super::connection::{Lease, LeaseEnd, Sender};
use super::origin::Origin;
use super::settings::Settings;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::transport::{Body, TransportError};

/// How long an idle connection of HTTP/1.1 is kept: less than servers keep theirs, which is 90 seconds and more.
const IDLE: Duration = Duration::from_secs(60);

/// Most idle connections of HTTP/1.1.
const MAX_IDLE: usize = 32;

/// The connections to one server.
pub(super) struct Pool {
    origin: Origin,
    settings: Settings,
    state: Mutex<State>,
    /// Held while a connection is made, as long as the server may speak HTTP/2: then all who wait can share it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    #[cfg(feature = "tls")]
    tls: Option<Arc<Tls>>,
    /// Incremented by each change of the TLS options: connections of another generation are not used again.
    generation: u64,
    /// Whether the last connection was of HTTP/1.1.
    is_http1: bool,
    shared: Vec<Shared>,
    idle: Vec<Idle>,
}

/// A connection of HTTP/2.
struct Shared {
    sender: http2::SendRequest<Body>,
    /// One reference is the pool's, each other one a stream's.
    streams: Arc<()>,
}

/// A connection of HTTP/1.1 without a request.
struct Idle {
    sender: http1::SendRequest<Body>,
    since: tokio::time::Instant,
}

impl Pool {
    pub(super) fn new(
        origin: Origin,
        settings: Settings,
        #[cfg(feature = "tls")] tls: Option<Tls>,
    ) -> Self {
        let state = State {
            #[cfg(feature = "tls")]
            tls: tls.map(Arc::new),
            ..State::default()
        };
        Self {
            origin,
            settings,
            state: Mutex::new(state),
            connecting: tokio::sync::Mutex::new(()),
        }
    }

    #[cfg(feature = "tls")]
    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    #[cfg(feature = "tls")]
    pub(super) fn set_tls(&self, tls: Tls) {
        let mut state = self.state.lock();
        state.tls = Some(Arc::new(tls));
        state.generation += 1;
        state.shared.clear();
        state.idle.clear();
    }

    /// A connection that takes a request: one that exists, or a new one.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, TransportError> {
        if let Some(lease) = self.existing() {
            return Ok(lease);
        }
        let is_http1 = self.state.lock().is_http1 || !self.origin.is_https;
        let _guard = if is_http1 {
            None
        } else {
            let guard = self.connecting.lock().await;
            if let Some(lease) = self.existing() {
                return Ok(lease);
            }
            Some(guard)
        };
        self.connect(false).await
    }

    /// A new connection of HTTP/1.1, which the response of its request may switch to another protocol.
    pub(super) async fn connect_for_upgrade(self: &Arc<Self>) -> Result<Lease, TransportError> {
        self.connect(true).await
    }

    /// Takes back a connection of HTTP/1.1 whose response has ended.
    fn give_back(&self, sender: http1::SendRequest<Body>, generation: u64) {
        let mut state = self.state.lock();
        let is_kept = state.generation == generation && state.idle.len() < MAX_IDLE;
        if is_kept && !sender.is_closed() {
            let since = tokio::time::Instant::now();
            state.idle.push(Idle { sender, since });
        }
    }

    fn existing(self: &Arc<Self>) -> Option<Lease> {
        let mut state = self.state.lock();
        state.shared.retain(|shared| !shared.sender.is_closed());
        state
            .idle
            .retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < IDLE);
        let generation = state.generation;
        let most = self.settings.max_streams;
        // The oldest one with room: so newer ones become idle first.
        let has_room = |shared: &&Shared| Arc::strong_count(&shared.streams) <= most;
        if let Some(shared) = state.shared.iter().find(has_room) {
            return Some(Lease {
                sender: Sender::Http2(shared.sender.clone()),
                end: stream_end(Arc::clone(&shared.streams)),
            });
        }
        // The last one used: the others may reach their time.
        let at = state.idle.iter().rposition(|idle| idle.sender.is_ready())?;
        let idle = state.idle.remove(at);
        Some(Lease {
            sender: Sender::Http1(idle.sender),
            end: self.idle_end(generation),
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

    async fn connect(self: &Arc<Self>, for_upgrade: bool) -> Result<Lease, TransportError> {
        let most = self.settings.connect_timeout;
        let connecting = tokio::time::timeout(most, self.connection(for_upgrade));
        let connected = connecting.await.map_err(|_| {
            TransportError::unsent(format!("no connection to {} within {most:?}", self.origin))
        })?;
        let (sender, generation) = connected?;
        let mut state = self.state.lock();
        let end = match &sender {
            Sender::Http1(_) => {
                state.is_http1 |= !for_upgrade;
                let mut end = self.idle_end(generation);
                if for_upgrade {
                    end.give_back = None;
                }
                end
            }
            Sender::Http2(shared) => {
                state.is_http1 = false;
                let streams = Arc::new(());
                if state.generation == generation {
                    state.shared.push(Shared {
                        sender: shared.clone(),
                        streams: Arc::clone(&streams),
                    });
                }
                stream_end(streams)
            }
        };
        Ok(Lease { sender, end })
    }

    async fn connection(&self, for_upgrade: bool) -> Result<(Sender, u64), TransportError> {
        let unsent = |error: std::io::Error| {
            TransportError::unsent(format!("cannot connect to {}: {error}", self.origin))
        };
        let tcp = connect::tcp(&self.origin).await.map_err(unsent)?;
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
            let sender = connect::handshake(stream, is_http2).await?;
            return Ok((sender, generation));
        }
        let _ = (for_upgrade, tls);
        let stream: BoxStream = Box::pin(tcp);
        Ok((connect::handshake(stream, false).await?, generation))
    }
}

/// The end of a response of HTTP/2.
fn stream_end(streams: Arc<()>) -> LeaseEnd {
    LeaseEnd {
        give_back: None,
        _stream: Some(streams),
    }
}
