//! A server with its store, embedded or etcd: it can be stopped, restarted and inspected.

use std::path::Path;
use std::sync::Arc;

use apiloom_storage::{Embedded, EmbeddedConfig, Revision, Storage};

use crate::server::flags_of_writer;
use crate::{Client, Server, build};

/// The server of most tests.
const WARDLE: &str = "wardle-server";

/// The stores with which every check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Files below the data folder.
    Embedded,
    /// A real etcd of the newest tested release.
    #[cfg(feature = "etcd")]
    Etcd,
    /// The same etcd with two servers: clients write to the first, and send GET to the second.
    #[cfg(feature = "etcd")]
    Replicas,
}

/// A server with its own store.
pub struct Cluster {
    /// `None` while it is stopped.
    server: Option<Server>,
    /// The server for GET: `None` while it is stopped, and if there is one server only.
    reader: Option<Server>,
    binary: &'static str,
    args: Vec<String>,
    dir: tempfile::TempDir,
    #[cfg(feature = "etcd")]
    etcd: Option<InEtcd>,
    has_reader: bool,
}

#[cfg(feature = "etcd")]
use in_etcd::InEtcd;

impl Cluster {
    /// A server with a new store. With etcd, concurrent tests share one, each below its own prefix.
    pub fn start(backend: Backend) -> Self {
        Self::start_binary(backend, WARDLE)
    }

    /// The same with another server's binary.
    pub fn start_binary(backend: Backend, binary: &'static str) -> Self {
        Self::start_binary_with(backend, binary, &[])
    }

    /// The same with more arguments.
    pub fn start_binary_with(backend: Backend, binary: &'static str, args: &[&str]) -> Self {
        match backend {
            Backend::Embedded => Self::embedded(binary, args),
            #[cfg(feature = "etcd")]
            Backend::Etcd => Self::over(binary, InEtcd::shared(), args, false),
            #[cfg(feature = "etcd")]
            Backend::Replicas => Self::over(binary, InEtcd::shared(), args, true),
        }
    }

    /// The same with more arguments.
    pub fn start_with(backend: Backend, args: &[&str]) -> Self {
        Self::start_binary_with(backend, WARDLE, args)
    }

    /// The same with an etcd of its own.
    pub fn start_alone(backend: Backend, args: &[&str]) -> Self {
        match backend {
            Backend::Embedded => Self::embedded(WARDLE, args),
            #[cfg(feature = "etcd")]
            Backend::Etcd => Self::over(WARDLE, InEtcd::alone(), args, false),
            #[cfg(feature = "etcd")]
            Backend::Replicas => Self::over(WARDLE, InEtcd::alone(), args, true),
        }
    }

    fn embedded(binary: &'static str, args: &[&str]) -> Self {
        let mut cluster = Self {
            server: None,
            reader: None,
            binary,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            dir: tempfile::tempdir().unwrap(),
            #[cfg(feature = "etcd")]
            etcd: None,
            has_reader: false,
        };
        cluster.start_again();
        cluster
    }

    #[cfg(feature = "etcd")]
    fn over(binary: &'static str, etcd: InEtcd, args: &[&str], has_reader: bool) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned());
        let mut cluster = Self {
            server: None,
            reader: None,
            binary,
            args: etcd.flags().into_iter().chain(args).collect(),
            dir: tempfile::tempdir().unwrap(),
            etcd: Some(etcd),
            has_reader,
        };
        cluster.start_again();
        cluster
    }

    /// The running server; of two, the one that takes the writes.
    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("the server runs")
    }

    /// A client of the running server, or of both.
    pub fn client(&self) -> Client {
        self.client_by(Client::new)
    }

    /// The same with HTTP/1.1 only.
    pub fn client_of_http1(&self) -> Client {
        self.client_by(Client::of_http1)
    }

    fn client_by(&self, client: fn(&Path) -> Client) -> Client {
        let writer = client(self.server().kubeconfig());
        match &self.reader {
            Some(reader) => writer.with_reader(client(reader.kubeconfig())),
            None => writer,
        }
    }

    /// Another server over the same store, if the store can be shared.
    pub fn replica(&self) -> Option<Server> {
        #[cfg(feature = "etcd")]
        if self.etcd.is_some() {
            let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
            return Some(Server::start_binary(&build(self.binary), &args));
        }
        None
    }

    /// Another server over the same store with another last argument, if the store can be shared.
    pub fn replica_with(&self, last: &str) -> Option<Server> {
        #[cfg(feature = "etcd")]
        if self.etcd.is_some() {
            let args = self.args.iter().map(String::as_str);
            let args = args.take(self.args.len() - 1).chain([last]);
            return Some(Server::start(&args.collect::<Vec<_>>()));
        }
        let _ = last;
        None
    }

    /// Asks its servers to stop, and waits for their end.
    pub fn stop(&mut self) {
        self.end(Server::stop);
    }

    /// Waits for the end of a server that was asked to stop. If there are two, the other is asked now.
    pub fn wait(&mut self) {
        self.server.take().expect("the server runs").wait();
        self.reader.take().map(Server::stop);
    }

    /// Kills its servers, as a power cut would.
    pub fn kill(&mut self) {
        self.end(Server::kill);
    }

    fn end<T>(&mut self, end: fn(Server) -> T) {
        end(self.server.take().expect("the server runs"));
        self.reader.take().map(end);
    }

    /// Starts its servers over the same store.
    pub fn start_again(&mut self) {
        let of_writer = self.has_reader.then(flags_of_writer).flatten();
        let of_writer = of_writer.unwrap_or_default();
        let args = self.args.iter().map(String::as_str);
        // A test may set the same flag itself.
        let of_writer = of_writer
            .split_whitespace()
            .filter(|flag| args.clone().all(|arg| arg != *flag));
        let args: Vec<&str> = of_writer.chain(args.clone()).collect();
        let data_dir = self.dir.path().join("data");
        self.server = Some(Server::start_binary_in(
            &build(self.binary),
            &data_dir,
            &args,
        ));
        if self.has_reader {
            self.reader = self.replica();
        }
    }

    /// Kills the server and starts one over the same store, with another last argument.
    pub fn restart_with(&mut self, last: &str) {
        self.kill();
        last.clone_into(self.args.last_mut().expect("it has arguments"));
        self.start_again();
    }

    /// The part of every key before `/registry`.
    pub fn prefix(&self) -> &str {
        #[cfg(feature = "etcd")]
        if let Some(etcd) = &self.etcd {
            return etcd.prefix();
        }
        ""
    }

    /// The store. An embedded one is locked by its server while that runs.
    pub async fn store(&self) -> Arc<dyn Storage> {
        #[cfg(feature = "etcd")]
        if let Some(etcd) = &self.etcd {
            return etcd.store().await;
        }
        assert!(self.server.is_none(), "the store is in use");
        let store = self.dir.path().join("data/store");
        Embedded::open(store, EmbeddedConfig::default()).unwrap()
    }

    /// Runs a function with the etcd, which belongs to this cluster only.
    #[cfg(feature = "etcd")]
    pub fn with_etcd(&self, act: impl FnOnce(&mut crate::etcd::Etcd)) {
        let etcd = self.etcd.as_ref().expect("it runs over etcd");
        assert!(etcd.is_alone(), "it would happen to others too");
        etcd.with(act);
    }

    /// Stops the server, compacts the store up to a revision, and restarts the server, so that its cache does not have
    /// that history either.
    pub async fn forget(&mut self, upto: u64) {
        #[cfg(feature = "etcd")]
        if let Some(etcd) = &self.etcd {
            assert!(etcd.is_alone(), "others would forget it too");
        }
        self.stop();
        let store = self.store().await;
        store.compact(Revision(upto)).await.unwrap();
        store.close().await;
        self.start_again();
    }
}

/// The store of a server in the process of a test.
pub struct StoreOfTest {
    #[cfg(feature = "etcd")]
    etcd: Option<InEtcd>,
}

impl StoreOfTest {
    /// A new store. With etcd, concurrent tests share one, each below its own prefix.
    pub fn new(backend: Backend) -> Self {
        match backend {
            Backend::Embedded => Self {
                #[cfg(feature = "etcd")]
                etcd: None,
            },
            #[cfg(feature = "etcd")]
            Backend::Etcd | Backend::Replicas => Self {
                etcd: Some(InEtcd::shared()),
            },
        }
    }

    /// A new store that several servers can use. Panics in a build without etcd.
    pub(crate) fn of_replicas() -> Self {
        #[cfg(feature = "etcd")]
        return Self::new(Backend::Replicas);
        #[cfg(not(feature = "etcd"))]
        panic!("an embedded store has one server: build with `--workspace --features etcd`");
    }

    /// The flags of a server that uses it.
    pub(crate) fn flags(&self) -> Vec<String> {
        #[cfg(feature = "etcd")]
        if let Some(etcd) = &self.etcd {
            return etcd.flags();
        }
        Vec::new()
    }

    /// The URL of the etcd and the prefix of all keys there; `None` for a store in the server's folder.
    pub fn etcd(&self) -> Option<(&str, &str)> {
        #[cfg(feature = "etcd")]
        if let Some(etcd) = &self.etcd {
            return Some((etcd.url(), etcd.prefix()));
        }
        None
    }
}

#[cfg(feature = "etcd")]
mod in_etcd {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex, Weak};

    use apiloom_storage::{EtcdConfig, Storage};

    use crate::etcd::Etcd;

    /// A prefix in an etcd.
    pub(super) struct InEtcd {
        etcd: Arc<Mutex<Etcd>>,
        url: String,
        prefix: String,
    }

    impl InEtcd {
        /// In the etcd that all running tests share. It ends with the last of them.
        pub(super) fn shared() -> Self {
            static SHARED: Mutex<Weak<Mutex<Etcd>>> = Mutex::new(Weak::new());
            static COUNTER: AtomicU32 = AtomicU32::new(0);
            let mut shared = SHARED.lock().unwrap();
            let etcd = shared.upgrade().unwrap_or_else(|| {
                let etcd = Arc::new(Mutex::new(Etcd::start(Etcd::NEWEST)));
                *shared = Arc::downgrade(&etcd);
                etcd
            });
            let prefix = format!("/test{}", COUNTER.fetch_add(1, Ordering::Relaxed));
            Self::new(etcd, prefix)
        }

        /// In an etcd of its own.
        pub(super) fn alone() -> Self {
            let etcd = Etcd::start(Etcd::NEWEST);
            Self::new(Arc::new(Mutex::new(etcd)), String::new())
        }

        fn new(etcd: Arc<Mutex<Etcd>>, prefix: String) -> Self {
            let url = etcd.lock().unwrap().url();
            Self { etcd, url, prefix }
        }

        pub(super) fn with(&self, act: impl FnOnce(&mut Etcd)) {
            act(&mut self.etcd.lock().unwrap());
        }

        pub(super) fn is_alone(&self) -> bool {
            self.prefix.is_empty()
        }

        pub(super) fn prefix(&self) -> &str {
            &self.prefix
        }

        pub(super) fn url(&self) -> &str {
            &self.url
        }

        pub(super) fn flags(&self) -> Vec<String> {
            let mut flags = vec![format!("--etcd-servers={}", self.url)];
            if !self.is_alone() {
                flags.push(format!("--etcd-prefix={}/registry", self.prefix));
            }
            flags
        }

        pub(super) async fn store(&self) -> Arc<dyn Storage> {
            let config = EtcdConfig {
                prefix: format!("{}/registry/", self.prefix),
                compaction_interval: None,
                ..EtcdConfig::new([&self.url])
            };
            apiloom_storage::Etcd::connect(config).await.unwrap()
        }
    }
}
