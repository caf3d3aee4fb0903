//! Which events are written: those that repeat are counted, and those of an object are limited. Plain data that is told the
//! time.
//!
//! The rules are those of client-go: the second of a series is written with its count, further ones with the next refresh
//! or when the series ends.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use apiloom_meta::MicroTime;
use tokio::time::Instant;

use super::event::{Event, EventSeries, NewEvent, ObjectReference, SeriesKey};

/// A series ends if nothing was added to it for this time.
pub(super) const FINISH: Duration = Duration::from_secs(6 * 60);
/// A series that goes on is written so often.
pub(super) const REFRESH: Duration = Duration::from_secs(30 * 60);
/// So many new events of an object are written at once.
pub(super) const BURST: u32 = 25;
/// After this time one more is.
pub(super) const REFILL: Duration = Duration::from_secs(5 * 60);
/// The most series, and the most objects with a limit, that are remembered.
pub(super) const MAX_ENTRIES: usize = 4096;

/// What is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    Create(Event),
    /// The series of an event that was created.
    Series(Event, EventSeries),
}

#[derive(Debug)]
struct Entry {
    event: Event,
    last_seen: Instant,
    last_written: Instant,
    written_count: i32,
}

/// The right to write, which is used up and comes back with time.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    left: u32,
    since: Instant,
}

#[derive(Debug)]
pub(super) struct Correlator {
    controller: String,
    instance: String,
    series: HashMap<SeriesKey, Entry>,
    limits: HashMap<ObjectReference, Tokens>,
    number: u64,
    /// Events that were not written because of the limit.
    pub(super) limited: u64,
}

impl Correlator {
    pub(super) fn new(controller: String, instance: String) -> Self {
        Self {
            controller,
            instance,
            series: HashMap::new(),
            limits: HashMap::new(),
            number: 0,
            limited: 0,
        }
    }

    /// Takes an event, and returns what is to be written now.
    pub(super) fn observe(
        &mut self,
        new: NewEvent,
        now: Instant,
        time: MicroTime,
    ) -> Option<Write> {
        let key = new.key();
        if let Some(entry) = self.series.get_mut(&key) {
            let is_second = entry.event.series.is_none();
            let count = entry.event.series.map_or(1, |series| series.count);
            let series = EventSeries {
                count: count.saturating_add(1),
                last_observed_time: time,
            };
            entry.event.series = Some(series);
            entry.last_seen = now;
            if !is_second {
                return None;
            }
            entry.last_written = now;
            entry.written_count = series.count;
            return Some(Write::Series(entry.event.clone(), series));
        }
        if !self.take_token(&new.regarding, now) {
            self.limited += 1;
            return None;
        }
        self.number += 1;
        let event = new.into_event(&self.controller, &self.instance, time, self.number);
        let entry = Entry {
            event: event.clone(),
            last_seen: now,
            last_written: now,
            written_count: 1,
        };
        remove_oldest(&mut self.series, |entry| entry.last_seen);
        self.series.insert(key, entry);
        Some(Write::Create(event))
    }

    fn take_token(&mut self, object: &ObjectReference, now: Instant) -> bool {
        if let Some(tokens) = self.limits.get_mut(object) {
            while tokens.left < BURST && now.duration_since(tokens.since) >= REFILL {
                tokens.left += 1;
                tokens.since += REFILL;
            }
            if tokens.left == BURST {
                tokens.since = now;
            }
            let is_allowed = tokens.left > 0;
            tokens.left = tokens.left.saturating_sub(1);
            return is_allowed;
        }
        remove_oldest(&mut self.limits, |tokens| tokens.since);
        let tokens = Tokens {
            left: BURST - 1,
            since: now,
        };
        self.limits.insert(object.clone(), tokens);
        true
    }

    /// The series that are to be written because of the time; those that ended are forgotten.
    pub(super) fn maintain(&mut self, now: Instant) -> Vec<Write> {
        let mut writes = Vec::new();
        self.series.retain(|_, entry| {
            let has_ended = now.duration_since(entry.last_seen) >= FINISH;
            let is_due = now.duration_since(entry.last_written) >= REFRESH;
            if has_ended || is_due {
                writes.extend(entry.write(now));
            }
            !has_ended
        });
        // Objects with all tokens are as good as forgotten.
        let full = REFILL * BURST;
        self.limits
            .retain(|_, tokens| now.duration_since(tokens.since) < full);
        writes
    }

    /// All series with counts that were not written.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<Write> {
        let entries = self.series.values_mut();
        entries.filter_map(|entry| entry.write(now)).collect()
    }

    /// The numbers of series and of objects with a limit.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.series.len(), self.limits.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty() && self.limits.is_empty()
    }
}

impl Entry {
    /// Its series, if it has a count that was not written.
    fn write(&mut self, now: Instant) -> Option<Write> {
        let series = self.event.series?;
        self.last_written = now;
        if series.count == self.written_count {
            return None;
        }
        self.written_count = series.count;
        Some(Write::Series(self.event.clone(), series))
    }
}

/// Makes room in a full map.
fn remove_oldest<K: Clone + Eq + Hash, V>(map: &mut HashMap<K, V>, time: impl Fn(&V) -> Instant) {
    if map.len() < MAX_ENTRIES {
        return;
    }
    // The oldest half at once, so that a full map is not searched for each event.
    let mut times: Vec<Instant> = map.values().map(&time).collect();
    let (_, median, _) = times.select_nth_unstable(MAX_ENTRIES / 2);
    let median = *median;
    let before = map.len();
    map.retain(|_, value| time(value) > median);
    if map.len() == before {
        map.clear();
    }
}
