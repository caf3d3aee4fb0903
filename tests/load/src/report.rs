//! The results of a run, as a table and as JSON.

use std::time::Duration;

use serde::Serialize;

/// The cost of one scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// The counted unit: requests, or events that watchers received.
    pub(crate) unit: &'static str,
    /// Number of units.
    pub(crate) count: u64,
    /// Duration in seconds.
    pub(crate) seconds: f64,
    /// Median latency, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the latency, in milliseconds.
    pub p99_ms: f64,
    /// CPU time of the server per unit, in microseconds; absent without `--pid`.
    pub(crate) cpu_us: Option<f64>,
    /// The same for plain hyper and rustls; absent without `--floor`.
    pub(crate) floor_cpu_us: Option<f64>,
    /// Resident memory of the server afterwards, in MiB.
    pub(crate) resident_mib: Option<f64>,
    /// Additional results of the scenario.
    pub(crate) note: String,
}

impl Figures {
    /// Computes the results of `count` units with these latencies.
    pub(crate) fn new(
        scenario: String,
        unit: &'static str,
        took: Duration,
        mut each: Vec<Duration>,
    ) -> Self {
        each.sort_unstable();
        Self {
            scenario,
            unit,
            count: each.len() as u64,
            seconds: took.as_secs_f64(),
            p50_ms: percentile(&each, 50),
            p99_ms: percentile(&each, 99),
            cpu_us: None,
            floor_cpu_us: None,
            resident_mib: None,
            note: String::new(),
        }
    }
}

/// The nearest-rank percentile, in milliseconds; 0 without samples.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted
        .get(rank)
        .map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The table that is printed.
pub(crate) fn table(rows: &[Figures]) -> String {
    let head = [
        "scenario", "count", "/s", "p50 ms", "p99 ms", "CPU us", "floor us", "x floor", "RSS MiB",
        "",
    ];
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let head: Vec<String> = head.map(str::to_owned).to_vec();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = lines.iter().chain([&head]);
            cells.map(|line| line[column].len()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in [&head].into_iter().chain(&lines) {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            match column {
                0 => text.push_str(&format!("{cell:<width$}")),
                9 => text.push_str(&format!("  {cell}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn line(row: &Figures) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let times = row
        .cpu_us
        .zip(row.floor_cpu_us)
        .filter(|(_, floor)| *floor > 0.0);
    vec![
        row.scenario.clone(),
        format!("{} {}", row.count, row.unit),
        format!("{:.0}", row.count as f64 / row.seconds.max(1e-9)),
        format!("{:.2}", row.p50_ms),
        format!("{:.2}", row.p99_ms),
        number(row.cpu_us),
        number(row.floor_cpu_us),
        number(times.map(|(cpu, floor)| cpu / floor)),
        number(row.resident_mib),
        row.note.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(
            (
                percentile(&times, 50),
                percentile(&times, 99),
                percentile(&times[..1], 99)
            ),
            (100.0, 198.0, 1.0)
        );
        assert_eq!(percentile(&[], 99), 0.0);
    }

    #[test]
    fn the_table_has_a_line_for_each_scenario_and_the_multiple_of_the_floor() {
        let mut row = Figures::new(
            "get".to_owned(),
            "req",
            Duration::from_secs(2),
            vec![Duration::from_millis(1); 10],
        );
        (row.cpu_us, row.floor_cpu_us) = (Some(20.0), Some(8.0));
        let text = table(&[row]);
        let cells: Vec<&str> = text
            .lines()
            .nth(1)
            .expect("a line")
            .split_whitespace()
            .collect();
        assert_eq!(
            cells,
            [
                "get", "10", "req", "5", "1.00", "1.00", "20.0", "8.0", "2.5", "-"
            ]
        );
    }
}
