//! Files that parts read again when they change.

use std::time::Duration;

/// Time between two looks at a file.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Reads files every 5 s, for ever: `read` says whether they have changed, and keeps what it knows if it fails. `what` they are is for the
/// log, as is a problem, once. Called by the `run` of a [`Capability`](super::Capability); reading may block.
pub async fn follow_files(
    what: &'static str,
    read: impl Fn() -> Result<bool, String> + Clone + Send + 'static,
) {
    let mut logged = String::new();
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let Ok(read) = tokio::task::spawn_blocking(read.clone()).await else {
            return;
        };
        match read {
            Ok(true) => tracing::info!("read the {what} again"),
            Ok(false) => {}
            Err(why) if why == logged => continue,
            Err(why) => {
                tracing::error!(%why, "the {what} stay as they were");
                logged = why;
                continue;
            }
        }
        logged.clear();
    }
}
