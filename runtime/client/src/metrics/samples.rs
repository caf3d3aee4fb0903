//! The values that collectors report, and their text.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::histogram::DurationHistogram;

/// What becomes of two values of one series: Prometheus refuses a text that has a series twice.
#[derive(Clone, Copy)]
enum Merge {
    Sum,
    Max,
}

struct Family {
    kind: &'static str,
    help: &'static str,
    /// In the order in which they were reported.
    series: Vec<(String, f64)>,
    places: HashMap<String, usize>,
}

/// Takes the values of collectors. Values of one series (name and labels) that several report are added up, or the largest
/// of them counts.
#[derive(Default)]
pub struct Samples {
    families: BTreeMap<&'static str, Family>,
}

impl Samples {
    /// A number that only grows. The name ends with `_total`.
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: u64,
    ) {
        let family = self.family(name, "counter", help);
        family.add(series(name, labels), value as f64, Merge::Sum);
    }

    /// A number of things that are there. Those of one series are added up.
    pub fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let family = self.family(name, "gauge", help);
        family.add(series(name, labels), value, Merge::Sum);
    }

    /// A value such as an age. Of those of one series the largest counts.
    pub fn largest(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let family = self.family(name, "gauge", help);
        family.add(series(name, labels), value, Merge::Max);
    }

    /// How long something took, in seconds.
    pub fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: &DurationHistogram,
    ) {
        let family = self.family(name, "histogram", help);
        let count = value.count();
        let bucket = format!("{name}_bucket");
        for (bound, number) in value.buckets().chain([("+Inf", count)]) {
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound)]).collect();
            family.add(series(&bucket, &labels), number as f64, Merge::Sum);
        }
        let sum = value.sum().as_secs_f64();
        family.add(series(&format!("{name}_sum"), labels), sum, Merge::Sum);
        let of_count = series(&format!("{name}_count"), labels);
        family.add(of_count, count as f64, Merge::Sum);
    }

    fn family(
        &mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
    ) -> &mut Family {
        self.families.entry(name).or_insert_with(|| Family {
            kind,
            help,
            series: Vec::new(),
            places: HashMap::new(),
        })
    }

    /// All values in Prometheus' text format, by name.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, family) in &self.families {
            let Family { kind, help, .. } = family;
            // Writing to a String does not fail.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (series, value) in &family.series {
                let _ = writeln!(out, "{series} {value}");
            }
        }
        out
    }
}

impl Family {
    fn add(&mut self, series: String, value: f64, merge: Merge) {
        if let Some(place) = self.places.get(&series) {
            let (_, present) = &mut self.series[*place];
            *present = match merge {
                Merge::Sum => *present + value,
                Merge::Max => present.max(value),
            };
            return;
        }
        self.places.insert(series.clone(), self.series.len());
        self.series.push((series, value));
    }
}

/// Name and labels, as they are written. Labels without a value are left out: they mean the same.
fn series(name: &str, labels: &[(&str, &str)]) -> String {
    let mut out = name.to_owned();
    let mut separator = '{';
    for (label, value) in labels {
        if value.is_empty() {
            continue;
        }
        out.push(separator);
        separator = ',';
        out.push_str(label);
        out.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push('"');
    }
    if separator == ',' {
        out.push('}');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_family_has_one_head_and_every_series_one_line() {
        let mut samples = Samples::default();
        for (name, value) in [("a", 1), ("b", 2), ("a", 3)] {
            let labels = [("name", name), ("empty", "")];
            samples.counter("x_total", "Things.", &labels, value);
            samples.gauge("things", "Things that are there.", &[], value as f64);
            samples.largest("age_seconds", "An age.", &labels, value as f64 / 2.0);
        }
        assert_eq!(
            samples.text(),
            "# HELP age_seconds An age.\n# TYPE age_seconds gauge\n\
             age_seconds{name=\"a\"} 1.5\nage_seconds{name=\"b\"} 1\n\
             # HELP things Things that are there.\n# TYPE things gauge\nthings 6\n\
             # HELP x_total Things.\n# TYPE x_total counter\n\
             x_total{name=\"a\"} 4\nx_total{name=\"b\"} 2\n"
        );
    }

    #[test]
    fn values_of_labels_cannot_break_a_line() {
        let labels = [("name", "a\"b\\c\nd")];
        assert_eq!(series("x", &labels), r#"x{name="a\"b\\c\nd"}"#);
    }

    #[test]
    fn histograms_of_one_series_are_added_up() {
        let mut histogram = DurationHistogram::default();
        histogram.observe(Duration::from_millis(5));
        histogram.observe(Duration::from_secs(5000));
        let mut samples = Samples::default();
        for _ in 0..2 {
            samples.histogram("took_seconds", "Times.", &[("name", "a")], &histogram);
        }
        let text = samples.text();
        for line in [
            "took_seconds_bucket{name=\"a\",le=\"0.001\"} 0",
            "took_seconds_bucket{name=\"a\",le=\"0.01\"} 2",
            "took_seconds_bucket{name=\"a\",le=\"1000\"} 2",
            "took_seconds_bucket{name=\"a\",le=\"+Inf\"} 4",
            "took_seconds_sum{name=\"a\"} 10000.01",
            "took_seconds_count{name=\"a\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
