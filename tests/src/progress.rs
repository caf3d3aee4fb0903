//! The progress of a load, for tests that wait for a number of its writes before they continue.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Number of acknowledged writes, and of failed ones with unknown outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    acknowledged: usize,
    failed: usize,
}

/// The progress as reported by the writers of a load; clones share it.
#[derive(Clone, Debug)]
pub struct Progress {
    writes: watch::Sender<Writes>,
    patience: Duration,
}

impl Progress {
    /// Creates the progress of a new load; waits fail after `patience`.
    pub fn new(patience: Duration) -> Self {
        let writes = watch::Sender::new(Writes::default());
        Self { writes, patience }
    }

    /// Counts an acknowledged write.
    pub fn acknowledge(&self) {
        self.writes.send_modify(|writes| writes.acknowledged += 1);
    }

    /// Counts a failed write.
    pub fn fail(&self) {
        self.writes.send_modify(|writes| writes.failed += 1);
    }

    /// Number of writes that have failed so far.
    pub fn failed(&self) -> usize {
        self.writes.borrow().failed
    }

    /// Waits until this many more writes are acknowledged.
    pub async fn more(&self, count: usize) {
        let wanted = self.writes.borrow().acknowledged + count;
        self.wait("writes go on", |writes| writes.acknowledged >= wanted)
            .await;
    }

    /// Waits until more writes than this have failed.
    pub async fn failures(&self, before: usize) {
        self.wait("a write fails", |writes| writes.failed > before)
            .await;
    }

    async fn wait(&self, what: &str, reached: impl FnMut(&Writes) -> bool) {
        let mut writes = self.writes.subscribe();
        let reached = timeout(self.patience, writes.wait_for(reached)).await;
        reached.expect(what).unwrap();
    }
}
