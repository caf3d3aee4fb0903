//! How a load gets on, for tests that wait for so many of its writes before they do the next thing.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How many writes were acknowledged, and how many failed without it being known whether they were done.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    acknowledged: usize,
    failed: usize,
}

/// What the writers of a load tell; its clones are of the same load.
#[derive(Clone, Debug)]
pub struct Progress {
    writes: watch::Sender<Writes>,
    patience: Duration,
}

impl Progress {
    /// Of a load that begins; what is waited for must come within `patience`.
    pub fn new(patience: Duration) -> Self {
        let writes = watch::Sender::new(Writes::default());
        Self { writes, patience }
    }

    /// A write was acknowledged.
    pub fn acknowledge(&self) {
        self.writes.send_modify(|writes| writes.acknowledged += 1);
    }

    /// A write failed.
    pub fn fail(&self) {
        self.writes.send_modify(|writes| writes.failed += 1);
    }

    /// How many writes have failed so far.
    pub fn failed(&self) -> usize {
        self.writes.borrow().failed
    }

    /// Waits until so many more writes are acknowledged.
    pub async fn more(&self, count: usize) {
        let wanted = self.writes.borrow().acknowledged + count;
        self.wait("writes go on", |writes| writes.acknowledged >= wanted)
            .await;
    }

    /// Waits until more writes than these have failed.
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
