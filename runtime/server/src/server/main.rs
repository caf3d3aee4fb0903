//! The body of a generated `main`: arguments, logs, the server, signals, the exit code.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use apiloom_meta::regexp::{self, MAX_KEPT_PROGRAMS};
use tracing_subscriber::EnvFilter;

use super::{Backend, BoundServer, Builder, Config, Server, ServerError, lists, open_files};
use crate::background;
use crate::memory;
use crate::options::{CommandLine, ListFormat, Listing, Options};

/// The programs of patterns may have one of so many parts of it.
const PARTS_FOR_PATTERNS: u64 = 16;

/// Runs a server called `name` with the process' arguments. SIGTERM and SIGINT stop it gracefully, a second signal
/// immediately with exit code 1. `configure` registers what it serves.
///
/// Prints one line when the server is ready: the URL, the kubeconfig and the time since the start. An error is one
/// line on stderr, with exit code 1.
pub fn main(name: &str, configure: impl FnOnce(Builder) -> Builder) -> ExitCode {
    let started = Instant::now();
    let command_line = Options::parse(name, std::env::args_os());
    run_command(name, command_line, configure, started)
}

/// As [`main`], for a server without a package: it serves the built-in kinds and those of CustomResourceDefinitions, which it
/// installs from the files that `--crds` names.
#[cfg(feature = "apis-apiextensions")]
pub fn serve_definitions(name: &str) -> ExitCode {
    let started = Instant::now();
    let command_line = Options::parse_with_definitions(name, std::env::args_os());
    run_command(name, command_line, Builder::all_built_in, started)
}

fn run_command(
    name: &str,
    command_line: Result<CommandLine, Vec<String>>,
    configure: impl FnOnce(Builder) -> Builder,
    started: Instant,
) -> ExitCode {
    match command_line {
        Ok(CommandLine::Serve(config)) => {
            start_logs(config.verbosity);
            open_files::raise_limit();
            finish(run(async { serve(*config, configure, started).await }))
        }
        Ok(CommandLine::Print(text)) => print(&text),
        Ok(CommandLine::List {
            listing,
            format,
            config,
        }) => {
            start_logs(config.verbosity);
            let builder = configure(Server::builder(*config));
            finish(run(async { list(builder, listing, format).await }))
        }
        Ok(CommandLine::Dump) => finish(run(async { dump(name, configure).await })),
        Err(problems) => {
            problems.iter().for_each(|problem| report(problem));
            ExitCode::FAILURE
        }
    }
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

async fn serve(
    config: Config,
    configure: impl FnOnce(Builder) -> Builder,
    started: Instant,
) -> Result<(), MainError> {
    let name = config.name.clone();
    let mut signals = Signals::listen().map_err(MainError::Runtime)?;
    let server = configure(Server::builder(config))
        .build()
        .await
        .map_err(MainError::Failed)?;
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

async fn dump(name: &str, configure: impl FnOnce(Builder) -> Builder) -> Result<(), MainError> {
    let mut config = Config::new(name, "");
    config.backend = Backend::Memory;
    let documents = configure(Server::builder(config))
        .dump()
        .map_err(MainError::Failed)?;
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

/// What is logged at a verbosity. HTTP/2 and TLS warn of single frames and handshakes of clients, as many as these send: below
/// 6 only their errors are logged.
fn directives(verbosity: u8) -> String {
    let own = match verbosity {
        0 => "warn",
        1 => "warn,apiloom_server=info,apiloom_storage=info",
        2 | 3 => "warn,apiloom_server=debug,apiloom_storage=info",
        4 | 5 => "info,apiloom_server=trace,apiloom_storage=debug",
        6 | 7 => return "debug".to_owned(),
        _ => return "trace".to_owned(),
    };
    format!("{own},h2=error,hyper=error,hyper_util=error,rustls=error,tungstenite=error")
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
    use super::*;

    #[test]
    fn frames_of_clients_are_logged_only_when_http2_is() {
        for (verbosity, is_logged) in [(0, false), (1, false), (3, false), (5, false), (6, true)] {
            let subscriber = tracing_subscriber::fmt()
                .with_env_filter(EnvFilter::new(directives(verbosity)))
                .with_writer(std::io::sink)
                .finish();
            tracing::subscriber::with_default(subscriber, || {
                let warns = tracing::enabled!(target: "h2::proto::ping_pong", tracing::Level::WARN);
                assert_eq!(warns, is_logged, "-v {verbosity}");
                let own = tracing::enabled!(target: "apiloom_server", tracing::Level::WARN);
                assert!(own, "-v {verbosity}");
            });
        }
    }
}
