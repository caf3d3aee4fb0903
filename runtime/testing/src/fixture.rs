//! What the tests of `#[apiloom::test]` begin with.

use tokio::runtime::Builder;

use super::builder::TestServerBuilder;
use super::control::Control;
use super::error::TestError;
use super::server::TestServer;

/// A parameter of a test with `#[apiloom::test]`: it has a server of its own. [`TestServer`] is one, and so are the generated
/// clientsets of packages with the feature `fake`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server or a clientset of a test",
    note = "the first parameter of a test is an `apiloom::testing::TestServer`, or the generated `Clientset` of a package whose \
            feature `fake` is on"
)]
pub trait Fixture: Sized + Send + 'static {
    /// Begins the server.
    fn builder() -> TestServerBuilder<(Self, Control)>;
}

impl Fixture for TestServer {
    fn builder() -> TestServerBuilder<(Self, Control)> {
        TestServer::builder().map(|server| {
            let control = server.control();
            (server, control)
        })
    }
}

/// Runs a test in a tokio runtime of one thread.
///
/// # Panics
/// If the system has no resources for a runtime.
pub fn run<F: Future>(test: F) -> F::Output {
    block_on(&mut Builder::new_current_thread(), test)
}

/// As [`run`], in paused time: it passes only while all tasks wait (`tokio::time::pause`).
///
/// # Panics
/// If the system has no resources for a runtime.
#[cfg(feature = "paused-time")]
pub fn run_paused<F: Future>(test: F) -> F::Output {
    block_on(Builder::new_current_thread().start_paused(true), test)
}

fn block_on<F: Future>(builder: &mut Builder, test: F) -> F::Output {
    let runtime = builder.enable_all().build();
    runtime
        .expect("a runtime of one thread starts")
        .block_on(test)
}

/// The server of a test.
///
/// # Panics
/// With the error, which fails the test.
#[track_caller]
pub fn unwrap_built<T>(built: Result<T, TestError>) -> T {
    built.unwrap_or_else(|error| panic!("the test server did not start: {error}"))
}
