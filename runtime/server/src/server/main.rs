//! The body of a generated `main`: arguments, logs, the server, signals, the exit code.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use apiloom_http::background;
use apiloom_meta::regexp::{self, MAX_KEPT_PROGRAMS};
use apiloom_registry::memory;
use tracing_subscriber::EnvFilter;

use super::{Backend, BoundServer, Builder, Config, Part, ServerError, lists, open_files};
use crate::options::arguments::Arguments;
use crate::options::{CommandLine, ListFormat, Listing};

/// The programs of patterns may have one of so many parts of it.
const PARTS_FOR_PATTERNS: u64 = 16;

/// A program that is a server.
pub struct Program {
    name: String,
    parts: Vec<Box<dyn Part>>,
    /// What users type, if that is not the name and there is no package.
    command: Option<&'static str>,
}

impl Program {
    /// The program of a server with this name, and without parts.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            parts: Vec::new(),
            command: None,
        }
    }

    /// Adds parts that the server has beside all that its program registers. Their flags are known before that, so the program is not asked
    /// for its own parts to read them.
    #[must_use]
    pub fn parts(mut self, parts: impl IntoIterator<Item = Box<dyn Part>>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// The program is a command without a package, and called so: it has the flag `--kubeconfig` too.
    #[must_use]
    pub fn command(mut self, command: &'static str) -> Self {
        self.command = Some(command);
        self
    }

    /// Runs the server with the process' arguments. SIGTERM and SIGINT stop it gracefully, a second signal immediately with exit
    /// code 1. `configure` registers what it serves.
    ///
    /// Prints one line when the server is ready: the URL, the kubeconfig and the time since the start. An error is one
    /// line on stderr, with exit code 1.
    pub fn main(self, configure: impl FnOnce(Builder) -> Builder) -> ExitCode {
        let started = Instant::now();
        let arguments = Arguments::new(&self.name, self.command, std::env::args_os());
        run_command(&arguments, self.parts, configure, started)
    }
}

fn run_command(
    arguments: &Arguments,
    mut parts: Vec<Box<dyn Part>>,
    configure: impl FnOnce(Builder) -> Builder,
    started: Instant,
) -> ExitCode {
    let first = arguments.read(&mut parts);
    let config = match &first.result {
        Ok(CommandLine::Serve(config) | CommandLine::List { config, .. }) => Config::clone(config),
        Ok(CommandLine::Dump) => config_of_dump(arguments),
        // The program has to be asked for its parts, whose flags these may be.
        _ if first.lacks_flags => arguments.known_config(&parts),
        Ok(CommandLine::Print(text)) => return print(text),
        Err(problems) => {
            problems.iter().for_each(|problem| report(problem));
            return ExitCode::FAILURE;
        }
    };
    // The problems of a dump are its errors: its log would tell them once more.
    if !matches!(first.result, Ok(CommandLine::Dump)) {
        start_logs(config.verbosity);
    }
    open_files::raise_limit();
    finish(run(async {
        let signals = Signals::listen().map_err(MainError::Runtime)?;
        let known = parts.len();
        let mut builder = configure(Builder::new(config).parts(parts));
        let result = if builder.parts.len() == known {
            first.result
        } else {
            arguments.read(&mut builder.parts).result
        };
        let refused = |problems| MainError::Failed(ServerError::Invalid(problems));
        match result.map_err(refused)? {
            CommandLine::Serve(config) => {
                builder.config = *config;
                Box::pin(serve(builder, signals, started)).await
            }
            CommandLine::List {
                listing,
                format,
                config,
            } => {
                builder.config = *config;
                list(builder, listing, format).await
            }
            CommandLine::Dump => dump(builder),
            CommandLine::Print(text) => {
                print(&text);
                Ok(())
            }
        }
    }))
}

fn config_of_dump(arguments: &Arguments) -> Config {
    let mut config = arguments.default_config();
    config.backend = Backend::Memory;
    config
}

/// Error that ends the process.
enum MainError {
    Failed(ServerError),
    Runtime(std::io::Error),
    /// A second signal arrived during the graceful stop.
    Interrupted,
}

fn finish(outcome: Result<(), MainError>) -> ExitCode {
    match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(MainError::Failed(ServerError::Invalid(problems))) => {
            problems.iter().for_each(|problem| report(problem));
        }
        Err(MainError::Failed(error)) => report(&error.to_string()),
        Err(MainError::Runtime(error)) => report(&format!("cannot start threads: {error}")),
        Err(MainError::Interrupted) => {}
    }
    ExitCode::FAILURE
}

fn run(work: impl Future<Output = Result<(), MainError>>) -> Result<(), MainError> {
    regexp::keep_at_most(memory::share(PARTS_FOR_PATTERNS, MAX_KEPT_PROGRAMS));
    let runtime = background::runtime().map_err(MainError::Runtime)?;
    let outcome = runtime.block_on(work);
    // After a second signal, requests in flight are not waited for.
    runtime.shutdown_background();
    outcome
}

async fn serve(builder: Builder, mut signals: Signals, started: Instant) -> Result<(), MainError> {
    let name = builder.config().name.clone();
    let server = builder.build().await.map_err(MainError::Failed)?;
    let ready = server.bind().await.map_err(MainError::Failed)?;
    let line = ready_line(&name, &ready);
    let url = ready.url().to_owned();
    let installed = ready.install();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = ready.serve(async {
        // An error means that the sender is dropped; the server stops then, too.
        let _ = stopped.await;
    });
    tokio::pin!(serving);
    let announced = async {
        installed.await?;
        print(&line(started));
        tracing::info!(url, "serving");
        std::future::pending::<Result<(), ServerError>>().await
    };
    let outcome = tokio::select! {
        biased;
        failed = announced => failed.map_err(MainError::Failed),
        () = &mut serving => return Ok(()),
        signal = signals.next() => {
            tracing::info!(signal, "stopping");
            Ok(())
        }
    };
    // An error means that serving has ended already.
    let _ = stop.send(());
    tokio::select! {
        () = serving => {
            tracing::info!("stopped");
            outcome
        }
        _ = signals.next() => Err(MainError::Interrupted),
    }
}

fn dump(builder: Builder) -> Result<(), MainError> {
    let documents = builder.dump().map_err(MainError::Failed)?;
    print(&documents.to_string());
    Ok(())
}

async fn list(builder: Builder, listing: Listing, format: ListFormat) -> Result<(), MainError> {
    let text = match listing {
        Listing::Chain => builder.chain().map(|chain| lists::chain(&chain, format)),
        Listing::Routes => {
            let routes = builder.routes().await;
            routes.map(|routes| lists::routes(&routes, format))
        }
    };
    print(&text.map_err(MainError::Failed)?);
    Ok(())
}

/// The line that says that a server is ready, by the time of its start.
fn ready_line(name: &str, server: &BoundServer) -> impl Fn(Instant) -> String + use<> {
    let (url, kubeconfig) = (server.url(), server.kubeconfig().display());
    let (ready, paths) = (
        format!("{name} ready at {url}"),
        format!("kubeconfig: {kubeconfig}"),
    );
    move |started| format!("{ready} in {} ms; {paths}\n", started.elapsed().as_millis())
}

/// Streams of SIGTERM and SIGINT.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
    #[cfg(not(unix))]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }
    #[cfg(unix)]
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
    #[cfg(not(unix))]
    async fn next(&mut self) -> &'static str {
        // If signals cannot be received, the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}

/// The crates that log what the server does.
const OF_SERVER: [&str; 12] = [
    "apiloom_admission",
    "apiloom_aggregator",
    "apiloom_apiextensions",
    "apiloom_audit",
    "apiloom_authentication",
    "apiloom_authorization",
    "apiloom_encryption",
    "apiloom_garbage",
    "apiloom_http",
    "apiloom_namespaces",
    "apiloom_registry",
    "apiloom_server",
];

/// The crates that log what a store does.
const OF_STORES: [&str; 1] = ["apiloom_storage"];

/// What is logged at a verbosity. HTTP/2 and TLS warn of single frames and handshakes of clients, as many as these send: below
/// 6 only their errors are logged.
fn directives(verbosity: u8) -> String {
    let (others, of_server, of_stores) = match verbosity {
        0 => ("warn", "warn", "warn"),
        1 => ("warn", "info", "info"),
        2 | 3 => ("warn", "debug", "info"),
        4 | 5 => ("info", "trace", "debug"),
        6 | 7 => return "debug".to_owned(),
        _ => return "trace".to_owned(),
    };
    let of_server = OF_SERVER.map(|name| format!("{name}={of_server},"));
    let of_stores = OF_STORES.map(|name| format!("{name}={of_stores},"));
    let own = [of_server.concat(), of_stores.concat()].concat();
    format!("{others},{own}h2=error,hyper=error,hyper_util=error,rustls=error,tungstenite=error")
}

fn start_logs(verbosity: u8) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(directives(verbosity)))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A program that embeds the server may have set its own subscriber, which is kept.
    let _ = subscriber.try_init();
}

/// Writes to stdout; a closed pipe is not an error.
fn print(text: &str) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes one error to stderr; a failure of this write is ignored.
fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {text}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use tracing::Level;

    use super::*;

    /// Runs a function with the logs of a verbosity, which go nowhere.
    fn at_verbosity<T>(verbosity: u8, run: impl FnOnce() -> T) -> T {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(directives(verbosity)))
            .with_writer(std::io::sink)
            .finish();
        tracing::subscriber::with_default(subscriber, run)
    }

    #[test]
    fn frames_of_clients_are_logged_only_when_http2_is() {
        for (verbosity, is_logged) in [(0, false), (1, false), (3, false), (5, false), (6, true)] {
            at_verbosity(verbosity, || {
                let warns = tracing::enabled!(target: "h2::proto::ping_pong", Level::WARN);
                assert_eq!(warns, is_logged, "-v {verbosity}");
                let own = tracing::enabled!(target: "apiloom_server", Level::WARN);
                assert!(own, "-v {verbosity}");
            });
        }
    }

    /// The most that is logged of a target.
    macro_rules! most {
        ($target:literal) => {
            [
                (tracing::enabled!(target: $target, Level::TRACE), "trace"),
                (tracing::enabled!(target: $target, Level::DEBUG), "debug"),
                (tracing::enabled!(target: $target, Level::INFO), "info"),
                (tracing::enabled!(target: $target, Level::WARN), "warn"),
            ]
            .into_iter()
            .find_map(|(is_logged, level)| is_logged.then_some(level))
        };
    }

    #[test]
    fn the_parts_of_the_server_are_logged_alike() {
        for (verbosity, of_server, of_stores, others) in [
            (0, "warn", "warn", "warn"),
            (1, "info", "info", "warn"),
            (2, "debug", "info", "warn"),
            (4, "trace", "debug", "info"),
            (6, "debug", "debug", "debug"),
            (8, "trace", "trace", "trace"),
        ] {
            let logged = at_verbosity(verbosity, || {
                [
                    most!("apiloom_server::server::main"),
                    most!("apiloom_garbage::collector"),
                    most!("apiloom_http::verbs::watch"),
                    most!("apiloom_registry::reads::cached"),
                    most!("apiloom_storage::cache"),
                    most!("apiloom_client::cache"),
                ]
            });
            let expected = [
                of_server, of_server, of_server, of_server, of_stores, others,
            ];
            assert_eq!(logged, expected.map(Some), "-v {verbosity}");
        }
    }

    /// A crate that begins to log is to be put where it belongs: without a rule its lines would be those of other libraries.
    #[test]
    fn each_crate_that_logs_has_a_rule() {
        /// The crates whose lines are those of other libraries.
        const OTHERS: [&str; 1] = ["apiloom_client"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |folder: &str| std::fs::read_to_string(root.join(folder).join("Cargo.toml"));
        let workspace = read("").unwrap();
        let members = workspace
            .lines()
            .map(|line| line.trim_matches([' ', '"', ',']));
        let mut logging = BTreeSet::new();
        for member in members.filter(|member| member.starts_with("runtime/")) {
            let manifest = read(member).unwrap();
            let [name, logs] = ["name = ", "tracing."]
                .map(|key| manifest.lines().find_map(|line| line.strip_prefix(key)));
            if logs.is_some() {
                logging.insert(name.unwrap().trim_matches('"').replace('-', "_"));
            }
        }
        let known = OF_SERVER.into_iter().chain(OF_STORES).chain(OTHERS);
        assert_eq!(logging, known.map(str::to_owned).collect());
    }
}
