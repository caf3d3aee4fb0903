//! Files that are read again when they change.

use std::time::Duration;

/// Time between two looks at a file.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Reads files again and again, for ever: `read` says whether they have changed. `what` they are is for the log, as is a problem, once.
pub(crate) async fn follow(
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
