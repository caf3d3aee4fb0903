//! `differences.txt`: the answers that differ, with the reason. A line is a file, the name of a step, and the reason,
//! separated by ` | `.

use std::collections::BTreeSet;

/// The differences of one file that no answer has shown yet.
#[derive(Default)]
pub(crate) struct Differences(BTreeSet<String>);

impl Differences {
    pub(crate) fn read(file: &str) -> Self {
        let path = crate::folder().join("differences.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let listed = lines.filter_map(|line| {
            let parts: Vec<&str> = line.split(" | ").collect();
            let [of, step, reason] = parts[..] else {
                panic!("not `file | step | reason`: {line}");
            };
            assert!(!reason.trim().is_empty(), "no reason: {line}");
            (of == file).then(|| step.to_owned())
        });
        Self(listed.collect())
    }

    /// Whether the answers to a step may differ. Each step asks once.
    pub(crate) fn expect(&mut self, step: &str) -> bool {
        self.0.remove(step)
    }

    /// Those that no answer needed.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }
}
