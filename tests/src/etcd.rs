//! A real etcd as a child process, in the releases that `tests/tools` obtains.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::repository;

/// Timeout for the start of a member.
const PATIENCE: Duration = Duration::from_secs(60);

/// One member of a cluster of one or more; killed when dropped.
pub struct Etcd {
    release: String,
    place: Place,
    name: String,
    cluster: String,
    scheme: &'static str,
    args: Vec<String>,
    dir: tempfile::TempDir,
    process: Option<Child>,
}

/// The addresses of a member.
pub struct Place {
    /// Its client URL.
    pub client: String,
    /// Its peer URL.
    pub peer: String,
    /// A process in whose network namespace it runs, if that is not ours.
    pub network: Option<u32>,
}

impl Place {
    /// An unused loopback address, so that no free port has to be searched.
    pub fn local() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let number = process.wrapping_mul(1_000).wrapping_add(count);
        let [_, a, b, c] = number.to_be_bytes();
        // 127.0.0.1 and the last address of the network are reserved.
        let address = format!("127.{}.{b}.{}", a % 254 + 1, c % 254 + 1);
        Self {
            client: address.clone(),
            peer: address,
            network: None,
        }
    }
}

impl Etcd {
    /// The tested releases: the oldest supported one, whose progress is not reliable, and a newer one.
    pub const RELEASES: [&'static str; 2] = ["3.4", "3.5"];
    /// The newer one.
    pub const NEWEST: &'static str = "3.5";

    /// Starts an etcd of one member, over a new folder.
    pub fn start(release: &str) -> Self {
        Self::start_alone(release, Place::local(), "http", &[])
    }

    /// Starts an etcd of one member that speaks TLS with these files: authority of clients, certificate, key.
    pub fn start_with_tls(
        release: &str,
        place: Place,
        [authority, certificate, key]: [&Path; 3],
    ) -> Self {
        let flag = |name: &str, file: &Path| format!("--{name}={}", file.display());
        let files = [
            flag("trusted-ca-file", authority),
            flag("cert-file", certificate),
            flag("key-file", key),
            "--client-cert-auth".to_owned(),
        ];
        Self::start_alone(release, place, "https", &files)
    }

    /// Starts an etcd of one member with further flags.
    pub fn start_with(release: &str, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self::start_alone(release, Place::local(), "http", &args)
    }

    fn start_alone(release: &str, place: Place, scheme: &'static str, args: &[String]) -> Self {
        // A single member has no elections to lose, so its timeouts can be short.
        let quick = ["--heartbeat-interval=10", "--election-timeout=100"].map(str::to_owned);
        let cluster = format!("m0=http://{}:2380", place.peer);
        let mut etcd = Self::new(release, "m0", place, cluster);
        etcd.scheme = scheme;
        etcd.args = [&quick, args].concat();
        etcd.restart();
        etcd
    }

    /// Starts an etcd with a member at each place.
    pub fn start_in(release: &str, places: impl IntoIterator<Item = Place>) -> Vec<Self> {
        let places: Vec<Place> = places.into_iter().collect();
        let names: Vec<String> = (0..places.len()).map(|index| format!("m{index}")).collect();
        let cluster = places.iter().zip(&names);
        let cluster = cluster.map(|(place, name)| format!("{name}=http://{}:2380", place.peer));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let members = places.into_iter().zip(&names);
        let mut members: Vec<Self> = members
            .map(|(place, name)| Self::new(release, name, place, cluster.clone()))
            .collect();
        // No member is ready before a quorum is there.
        members.iter_mut().for_each(Self::spawn);
        members.iter_mut().for_each(Self::wait);
        members
    }

    /// Starts an etcd of three members.
    pub fn start_three(release: &str) -> Vec<Self> {
        Self::start_in(release, [(); 3].map(|()| Place::local()))
    }

    fn new(release: &str, name: &str, place: Place, cluster: String) -> Self {
        Self {
            release: release.to_owned(),
            place,
            name: name.to_owned(),
            cluster,
            scheme: "http",
            args: Vec::new(),
            dir: tempfile::tempdir().unwrap(),
            process: None,
        }
    }

    /// Its client URL.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address())
    }

    /// Its address and port for clients.
    pub fn address(&self) -> String {
        format!("{}:2379", self.place.client)
    }

    /// Restarts it with its folder after [`Etcd::kill`], and waits until it is ready.
    pub fn restart(&mut self) {
        self.spawn();
        self.wait();
    }

    fn spawn(&mut self) {
        let binary = repository().join(format!("target/tools/etcd-{}/etcd", self.release));
        assert!(
            binary.exists(),
            "{} is missing: run tests/tools",
            binary.display()
        );
        let mut command = match self.place.network {
            None => Command::new(binary),
            Some(process) => {
                let mut command = Command::new("nsenter");
                let network = format!("--net=/proc/{process}/ns/net");
                command.arg(network).arg("--").arg(binary);
                command
            }
        };
        let (client, peer) = (self.url(), format!("http://{}:2380", self.place.peer));
        command
            .args(["--name", &self.name, "--initial-cluster", &self.cluster])
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .arg(format!(
                "--listen-metrics-urls=http://{}:2381",
                self.place.client
            ))
            // The largest value of the conformance suite with its key exceeds the default limit.
            .args([
                "--max-request-bytes=8388608",
                "--log-level=error",
                "--logger=zap",
            ])
            .args(&self.args)
            .arg("--data-dir")
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if self.release != "3.4" {
            // No test cuts the power.
            command.arg("--unsafe-no-fsync");
        }
        self.process = Some(command.spawn().unwrap());
    }

    fn wait(&mut self) {
        let started = Instant::now();
        while !self.is_healthy() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "etcd ended: {ended:?}");
            assert!(started.elapsed() < PATIENCE, "etcd does not get healthy");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_healthy(&self) -> bool {
        let answer = self.ask(2381, "GET /health HTTP/1.0\r\n\r\n");
        answer.is_ok_and(|answer| answer.contains("\"true\""))
    }

    /// The content below a prefix, read through etcd's JSON gateway, without our own code.
    pub fn entries(&self, prefix: &str) -> Vec<(String, Value)> {
        let mut end = prefix.to_owned();
        let last = end.pop().unwrap();
        end.push(char::from_u32(last as u32 + 1).unwrap());
        let answer = self.gateway(
            "/v3/kv/range",
            &json!({"key": STANDARD.encode(prefix), "range_end": STANDARD.encode(end)}),
        );
        let decode =
            |pair: &Value, field: &str| STANDARD.decode(pair[field].as_str().unwrap()).unwrap();
        let pairs = answer["kvs"].as_array().cloned().unwrap_or_default();
        let entry = |pair: &Value| {
            let key = String::from_utf8(decode(pair, "key")).unwrap();
            (key, serde_json::from_slice(&decode(pair, "value")).unwrap())
        };
        pairs.iter().map(entry).collect()
    }

    /// The value of a key, which must have one.
    pub fn value(&self, key: &str) -> Vec<u8> {
        let answer = self.gateway("/v3/kv/range", &json!({"key": STANDARD.encode(key)}));
        let value = answer["kvs"][0]["value"].as_str();
        STANDARD.decode(value.unwrap()).unwrap()
    }

    /// Puts a document, as another tool would.
    pub fn put(&self, key: &str, document: &Value) {
        self.put_bytes(key, document.to_string().as_bytes());
    }

    /// Puts any bytes.
    pub fn put_bytes(&self, key: &str, value: &[u8]) {
        let value = STANDARD.encode(value);
        let request = json!({"key": STANDARD.encode(key), "value": value});
        self.gateway("/v3/kv/put", &request);
    }

    /// Sends a request to its JSON gateway.
    pub fn gateway(&self, path: &str, request: &Value) -> Value {
        let body = request.to_string();
        let length = body.len();
        let request = format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = self.ask(2379, &request).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    fn ask(&self, port: u16, request: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((self.place.client.as_str(), port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Empties its folder after [`Etcd::kill`], so that the next start is a new store.
    pub fn empty(&mut self) {
        self.dir = tempfile::tempdir().unwrap();
    }

    /// A copy of its folder, after [`Etcd::kill`].
    pub fn backup(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_all(self.dir.path(), copy.path());
        copy
    }

    /// Replaces its folder by a copy, after [`Etcd::kill`].
    pub fn restore(&mut self, copy: &tempfile::TempDir) {
        self.empty();
        copy_all(copy.path(), self.dir.path());
    }

    /// Pauses the process: connections stay open and nothing is answered.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Resumes the process.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.pid().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }
}

fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(to)
        .status();
    assert!(copied.unwrap().success());
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
