//! The members of the etcd cluster: one connection each, one of them in use until it fails.
//!
//! A failed read is retried on the next member. A write is retried only if it is known that it was not executed;
//! otherwise the caller gets an error that says it is unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{
    Channel, Client, ConnectOptions, KvClient, LeaseClient, MaintenanceClient, WatchClient,
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::config::{ConnectError, EtcdConfig, EtcdTls};
use super::failure::Failure;
use super::version::reports_progress;

/// Timeout of a request: a paused member does not answer, and the request then counts as lost.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of a read on one member while there are other members to try.
const READ_PATIENCE: Duration = Duration::from_secs(3);

/// Timeout of a list: a page of ten thousand objects may be large, and pings detect a lost member earlier.
const SCAN_TIMEOUT: Duration = Duration::from_secs(60);

/// No new round over the members begins after this time: a member that restarts is back by then, and callers need an
/// answer.
pub(super) const RETRY_FOR: Duration = Duration::from_secs(3);

/// The pause between two rounds over all members.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A member in the same network connects in milliseconds.
const TCP_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// etcd closes connections of clients that ping more often than every 5 s.
const PING_INTERVAL: Duration = Duration::from_secs(6);
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// HTTP/2 stream window: large lists share one connection with the watch, and etcd decides how large a list is.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// The kind of a request, which decides whether it may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Safety {
    /// Reads; it may be retried.
    Read,
    /// Reads, with a response that may be large; it may be retried.
    Scan,
    /// Writes; it must not be executed twice.
    Write,
}

/// One member and a connection to it, which is opened on demand and again after it broke.
pub(super) struct Member {
    pub(super) server: String,
    client: Client,
    /// Whether the member's version reports progress correctly; asked again after a failure, since a restart may change
    /// the version.
    reports_progress: Mutex<Option<bool>>,
}

impl Member {
    async fn new(server: &str, tls: &EtcdTls) -> Result<Self, ConnectError> {
        let unusable = |reason: String| ConnectError::Server {
            server: server.to_owned(),
            reason,
        };
        let url = if server.contains("://") {
            server.to_owned()
        } else {
            format!("http://{server}")
        };
        let mut endpoint = Endpoint::from_shared(url.clone())
            .map_err(|error| unusable(error.to_string()))?
            .connect_timeout(TCP_CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        match endpoint.uri().scheme_str() {
            Some("http") => {}
            Some("https") => {
                let tls = tls_config(tls, server)?;
                endpoint = endpoint
                    .tls_config(tls)
                    .map_err(|error| unusable(error.to_string()))?;
            }
            _ => return Err(unusable("its scheme is neither http nor https".to_owned())),
        }
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::from_channel(Channel::Tonic(endpoint.connect_lazy()), Some(options))
            .await
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            server: url,
            client,
            reports_progress: Mutex::new(None),
        })
    }

    pub(super) fn kv(&self) -> KvClient {
        self.client
            .kv_client()
            .max_decoding_message_size(usize::MAX)
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.client
            .watch_client()
            .max_decoding_message_size(usize::MAX)
    }

    pub(super) fn maintenance(&self) -> MaintenanceClient {
        self.client.maintenance_client()
    }

    pub(super) fn lease(&self) -> LeaseClient {
        self.client.lease_client()
    }

    pub(super) fn failure(&self, error: &etcd_client::Error) -> Failure {
        Failure::of(error, &self.server)
    }

    /// Whether the progress that this member reports for a watch is correct.
    pub(super) async fn reports_progress(&self) -> Result<bool, Failure> {
        if let Some(known) = *self.reports_progress.lock() {
            return Ok(known);
        }
        let status = timeout(CALL_TIMEOUT, self.client.maintenance_client().status()).await;
        let status = status
            .map_err(|_| self.silent(CALL_TIMEOUT))?
            .map_err(|error| self.failure(&error))?;
        let reports = reports_progress(status.version());
        if self.reports_progress.lock().replace(reports).is_none() {
            tracing::info!(server = %self.server, version = status.version(), reports, "connected to etcd");
        }
        Ok(reports)
    }

    /// The failure of a member that did not answer in time.
    pub(super) fn silent(&self, patience: Duration) -> Failure {
        Failure::Lost(format!(
            "etcd at {} did not answer within {} s",
            self.server,
            patience.as_secs()
        ))
    }
}

fn tls_config(files: &EtcdTls, server: &str) -> Result<ClientTlsConfig, ConnectError> {
    let read = |path: &std::path::PathBuf| {
        std::fs::read(path).map_err(|error| ConnectError::File {
            path: path.clone(),
            reason: error.to_string(),
        })
    };
    let Some(ca_file) = &files.ca_file else {
        return Err(ConnectError::Server {
            server: server.to_owned(),
            reason: "https needs the authority of etcd's certificate (--etcd-cafile)".to_owned(),
        });
    };
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca_file)?));
    match (&files.cert_file, &files.key_file) {
        (Some(cert), Some(key)) => tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?)),
        (None, None) => {}
        _ => {
            return Err(ConnectError::Server {
                server: server.to_owned(),
                reason:
                    "a client certificate and its key go together (--etcd-certfile, --etcd-keyfile)"
                        .to_owned(),
            });
        }
    }
    Ok(tls)
}

/// All members, one of them in use.
pub(super) struct Members {
    members: Vec<Arc<Member>>,
    current: AtomicUsize,
}

impl Members {
    pub(super) async fn new(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let mut members = Vec::new();
        for server in &config.servers {
            members.push(Arc::new(Member::new(server, &config.tls).await?));
        }
        if members.is_empty() {
            return Err(ConnectError::Server {
                server: String::new(),
                reason: "no server is named (--etcd-servers)".to_owned(),
            });
        }
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
        })
    }

    /// The members' URLs.
    pub(super) fn servers(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| member.server.clone())
            .collect()
    }

    /// The member in use.
    pub(super) fn current(&self) -> Arc<Member> {
        Arc::clone(&self.members[self.current.load(Ordering::Relaxed)])
    }

    /// Switches to the next member, if this one is still in use.
    pub(super) fn leave(&self, failed: &Member) {
        *failed.reports_progress.lock() = None;
        let current = self.current.load(Ordering::Relaxed);
        if std::ptr::eq(&*self.members[current], failed) && self.members.len() > 1 {
            let next = (current + 1) % self.members.len();
            // Another task may have switched already.
            let moved =
                self.current
                    .compare_exchange(current, next, Ordering::Relaxed, Ordering::Relaxed);
            if moved.is_ok() {
                tracing::warn!(from = %failed.server, to = %self.members[next].server, "changing the etcd member");
            }
        }
    }

    /// Sends a request to the member in use, and retries on other members as far as that is safe.
    pub(super) async fn call<T, F>(
        &self,
        safety: Safety,
        request: impl Fn(Arc<Member>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        self.call_within(RETRY_FOR, safety, request).await
    }

    /// The same, with another time limit for new rounds over the members; zero asks one member alone.
    pub(super) async fn call_within<T, F>(
        &self,
        retry_for: Duration,
        safety: Safety,
        request: impl Fn(Arc<Member>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let started = Instant::now();
        let patience = match safety {
            Safety::Read if self.members.len() > 1 => READ_PATIENCE,
            Safety::Scan => SCAN_TIMEOUT,
            _ => CALL_TIMEOUT,
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let member = self.current();
            let failure = match timeout(patience, request(Arc::clone(&member))).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => member.failure(&error),
                Err(_) => member.silent(patience),
            };
            if !failure.is_passing() {
                return Err(failure);
            }
            self.leave(&member);
            let may_repeat = safety != Safety::Write || matches!(failure, Failure::NotDone(_));
            let may_continue = match attempts % self.members.len() {
                0 => started.elapsed() < retry_for,
                _ => !retry_for.is_zero(),
            };
            if !may_repeat || !may_continue {
                return Err(failure);
            }
            if attempts % self.members.len() == 0 {
                sleep(RETRY_PAUSE).await;
            }
        }
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers = self.members.iter().map(|member| &member.server);
        f.debug_list().entries(servers).finish()
    }
}
