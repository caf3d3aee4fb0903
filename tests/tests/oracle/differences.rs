//! `differences.txt`: the answers that differ, with the reason. A line is a file, the name of a step, and the reason,
//! separated by ` | `; a step that ends with `*` stands for all that begin like it.

use std::collections::BTreeSet;

/// The differences of one file.
pub(crate) struct Differences {
    listed: Vec<String>,
    used: BTreeSet<String>,
}

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
        Self {
            listed: listed.collect(),
            used: BTreeSet::new(),
        }
    }

    /// Whether the answers to a step may differ.
    pub(crate) fn expect(&mut self, step: &str) -> bool {
        let is_meant = |listed: &&String| match listed.strip_suffix('*') {
            Some(beginning) => step.starts_with(beginning),
            None => listed.as_str() == step,
        };
        let Some(found) = self.listed.iter().find(is_meant) else {
            return false;
        };
        self.used.insert(found.clone());
        true
    }

    /// Those that no answer needed.
    pub(crate) fn unused(&self) -> Vec<&String> {
        let listed = self.listed.iter();
        listed.filter(|one| !self.used.contains(*one)).collect()
    }
}
