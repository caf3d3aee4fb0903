//! The signals with which the system asks a program to stop.

use std::io;

use crate::controller::CancellationToken;

/// A signal that is given when the process gets SIGTERM or SIGINT, of which it does not end by itself any more. Outside of
/// Unix, Ctrl-C alone.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// let shutdown = apiloom_client::signals::shutdown()?;
/// shutdown.cancelled().await;
/// println!("stopping");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the system refuses to report signals.
///
/// # Panics
/// Outside of a Tokio runtime.
pub fn shutdown() -> io::Result<CancellationToken> {
    // Before the task begins, so that no signal is lost.
    let asked = asked_to_stop()?;
    let cancel = CancellationToken::new();
    let signal = cancel.clone();
    tokio::spawn(async move {
        asked.await;
        signal.cancel();
    });
    Ok(cancel)
}

#[cfg(unix)]
fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    })
}
