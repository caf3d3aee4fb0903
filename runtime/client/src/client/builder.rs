//! `Client`: the transport, and what is the same for all requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::gvk::GroupResource;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;

use super::path::check_path;
use super::retry::RetryRules;
use crate::error::Error;
use crate::metrics::RequestMetrics;
use crate::transport::Transport;

/// The user agent unless another one is set; servers take the part before the slash as the field manager.
const USER_AGENT: &str = concat!("apiloom-client/", env!("CARGO_PKG_VERSION"));

/// Receives the text of each `Warning` header.
pub(super) type WarningHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Receives the resource and the resourceVersion of each successful write.
pub(super) type WriteHook = Arc<dyn Fn(&GroupResource, &str) + Send + Sync>;

/// A client of one API server. Cheap to clone; clones share the transport.
///
/// It has no task and no queue of its own: requests run in the caller's task, and dropping their futures aborts them.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    /// What clones share. A client with another transport or other settings may read other objects, so it has its own.
    shared: Arc<Mutex<Extensions>>,
}

#[derive(Clone)]
struct Inner {
    transport: Arc<dyn Transport>,
    settings: Settings,
}

/// What is the same for all requests of a client.
#[derive(Clone)]
pub(super) struct Settings {
    /// Path before that of every request, without a slash at its end.
    pub(super) base_path: String,
    pub(super) default_namespace: String,
    pub(super) headers: HeaderMap,
    pub(super) warnings: WarningHook,
    pub(super) on_write: Option<WriteHook>,
    pub(super) retry: RetryRules,
    pub(super) timeout: Duration,
    pub(super) max_response_bytes: usize,
    pub(super) max_list_bytes: usize,
    pub(super) max_watch_line_bytes: usize,
    pub(super) metrics: Option<RequestMetrics>,
}

/// Makes a [`Client`] with other settings than the defaults.
///
/// ```
/// # use apiloom_client::{Client, Transport};
/// # fn example(transport: impl Transport) -> Result<Client, apiloom_client::Error> {
/// Client::builder(transport)
///     .user_agent("flunder-controller/1.2")
///     .default_namespace("prod")
///     .on_warning(|text| eprintln!("warning: {text}"))
///     .build()
/// # }
/// ```
#[must_use = "call `build`"]
pub struct ClientBuilder {
    inner: Inner,
    error: Option<Error>,
}

impl Client {
    /// A client with the default settings; see [`ClientBuilder`] for them.
    pub fn new(transport: impl Transport) -> Self {
        Self::of(Inner {
            transport: Arc::new(transport),
            settings: Settings::default(),
        })
    }

    fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
            shared: Arc::default(),
        }
    }

    /// A value that all clones of this client share; another client that is made of it has another value.
    pub(crate) fn shared<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut shared = self.shared.lock();
        Arc::clone(shared.get_or_insert_default::<Arc<T>>())
    }

    /// Begins a client with other settings.
    pub fn builder(transport: impl Transport) -> ClientBuilder {
        Self::new(transport).rebuild()
    }

    /// Begins another client with the same transport and the settings of this one.
    pub fn rebuild(&self) -> ClientBuilder {
        ClientBuilder {
            inner: Inner::clone(&self.inner),
            error: None,
        }
    }

    /// The same client, which also reports each write that succeeded: the resource, and the resourceVersion of the response.
    /// Requests made by [`Client::request`], and responses without a resourceVersion, are not reported.
    #[must_use]
    pub fn on_write(&self, hook: impl Fn(&GroupResource, &str) + Send + Sync + 'static) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.settings.on_write = Some(match inner.settings.on_write.take() {
            Some(earlier) => Arc::new(move |resource, version| {
                earlier(resource, version);
                hook(resource, version);
            }),
            None => Arc::new(hook),
        });
        Self::of(inner)
    }

    /// The same client, which sends each request once: for a caller with a schedule of its own.
    pub(crate) fn without_retry(&self) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.settings.retry = RetryRules::none();
        Self::of(inner)
    }

    /// The same client over another transport, made of the present one: for example a guard of writes, or a recorder.
    #[must_use]
    pub fn wrap_transport<T: Transport>(&self, wrap: impl FnOnce(Arc<dyn Transport>) -> T) -> Self {
        let transport = wrap(Arc::clone(&self.inner.transport));
        Self::of(Inner {
            transport: Arc::new(transport),
            settings: self.inner.settings.clone(),
        })
    }

    /// The transport.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.inner.transport
    }

    /// The namespace of [`Client::default_namespaced`].
    pub fn default_namespace(&self) -> &str {
        &self.settings().default_namespace
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.inner.settings
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base_path", &self.settings().base_path)
            .field("default_namespace", &self.settings().default_namespace)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        Self {
            base_path: String::new(),
            default_namespace: "default".to_owned(),
            headers,
            warnings: Arc::new(|text| tracing::warn!("the API server warns: {text}")),
            on_write: None,
            retry: RetryRules::default(),
            // Servers answer within 60 seconds by default; the rest is for the way.
            timeout: Duration::from_secs(90),
            max_response_bytes: 16 << 20,
            max_list_bytes: 1 << 30,
            max_watch_line_bytes: 32 << 20,
            metrics: None,
        }
    }
}

impl ClientBuilder {
    /// Path before that of every request, for servers behind a proxy: `/k8s/clusters/c-1`. Default empty.
    pub fn base_path(mut self, path: &str) -> Self {
        self.inner.settings.base_path = path.trim_end_matches('/').to_owned();
        let path = &self.inner.settings.base_path;
        if !path.is_empty()
            && let Err(error) = check_path(path, "")
        {
            self.error.get_or_insert(error);
        }
        self
    }

    /// The namespace of [`Client::default_namespaced`]. Default `default`.
    pub fn default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.inner.settings.default_namespace = namespace.into();
        self
    }

    /// The header `User-Agent`. Default `apiloom-client/VERSION`. Servers take the part before the first slash as the field
    /// manager of writes that name none.
    pub fn user_agent(self, user_agent: &str) -> Self {
        self.header("user-agent", user_agent)
    }

    /// A header of every request, which replaces one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.inner.settings.headers.insert(name, value);
            }
            // The value is not shown: it may be a secret.
            _ => {
                let problem = format!("the header {name:?} has a malformed name or value");
                self.error.get_or_insert(Error::Request(problem));
            }
        }
        self
    }

    /// Called with the text of each `Warning` header of a response. Default: logged as a warning by `tracing`.
    pub fn on_warning(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.inner.settings.warnings = Arc::new(hook);
        self
    }

    /// When requests are sent again. Default: [`RetryRules::default`].
    pub fn retry(mut self, rules: RetryRules) -> Self {
        self.inner.settings.retry = rules;
        self
    }

    /// How long one attempt may take, until its complete answer or, of a stream, until its headers. Default 90 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner.settings.timeout = timeout;
        self
    }

    /// The longest answer with one object or document, in bytes after decompression. Default 16 MiB: API servers limit objects
    /// to a few. [`RawRequest::max_bytes`](super::RawRequest::max_bytes) sets it for one request; streams have no limit.
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.inner.settings.max_response_bytes = bytes;
        self
    }

    /// The longest list, in bytes after decompression: all pages of one that is collected together, and the initial events of a
    /// watch. Default 1 GiB.
    pub fn max_list_bytes(mut self, bytes: usize) -> Self {
        self.inner.settings.max_list_bytes = bytes;
        self
    }

    /// The longest event of a watch that is read, in bytes. Default 32 MiB: API servers limit objects to a few.
    pub fn max_watch_line_bytes(mut self, bytes: usize) -> Self {
        self.inner.settings.max_watch_line_bytes = bytes;
        self
    }

    /// Counts all requests here. Default: they are not counted.
    pub fn metrics(mut self, metrics: &RequestMetrics) -> Self {
        self.inner.settings.metrics = Some(metrics.clone());
        self
    }

    /// Makes the client. Nothing is sent.
    ///
    /// # Errors
    /// For a malformed header or base path.
    pub fn build(self) -> Result<Client, Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(Client::of(self.inner)),
        }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}
