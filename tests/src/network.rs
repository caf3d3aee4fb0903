//! Networks that can be cut: a proxy between two ends, and network namespaces with one process each.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::etcd::Place;

/// A TCP proxy that can be cut.
pub struct Proxy {
    address: String,
    target: watch::Sender<String>,
    open: watch::Sender<bool>,
    /// Bytes per second from the target, per connection.
    limit: watch::Sender<Option<u32>>,
    connections: watch::Sender<usize>,
}

impl Proxy {
    /// Listens on a free port, before `target`.
    pub async fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (target, targeted) = watch::channel(target);
        let (open, opened) = watch::channel(true);
        let (limit, limited) = watch::channel(None);
        let connections = watch::Sender::new(0);
        let count = connections.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // New connections are closed at once while the proxy is cut.
                if !*opened.borrow() {
                    continue;
                }
                count.send_modify(|count| *count += 1);
                let target = targeted.borrow().clone();
                let (opened, count) = (opened.clone(), count.clone());
                let limited = limited.clone();
                tokio::spawn(async move {
                    pass_on(stream, target, opened, limited).await;
                    count.send_modify(|count| *count -= 1);
                });
            }
        });
        Self {
            address,
            target,
            open,
            limit,
            connections,
        }
    }

    /// Sets the target of new connections.
    pub fn retarget(&self, target: String) {
        self.target.send_replace(target);
    }

    /// Limits the bytes per second from the target, or removes the limit.
    pub fn limit(&self, bytes_per_second: Option<u32>) {
        self.limit.send_replace(bytes_per_second);
    }

    /// The address of the proxy.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        *self.connections.borrow()
    }

    /// Waits until there are so many connections.
    pub async fn settle(&self, wanted: usize) {
        let mut connections = self.connections.subscribe();
        let settled = connections.wait_for(|count| *count == wanted);
        let settled = tokio::time::timeout(Duration::from_secs(30), settled).await;
        let has = self.connections();
        settled
            .unwrap_or_else(|_| panic!("{has} connections in place of {wanted}"))
            .unwrap();
    }

    /// Closes all connections and accepts no new ones.
    pub async fn cut(&self) {
        self.open.send_replace(false);
        let mut connections = self.connections.subscribe();
        let ended = connections.wait_for(|count| *count == 0);
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        ended.expect("connections end").unwrap();
    }

    /// Accepts connections again.
    pub fn heal(&self) {
        self.open.send_replace(true);
    }
}

async fn pass_on(
    mut near: TcpStream,
    target: String,
    mut open: watch::Receiver<bool>,
    limit: watch::Receiver<Option<u32>>,
) {
    let Ok(mut far) = TcpStream::connect(target).await else {
        return;
    };
    let ((near_read, mut near_write), (far_read, mut far_write)) = (near.split(), far.split());
    let there = async {
        let mut near_read = near_read;
        let _ = tokio::io::copy(&mut near_read, &mut far_write).await;
        far_write.shutdown().await
    };
    let back = async {
        let _ = copy_limited(far_read, &mut near_write, limit).await;
        near_write.shutdown().await
    };
    tokio::select! {
        // Both ends are closed at the end, in every case.
        _ = async { tokio::join!(there, back) } => {}
        _ = open.wait_for(|open| !open) => {}
    }
}

async fn copy_limited(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    limit: watch::Receiver<Option<u32>>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count]).await?;
        let limit = *limit.borrow();
        if let Some(limit) = limit {
            tokio::time::sleep(Duration::from_secs(1).mul_f64(count as f64 / f64::from(limit)))
                .await;
        }
    }
}

/// Set for a process in a network namespace of its own, in which it can create others.
const INSIDE: &str = "APILOOM_TESTS_NETWORK";

/// Runs the test with this name again in a network namespace of its own, where this returns `true` and [`Networks`] can
/// be used. `None` if this machine does not allow such namespaces.
pub fn isolated(test: &str) -> Option<bool> {
    if std::env::var_os(INSIDE).is_some() {
        return Some(true);
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--"]);
        command.stdin(Stdio::null());
        command
    };
    let probe =
        "ip link add name bridge0 type bridge && ip link add name veth0 type veth peer name veth1";
    let mut probe_command = unshare();
    probe_command.args(["sh", "-c", probe]);
    let allowed = probe_command.stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return None;
    }
    let output = unshare()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{test} failed in its network:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(false)
}

/// Networks of cluster members: one that joins all of them, and one from each member to us. Only in an isolated
/// process.
pub struct Networks {
    holders: Vec<Child>,
}

impl Networks {
    /// Creates networks for this many members.
    pub fn new(count: usize) -> Self {
        ip("link set lo up");
        ip("link add name peers type bridge");
        ip("link set peers up");
        let holders = (0..count).map(|index| {
            // A network namespace lives as long as a process in it.
            let mut holder = Command::new("unshare");
            holder.args(["--net", "--", "sleep", "infinity"]);
            let holder = holder.stdin(Stdio::null()).spawn().unwrap();
            let process = holder.id();
            wait_until_moved(process);
            let inside = |command: &str| {
                let network = format!("--net=/proc/{process}/ns/net");
                run(Command::new("nsenter")
                    .arg(network)
                    .arg("ip")
                    .args(command.split(' ')));
            };
            inside("link set lo up");
            ip(&format!(
                "link add name peer{index} type veth peer name p{index}"
            ));
            ip(&format!("link set p{index} netns {process}"));
            ip(&format!("link set peer{index} master peers"));
            ip(&format!("link set peer{index} up"));
            inside(&format!("addr add 10.77.0.{}/24 dev p{index}", index + 1));
            inside(&format!("link set p{index} up"));
            ip(&format!(
                "link add name client{index} type veth peer name c{index}"
            ));
            ip(&format!("link set c{index} netns {process}"));
            ip(&format!("addr add 10.78.{index}.2/24 dev client{index}"));
            ip(&format!("link set client{index} up"));
            inside(&format!("addr add 10.78.{index}.1/24 dev c{index}"));
            inside(&format!("link set c{index} up"));
            holder
        });
        Self {
            holders: holders.collect(),
        }
    }

    /// The places of the members.
    pub fn places(&self) -> Vec<Place> {
        let holders = self.holders.iter().enumerate();
        let place = |(index, holder): (usize, &Child)| Place {
            client: format!("10.78.{index}.1"),
            peer: format!("10.77.0.{}", index + 1),
            network: Some(holder.id()),
        };
        holders.map(place).collect()
    }

    /// Cuts a member off from the others; we can still reach it.
    pub fn cut_from_peers(&self, member: usize) {
        ip(&format!("link set peer{member} down"));
    }

    /// Cuts a member off from us; it can still reach the others.
    pub fn cut_from_clients(&self, member: usize) {
        ip(&format!("link set client{member} down"));
    }

    /// Connects a member to us and the others again.
    pub fn heal(&self, member: usize) {
        ip(&format!("link set peer{member} up"));
        ip(&format!("link set client{member} up"));
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // It may have ended already.
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// Waits until a process is in another network namespace.
fn wait_until_moved(process: u32) {
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let started = Instant::now();
    while network(&process.to_string()) == network("self") {
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ip(command: &str) {
    run(Command::new("ip").args(command.split(' ')));
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
