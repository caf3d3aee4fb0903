//! The figures of one client, and the table of all of them.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// What one client needed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) client: String,
    /// From the start of the informer to a complete state.
    pub(crate) sync_seconds: f64,
    /// CPU time of the process until then.
    pub(crate) cpu_seconds: f64,
    /// What is allocated when the state is complete.
    pub(crate) heap_bytes: usize,
    /// The most that was allocated.
    pub(crate) peak_heap_bytes: usize,
    pub(crate) resident_bytes: u64,
    pub(crate) peak_resident_bytes: u64,
    /// Reading the same state again, if that was done.
    pub(crate) relist: Option<Relist>,
}

/// What reading the same state again needed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Relist {
    /// What was allocated at most above the state.
    pub(crate) peak_heap_bytes: usize,
    /// Events that a subscriber got.
    pub(crate) events: u64,
}

/// A row for each client, with the median of each figure.
pub(crate) fn table(rounds: &[Vec<Figures>], objects: usize) -> String {
    let mut out = format!(
        "{objects} ConfigMaps, medians of {} rounds\n\n| client | synced after | CPU time | heap | peak of the heap | resident | peak resident |\n|---|---|---|---|---|---|---|\n",
        rounds.len()
    );
    let count = rounds.first().map_or(0, Vec::len);
    for index in 0..count {
        let of = |figure: &dyn Fn(&Figures) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(|round| figure(&round[index])).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let mib = |bytes: f64| format!("{:.0} MiB", bytes / f64::from(1 << 20));
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "| {} | {:.2} s | {:.2} s | {} | {} | {} | {} |",
            rounds[0][index].client,
            of(&|figures| figures.sync_seconds),
            of(&|figures| figures.cpu_seconds),
            mib(of(&|figures| figures.heap_bytes as f64)),
            mib(of(&|figures| figures.peak_heap_bytes as f64)),
            mib(of(&|figures| figures.resident_bytes as f64)),
            mib(of(&|figures| figures.peak_resident_bytes as f64)),
        );
    }
    for figures in rounds.iter().flatten() {
        if let Some(relist) = &figures.relist {
            let (kib, events) = (relist.peak_heap_bytes / 1024, relist.events);
            let client = &figures.client;
            let _ = writeln!(
                out,
                "\n{client}: the same state again: {kib} KiB at most, {events} events"
            );
        }
    }
    out
}
