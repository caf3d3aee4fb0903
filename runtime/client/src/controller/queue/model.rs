//! Compares the queue's state with a model that has no order of its own: a list that is searched for each answer.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::time::Instant;

use super::priority::Priority;
use super::state::{Assignment, Next, Outcome, State, WorkQueueConfig};

const AGEING: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
enum Step {
    Add(u8, Priority, u64),
    Take,
    /// A worker, counted among those that have a key, is done.
    Finish(usize, Outcome),
    Wait(u64),
    Forget(u8),
    Drain,
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..6_u8;
    let priority = (0..5_usize).prop_map(|level| Priority::ALL[level]);
    let delay = prop_oneof![3 => Just(0), 1 => 1..100_000_u64];
    let outcome = prop_oneof![
        Just(Outcome::Success),
        Just(Outcome::Failure),
        Just(Outcome::Unknown),
        (0..50_000_u64).prop_map(|ms| Outcome::Again(Duration::from_millis(ms))),
        (0..50_000_u64).prop_map(|ms| Outcome::Postponed(Duration::from_millis(ms))),
    ];
    let step = prop_oneof![
        400 => (key.clone(), priority, delay).prop_map(|(key, priority, ms)| Step::Add(key, priority, ms)),
        400 => Just(Step::Take),
        300 => (0..6_usize, outcome).prop_map(|(worker, outcome)| Step::Finish(worker, outcome)),
        200 => prop_oneof![1..20_u64, 1..60_000_u64].prop_map(Step::Wait),
        20 => key.prop_map(Step::Forget),
        1 => Just(Step::Drain),
        1 => Just(Step::Close),
    ];
    vec(step, 1..200)
}

/// A key that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    priority: Priority,
    due: Instant,
    number: usize,
}

#[derive(Debug)]
struct Model {
    waiting: BTreeMap<u8, Waiting>,
    /// The keys of workers, and since when.
    running: Vec<(Assignment<u8>, Instant)>,
    /// The failures in a row, and the end of the last delay.
    failures: BTreeMap<u8, (u32, Instant)>,
    is_draining: bool,
    is_closed: bool,
    additions: usize,
}

impl Model {
    fn add(&mut self, key: u8, priority: Priority, due: Instant) {
        if self.is_draining || self.is_closed {
            return;
        }
        self.additions += 1;
        let number = self.additions;
        let new = Waiting {
            priority,
            due,
            number,
        };
        let waiting = self.waiting.entry(key).or_insert(new);
        waiting.priority = waiting.priority.max(priority);
        waiting.due = waiting.due.min(due);
    }

    fn is_running(&self, key: u8) -> bool {
        self.running.iter().any(|(taken, _)| taken.key == key)
    }

    /// The ready key that has the lead: levels count as much as the time in which one rises by a level.
    fn take(&mut self, now: Instant) -> Next<u8> {
        let free = |key: &u8| !self.is_running(*key);
        let waiting = self.waiting.iter().filter(|(key, _)| free(key));
        let ready = waiting.clone().filter(|(_, waiting)| waiting.due <= now);
        let first = ready.max_by_key(|(_, waiting)| {
            let levels = Priority::ALL
                .iter()
                .position(|p| *p == waiting.priority)
                .unwrap();
            let age = now.duration_since(waiting.due) + AGEING * u32::try_from(levels).unwrap();
            (age, std::cmp::Reverse(waiting.number))
        });
        if let Some((&key, &Waiting { priority, .. })) = first {
            self.waiting.remove(&key);
            let failures = self.failures.get(&key).map_or(0, |(count, _)| *count);
            let taken = Assignment {
                key,
                priority,
                failures,
            };
            self.running.push((taken.clone(), now));
            return Next::Work(taken);
        }
        if self.is_closed || (self.is_draining && self.running.is_empty()) {
            return Next::Closed;
        }
        Next::Empty(waiting.map(|(_, waiting)| waiting.due).min())
    }

    fn finish(&mut self, worker: usize, outcome: Outcome, now: Instant) -> Assignment<u8> {
        let (taken, started) = self.running.remove(worker);
        let key = taken.key;
        match outcome {
            Outcome::Success => {
                self.failures.remove(&key);
            }
            Outcome::Failure => {
                let config = WorkQueueConfig::default().backoff;
                let (count, end) = self.failures.entry(key).or_insert((0, started));
                if *count == 0 || started >= *end {
                    *count += 1;
                    *end = now + config.delay(*count);
                }
                let due = (*end).max(now);
                self.add(key, taken.priority, due);
            }
            Outcome::Again(delay) => {
                self.failures.remove(&key);
                self.add(key, taken.priority, now + delay);
            }
            Outcome::Postponed(delay) => self.add(key, taken.priority, now + delay),
            Outcome::Unknown => {}
        }
        taken
    }
}

fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut now = Instant::now();
    let mut state = State::new(WorkQueueConfig {
        ageing: AGEING,
        ..WorkQueueConfig::default()
    });
    let mut model = Model {
        waiting: BTreeMap::new(),
        running: Vec::new(),
        failures: BTreeMap::new(),
        is_draining: false,
        is_closed: false,
        additions: 0,
    };
    for step in steps {
        match step {
            Step::Add(key, priority, ms) => {
                let due = now + Duration::from_millis(ms);
                state.add(&key, priority, due, now);
                model.add(key, priority, due);
            }
            Step::Take => prop_assert_eq!(state.take(now), model.take(now)),
            Step::Finish(worker, outcome) => {
                if worker < model.running.len() {
                    let taken = model.finish(worker, outcome, now);
                    state.finish(&taken, outcome, now);
                }
            }
            Step::Wait(ms) => now += Duration::from_millis(ms),
            Step::Forget(key) => {
                state.forget(&key);
                model.failures.remove(&key);
            }
            Step::Drain => {
                state.drain(now);
                if !model.is_draining && !model.is_closed {
                    model.waiting.retain(|_, waiting| waiting.due <= now);
                    model.is_draining = true;
                }
            }
            Step::Close => {
                state.close();
                model.waiting.clear();
                model.is_closed = true;
            }
        }
        for key in 0..6 {
            let failures = model.failures.get(&key).map_or(0, |(count, _)| *count);
            prop_assert_eq!(state.failures(&key), failures);
        }
        let running = |key: &u8| model.running.iter().any(|(taken, _)| taken.key == *key);
        let free = model.waiting.iter().filter(|(key, _)| !running(key));
        let ready = free
            .clone()
            .filter(|(_, waiting)| waiting.due <= now)
            .count();
        prop_assert_eq!(state.metrics(now).depth, ready);
        prop_assert_eq!(state.has_queued(), free.count() > 0);
        prop_assert_eq!(
            state.is_idle_until(now),
            ready == 0 && model.running.is_empty()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trap_32_33_34_the_queue_does_as_the_model(steps in steps()) {
        check(steps)?;
    }
}
