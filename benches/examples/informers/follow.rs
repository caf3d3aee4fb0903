//! One client in this process: follows the objects until it has all of them.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use apiloom_client::cache::{InformerFactory, ServerTraits};
use apiloom_kinds::core::v1::ConfigMap;
use clap::ValueEnum as _;
use futures_util::{FutureExt as _, StreamExt as _};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, ResourceExt as _};
use tokio::time::{sleep, timeout};

use crate::expire::Expiring;
use crate::objects::{NAMESPACE, client};
use crate::report::{Figures, Relist};
use crate::{ALLOCATOR, Client};

const LIMIT: Duration = Duration::from_secs(300);

/// Follows the objects; the result are the figures of this process.
pub(crate) async fn follow(who: Client, objects: usize) -> Result<Figures> {
    let kubeconfig = std::env::var_os("KUBECONFIG").context("KUBECONFIG")?;
    let kubeconfig = PathBuf::from(kubeconfig);
    let name = who.to_possible_value().context("it has a name")?;
    let mut figures = match who {
        Client::Apiloom => with_informer(&kubeconfig, objects, false).await?,
        Client::ApiloomPages => with_informer(&kubeconfig, objects, true).await?,
        Client::Kube => with_reflector(objects, watcher::Config::default(), false).await?,
        Client::KubeStreaming => {
            let config = watcher::Config::default().streaming_lists();
            with_reflector(objects, config, false).await?
        }
        Client::KubeStripped => with_reflector(objects, watcher::Config::default(), true).await?,
    };
    figures.client = name.get_name().to_owned();
    Ok(figures)
}

/// The figures of a state that is complete now.
fn measure(start: Instant) -> Result<Figures> {
    let sync_seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.trim().parse::<u64>().ok())
            .map(|kib| kib * 1024)
    };
    let (_, fields) = stat.rsplit_once(')').context("odd stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Ticks of 10 ms, in user space and in the kernel.
    let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(Figures {
        client: String::new(),
        sync_seconds,
        cpu_seconds: ticks / 100.0,
        heap_bytes: ALLOCATOR.allocated(),
        peak_heap_bytes: ALLOCATOR.max_allocated(),
        resident_bytes: bytes("VmRSS:").context("no VmRSS")?,
        peak_resident_bytes: bytes("VmHWM:").context("no VmHWM")?,
        relist: None,
    })
}

async fn with_informer(
    kubeconfig: &std::path::Path,
    objects: usize,
    pages: bool,
) -> Result<Figures> {
    let client = client(kubeconfig)?;
    let expiring = Expiring::new(Arc::clone(client.transport()));
    let client = client.wrap_transport(|_| expiring.clone());
    let start = Instant::now();
    let factory = InformerFactory::new(&client).namespace(NAMESPACE);
    let informer = factory.informer_with::<ConfigMap>(|builder| {
        let server = ServerTraits::new();
        if pages {
            server.refuse_streaming_lists();
        }
        builder.server(server)
    });
    informer.start();
    informer.wait_for_sync(LIMIT).await?;
    let mut figures = measure(start)?;
    let found = informer.lister().len();
    ensure!(found == objects, "{found} objects, and not {objects}");
    if !pages {
        // Subscribed before, so that its own queue is not counted.
        let mut events = informer.subscribe();
        while let Some(Some(_)) = events.next().now_or_never() {}
        // What is received and not yet decoded goes first.
        sleep(Duration::from_secs(1)).await;
        let lists = informer.metrics().lists;
        let peak = Peak::start();
        expiring.expire();
        let again = async {
            while informer.metrics().lists == lists {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LIMIT, again)
            .await
            .context("the state was not read again")?;
        let peak_heap_bytes = peak.stop();
        let mut count = 0;
        while let Some(Some(_)) = events.next().now_or_never() {
            count += 1;
        }
        figures.relist = Some(Relist {
            peak_heap_bytes,
            events: count,
        });
    }
    Ok(figures)
}

/// Looks at the heap all the time, since the allocator's own peak is that of the whole process.
struct Peak {
    is_over: Arc<AtomicBool>,
    most: Arc<AtomicUsize>,
    start: usize,
    thread: thread::JoinHandle<()>,
}

impl Peak {
    fn start() -> Self {
        let (is_over, most) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let start = ALLOCATOR.allocated();
        let thread = thread::spawn({
            let (is_over, most) = (Arc::clone(&is_over), Arc::clone(&most));
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    most.fetch_max(ALLOCATOR.allocated(), Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self {
            is_over,
            most,
            start,
            thread,
        }
    }
    /// The most bytes above those at the start.
    fn stop(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        // It does not panic.
        let _ = self.thread.join();
        self.most.load(Ordering::Relaxed).saturating_sub(self.start)
    }
}

async fn with_reflector(objects: usize, config: watcher::Config, strips: bool) -> Result<Figures> {
    type KubeConfigMap = k8s_openapi::api::core::v1::ConfigMap;
    let client = kube::Client::try_default().await?;
    let start = Instant::now();
    let api: Api<KubeConfigMap> = Api::namespaced(client, NAMESPACE);
    let (reader, writer) = reflector::store();
    let stream = watcher(api, config).default_backoff();
    let stream = if strips {
        stream
            .modify(|object| object.managed_fields_mut().clear())
            .boxed()
    } else {
        stream.boxed()
    };
    let mut events = pin!(stream.reflect(writer));
    let following = async {
        while let Some(event) = events.next().await {
            if let Err(error) = event {
                return error;
            }
        }
        watcher::Error::NoResourceVersion
    };
    tokio::select! {
        error = following => bail!("the watch failed: {error}"),
        ready = timeout(LIMIT, reader.wait_until_ready()) => ready??,
    }
    let figures = measure(start)?;
    let found = reader.len();
    ensure!(found == objects, "{found} objects, and not {objects}");
    Ok(figures)
}
