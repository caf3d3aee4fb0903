//! The baseline of every measurement: plain hyper and rustls that serve prepared bytes, in a process of their own. It
//! looks nothing up, checks nothing and logs nothing, so no server over the same libraries can need less.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::{Arc, RwLock};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::broadcast;

use crate::options::Http;
use crate::target::{Call, Target};

/// The path prefix under which the served bytes are set, by name.
const BYTES: &str = "/__bytes/";

/// Maximum events that a slow watcher may be behind.
const BACKLOG: usize = 100_000;

/// The output of the baseline's process when it listens.
#[derive(Serialize, Deserialize)]
struct Listening {
    url: String,
    authority: String,
}

/// The baseline's process, killed when dropped.
pub(crate) struct Floor {
    process: Child,
    listening: Listening,
}

impl Floor {
    /// Starts the process.
    pub(crate) async fn start() -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("floor")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = process.stdout.take().context("the floor has no stdout")?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        let listening = serde_json::from_str(&line.context("the floor did not start")?)?;
        Ok(Self { process, listening })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.process.id().context("the floor has ended")
    }

    /// The address and credentials of the baseline.
    pub(crate) fn target(&self, http: Http) -> Result<Target> {
        let authority = self.listening.authority.as_bytes();
        Target::new(&self.listening.url, authority, None, None, http)
    }

    /// Sets the bytes for `name`: `item`, `list`, `page`, `table`, `event`, and `base`, the path of the list.
    pub(crate) async fn hand_out(&self, target: &Target, name: &str, bytes: Bytes) -> Result<()> {
        let path = format!("{BYTES}{name}");
        let mut connection = target.connect().await?;
        connection
            .call(Call::new(Method::PUT, &path, bytes))
            .await?;
        Ok(())
    }
}

/// The main loop of the process: serves until its standard input ends.
pub(crate) async fn serve() -> Result<()> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    let authority = made.cert.pem();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(authority.as_bytes())?],
            PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes())?,
        )?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}", listener.local_addr()?);
    let mut stdout = std::io::stdout();
    writeln!(
        stdout,
        "{}",
        serde_json::to_string(&Listening { url, authority })?
    )?;
    stdout.flush()?;
    let ready = Arc::new(Ready {
        bytes: RwLock::new(HashMap::new()),
        events: broadcast::channel(BACKLOG).0,
    });
    let mut end = tokio::io::stdin();
    let mut nothing = [0];
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                tokio::spawn(connection(socket, acceptor.clone(), Arc::clone(&ready)));
            }
            _ = end.read(&mut nothing) => return Ok(()),
        }
    }
}

struct Ready {
    bytes: RwLock<HashMap<String, Bytes>>,
    events: broadcast::Sender<Bytes>,
}

async fn connection(socket: TcpStream, acceptor: tokio_rustls::TlsAcceptor, ready: Arc<Ready>) {
    // A client that disconnects ends its connection; nothing else is needed.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let Ok(stream) = acceptor.accept(socket).await else {
        return;
    };
    let service = service_fn(move |request| answer(request, Arc::clone(&ready)));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(1000);
    // As above.
    builder
        .serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(
    request: Request<Incoming>,
    ready: Arc<Ready>,
) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    if head.method == Method::GET {
        let query = head.uri.query().unwrap_or_default();
        if query.contains("watch=") {
            return Ok(json(StatusCode::OK, events(&ready)));
        }
        let table = head
            .headers
            .get(header::ACCEPT)
            .is_some_and(|accept| accept.as_bytes().windows(5).any(|word| word == b"Table"));
        let name = match () {
            () if table => "table",
            () if query.contains("limit=") => "page",
            () if ready.get("base") == path => "list",
            () => "item",
        };
        return Ok(json(StatusCode::OK, whole(ready.get(name))));
    }
    let body = body.collect().await?.to_bytes();
    if let Some(name) = path.strip_prefix(BYTES) {
        ready.set(name, body);
        return Ok(json(StatusCode::OK, whole(Bytes::new())));
    }
    if ready.events.receiver_count() > 0 {
        // Sending fails if there is no watcher, which is no error.
        ready.events.send(ready.get("event")).ok();
    }
    let code = match head.method {
        Method::POST => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    Ok(json(code, whole(ready.get("item"))))
}

impl Ready {
    fn get(&self, name: &str) -> Bytes {
        let bytes = self
            .bytes
            .read()
            .unwrap_or_else(|poison| poison.into_inner());
        bytes.get(name).cloned().unwrap_or_default()
    }

    fn set(&self, name: &str, value: Bytes) {
        let mut bytes = self
            .bytes
            .write()
            .unwrap_or_else(|poison| poison.into_inner());
        bytes.insert(name.to_owned(), value);
    }
}

fn events(ready: &Ready) -> Body {
    let receiver = ready.events.subscribe();
    let events = futures_util::stream::unfold(receiver, |mut receiver| async {
        let event = receiver.recv().await.ok()?;
        Some((Ok(Frame::data(event)), receiver))
    });
    StreamBody::new(events).boxed_unsync()
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

fn json(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
