//! Signals that end watches: the server is shutting down, or a resource is no longer served.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::task::coop::unconstrained;

/// Becomes true when the server shuts down. The default never does.
#[derive(Clone, Debug, Default)]
pub struct ShutdownSignal(Option<watch::Receiver<bool>>);

impl From<watch::Receiver<bool>> for ShutdownSignal {
    fn from(receiver: watch::Receiver<bool>) -> Self {
        Self(Some(receiver))
    }
}

impl ShutdownSignal {
    /// Waits until the server shuts down; forever if the sender is dropped.
    pub(crate) async fn wait(self) {
        if let Some(mut receiver) = self.0 {
            let told = receiver.wait_for(|stopping| *stopping).await.is_ok();
            if told {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Whether nothing was sent since this receiver was made. False if the sender is dropped.
    fn is_quiet(&self) -> bool {
        let receiver = self.0.as_ref();
        receiver.is_none_or(|receiver| matches!(receiver.has_changed(), Ok(false)))
    }
}

/// Completes with the first of several signals. Watches poll it for every event, so polling it again costs a few loads.
pub(crate) struct AnySignal {
    signals: Vec<ShutdownSignal>,
    told: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Wakes the task that `told` wakes.
    waker: Option<Waker>,
}

impl AnySignal {
    pub(crate) fn of(signals: impl IntoIterator<Item = ShutdownSignal>) -> Self {
        let signals: Vec<_> = signals.into_iter().collect();
        let waits = signals
            .iter()
            .cloned()
            .map(|signal| Box::pin(signal.wait()));
        let first = select_all(waits);
        Self {
            signals,
            // Without a budget, pending means that the task is woken by a signal.
            told: Box::pin(unconstrained(async move { drop(first.await) })),
            waker: None,
        }
    }
}

impl Future for AnySignal {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = self.waker.as_ref();
        let is_known = waker.is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_known && self.signals.iter().all(ShutdownSignal::is_quiet) {
            return Poll::Pending;
        }
        self.waker = Some(cx.waker().clone());
        self.told.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A task that polls, and the number of times it was woken.
    struct Task(Arc<Woken>);

    impl Task {
        fn new() -> Self {
            Self(Arc::default())
        }
        fn polls(&self, signal: &mut AnySignal) -> bool {
            let waker = Arc::clone(&self.0).into();
            Pin::new(signal)
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
        }
        fn woken(&self) -> usize {
            self.0.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn each_of_the_signals_wakes_the_task_that_polled_last() {
        for told in 0..2 {
            let channels = [false; 2].map(watch::channel);
            let receivers = channels
                .each_ref()
                .map(|(_, receiver)| receiver.clone().into());
            let mut signal = AnySignal::of(receivers);
            let [first, last] = [Task::new(), Task::new()];
            for task in [&first, &first, &last, &last] {
                assert!(!task.polls(&mut signal));
            }
            channels[told].0.send_replace(true);
            assert_eq!((first.woken(), last.woken()), (0, 1));
            assert!(last.polls(&mut signal));
        }
    }

    #[test]
    fn a_signal_that_was_sent_before_completes_at_once() {
        let (sender, receiver) = watch::channel(false);
        sender.send_replace(true);
        let late = sender.subscribe();
        for receiver in [receiver, late] {
            let mut signal = AnySignal::of([ShutdownSignal::default(), receiver.into()]);
            assert!(Task::new().polls(&mut signal));
        }
    }

    #[test]
    fn a_dropped_sender_and_false_are_no_signal() {
        let (sender, receiver) = watch::channel(false);
        let mut signal = AnySignal::of([receiver.into()]);
        let task = Task::new();
        assert!(!task.polls(&mut signal));
        sender.send_replace(false);
        assert!(!task.polls(&mut signal));
        drop(sender);
        assert!(!task.polls(&mut signal));
    }
}
