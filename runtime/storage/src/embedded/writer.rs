//! The writing thread: it commits all queued writes in one transaction with one sync before it answers them.
//!
//! Between batches it removes expired keys and compacted history, in steps that delay no write by more than a few
//! milliseconds.

mod housekeeping;
mod pace;
mod state;
mod transaction;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::connection::keep_log_on_close;
use super::request::{Answer, Request};
use super::row::query;
use crate::Revision;
use crate::op::Op;
pub(super) use state::Writer;
use transaction::now_millis;

/// Maximum writes of a batch, which also has a limit in bytes: its first write waits for the last.
const BATCH_WRITES: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

impl Writer {
    /// Runs until the store is closed.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        self.find_next_expiry();
        self.resume_history();
        loop {
            let first = match requests.recv_timeout(self.idle_time()) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.finish(None),
            };
            let batch = Batch::gather(first, requests);
            let written = batch.writes.len();
            self.write(batch.writes);
            for (revision, reply) in batch.compactions {
                // The caller may have dropped the receiver: the answer is not needed then.
                let _ = reply.send(self.compact(revision));
            }
            if batch.is_checkpointed {
                self.finish_checkpoint();
            }
            if let Some(reply) = batch.close {
                return self.finish(reply);
            }
            self.run_maintenance(written);
        }
    }

    /// How long the thread can sleep.
    fn idle_time(&self) -> Duration {
        let now = Instant::now();
        let mut look = self.next_look.saturating_duration_since(now);
        if self.swept < self.sweep_end() {
            look = look.min(self.next_sweep.saturating_duration_since(now));
        }
        if self.place.trouble().is_some() {
            look = look.min(self.next_try.saturating_duration_since(now));
        }
        match self.next_expiry {
            Some(expiry) => look.min(Duration::from_millis(
                u64::try_from(expiry - now_millis()).unwrap_or(0),
            )),
            None => look,
        }
    }

    fn write(&mut self, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        match self.commit(writes.iter().map(|write| (&*write.key, &write.op))) {
            Ok(answers) => {
                for (write, answer) in writes.into_iter().zip(answers) {
                    let _ = write.reply.send(answer);
                }
            }
            Err(error) => {
                tracing::error!(%error, writes = writes.len(), "writes failed");
                for write in writes {
                    let _ = write.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn finish(self, reply: Option<oneshot::Sender<()>>) {
        self.keep_times();
        self.upkeep.stop();
        if self.place.check().is_err() {
            // Closing would make SQLite remove the log at this path, which may belong to another store now.
            if let Err(error) = keep_log_on_close(&self.place, &self.connection, true) {
                tracing::warn!(%error, "cannot keep SQLite's log on close");
            }
        }
        if let Err(error) = query(
            &self.connection,
            "PRAGMA wal_checkpoint(TRUNCATE)",
            [],
            |_| Ok(()),
        ) {
            tracing::warn!(%error, "failed to write back SQLite's log");
        }
        drop(self.connection);
        drop(self.lock);
        if let Some(reply) = reply {
            let _ = reply.send(());
        }
    }
}

/// A write that waits for its answer.
struct Write {
    key: String,
    op: Op,
    reply: Answer<Revision>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The requests that the writer handles together.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    compactions: Vec<(Revision, Answer<()>)>,
    is_checkpointed: bool,
    close: Option<Option<oneshot::Sender<()>>>,
}

impl Batch {
    /// Takes queued requests, up to the limits of a batch.
    fn gather(first: Option<Request>, requests: &Receiver<Request>) -> Self {
        let mut batch = Self::default();
        let mut bytes = 0;
        let mut next = first;
        while let Some(request) = next {
            match request {
                Request::Write {
                    key,
                    op,
                    reply,
                    permit,
                } => {
                    bytes += key.len() + op.value().map_or(0, bytes::Bytes::len);
                    batch.writes.push(Write {
                        key,
                        op,
                        reply,
                        _permit: permit,
                    });
                }
                Request::Compact { revision, reply } => batch.compactions.push((revision, reply)),
                Request::Checkpointed => batch.is_checkpointed = true,
                Request::Close { reply } => batch.close = Some(reply),
            }
            let is_full =
                batch.writes.len() >= BATCH_WRITES || bytes >= BATCH_BYTES || batch.close.is_some();
            next = if is_full {
                None
            } else {
                requests.try_recv().ok()
            };
        }
        batch
    }
}
