//! The backend that writes events to a file, or to the standard output.

use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::Instant;

use apiloom_server::ServerError;
use tokio::sync::mpsc::UnboundedReceiver;

use super::legacy;
use super::log_file::{LogFile, Rotation};
use super::metrics::Loss;
use super::queue::{Losses, Message, QueuedEvent};
use super::throttle::Throttle;

/// What the lines of the log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AuditFormat {
    /// A line of text with the most important of each event.
    Legacy,
    /// The whole event as JSON.
    Json,
}

/// Where lines go.
enum Output {
    File(LogFile),
    Standard,
}

impl Output {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.append(lines),
            Self::Standard => {
                let mut output = io::stdout().lock();
                output.write_all(lines)?;
                output.flush()
            }
        }
    }
}

/// How the log is written.
pub(super) struct LogSettings {
    pub(super) format: AuditFormat,
    pub(super) rotation: Rotation,
    /// Most events that are written at once.
    pub(super) max_batch: usize,
    pub(super) throttle: Option<Throttle>,
}

/// Writes what is queued from now on, in a thread of its own: a slow disk holds up nothing but those who wait for it.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn start(
    path: &Path,
    settings: LogSettings,
    messages: UnboundedReceiver<Message>,
    losses: Losses,
) -> Result<(), ServerError> {
    let output = if path == Path::new("-") {
        Output::Standard
    } else {
        let file = LogFile::open(path, settings.rotation);
        Output::File(file.map_err(|error| ServerError::File {
            path: path.to_owned(),
            reason: format!("--audit-log-path: {error}"),
        })?)
    };
    let writer = LogWriter {
        output,
        settings,
        losses,
    };
    let thread = thread::Builder::new().name("audit-log".to_owned());
    let spawned = thread.spawn(move || writer.run(messages));
    spawned.map(drop).map_err(|error| {
        ServerError::Invalid(vec![format!(
            "unable to start the thread of the audit log: {error}"
        )])
    })
}

struct LogWriter {
    output: Output,
    settings: LogSettings,
    losses: Losses,
}

impl LogWriter {
    fn run(mut self, mut messages: UnboundedReceiver<Message>) {
        let mut batch = Vec::new();
        while let Some(message) = messages.blocking_recv() {
            let mut flushed = Vec::new();
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Event(event) => batch.push(event),
                    Message::Flush(done) => flushed.push(done),
                }
                let has_room = batch.len() < self.settings.max_batch && flushed.is_empty();
                next = has_room.then(|| messages.try_recv().ok()).flatten();
            }
            if !batch.is_empty() {
                self.write(std::mem::take(&mut batch));
            }
            for done in flushed {
                // The server may have stopped to wait.
                let _ = done.send(());
            }
        }
    }

    fn write(&mut self, events: Vec<QueuedEvent>) {
        if let Some(throttle) = &mut self.settings.throttle {
            thread::sleep(throttle.wait(Instant::now()));
        }
        let mut lines = Vec::new();
        for event in &events {
            match self.settings.format {
                AuditFormat::Json => lines.extend_from_slice(&event.json),
                AuditFormat::Legacy => {
                    lines.extend_from_slice(legacy::line(&event.json).as_bytes());
                }
            }
            lines.push(b'\n');
        }
        let written = self.output.append(&lines);
        if let Err(error) = &written {
            let lost = events.iter().map(|event| &*event.json);
            self.losses.lost(Loss::Log, &error.to_string(), lost);
        }
        for event in events {
            event.finish(written.is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use apiloom_registry::auth::Answer;
    use bytes::Bytes;

    use super::super::metrics::AuditMetrics;
    use super::super::queue::{AuditMode, Bounds, Queue, sent};
    use super::*;

    fn settings(format: AuditFormat) -> LogSettings {
        LogSettings {
            format,
            rotation: Rotation {
                max_bytes: None,
                max_age: None,
                max_backups: None,
                compresses: false,
            },
            max_batch: 2,
            throttle: Some(Throttle::new(1000.0, 1)),
        }
    }

    fn log(path: &Path, format: AuditFormat, mode: AuditMode) -> Result<Queue, ServerError> {
        let bounds = Bounds {
            events: 100,
            bytes: 1 << 20,
        };
        let losses = Losses::new(AuditMetrics::default());
        let (queue, messages) = Queue::new(mode, bounds, losses.clone());
        start(path, settings(format), messages, losses).map(|()| queue)
    }

    #[tokio::test]
    async fn events_are_lines_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let queue = log(&path, AuditFormat::Json, AuditMode::Batch).unwrap();
        for number in 0..5 {
            let sent = queue.send(Bytes::from(format!("{{\"n\":{number}}}")), true);
            assert!(matches!(sent, Answer::Now(Ok(()))));
        }
        queue.flush().await;
        let lines: String = (0..5)
            .map(|number| format!("{{\"n\":{number}}}\n"))
            .collect();
        assert_eq!(fs::read_to_string(&path).unwrap(), lines);
        drop(queue);
        let queue = log(&path, AuditFormat::Legacy, AuditMode::Blocking).unwrap();
        let written = sent(queue.send(Bytes::from_static(b"{}"), true)).await;
        assert!(written.is_ok());
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.lines().last().unwrap().contains(" AUDIT: id="),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_opened_is_an_error_and_one_that_is_full_a_loss() {
        let folder = tempfile::tempdir().unwrap();
        let refused = log(folder.path(), AuditFormat::Json, AuditMode::Batch).unwrap_err();
        assert!(
            refused.to_string().contains("--audit-log-path"),
            "{refused}"
        );
        let full = Path::new("/dev/full");
        let queue = log(full, AuditFormat::Json, AuditMode::BlockingStrict).unwrap();
        let written = sent(queue.send(Bytes::from_static(b"{}"), false)).await;
        assert!(written.is_err());
    }
}
