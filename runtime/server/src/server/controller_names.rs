//! Which of the server's elected controllers run, by their names.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Which of the controllers run that one server at a time runs ([`Capability::elected`](super::Capability::elected)). Parsed from the list
/// of the flag `--controllers`, as in kube-controller-manager: `*` for all that are not named otherwise, `NAME` to run one, `-NAME` to run it
/// not. Default all. The names are those of the parts that a server has: a name that no part has is an error of
/// [`Builder::build`](super::Builder::build).
///
/// ```
/// use apiloom_server::ControllerNames;
/// let Ok(names) = "*,-namespace-controller".parse::<ControllerNames>();
/// assert!(names.runs("garbage-collector-controller") && !names.runs("namespace-controller"));
/// assert!(!ControllerNames::NONE.with("namespace-controller").runs("garbage-collector-controller"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerNames {
    entries: Vec<String>,
}

impl ControllerNames {
    /// No controllers.
    pub const NONE: Self = Self {
        entries: Vec::new(),
    };

    /// Runs the controller with this name too, unless an entry says that it does not run.
    #[must_use]
    pub fn with(mut self, name: &str) -> Self {
        self.entries.push(name.to_owned());
        self
    }

    /// Whether the controller with this name runs.
    pub fn runs(&self, name: &str) -> bool {
        let said = self
            .entries
            .iter()
            .find_map(|entry| match entry.strip_prefix('-') {
                Some(off) => (off == name).then_some(false),
                None => (entry == name).then_some(true),
            });
        said.unwrap_or_else(|| self.entries.iter().any(|entry| entry == "*"))
    }

    /// Checks that controllers with all these names are known.
    ///
    /// # Errors
    /// A line for each name that is not, with those that are known.
    pub(super) fn check(&self, known: &[&str]) -> Result<(), Vec<String>> {
        let names = self.entries.iter().filter(|entry| *entry != "*");
        let names = names.map(|entry| entry.strip_prefix('-').unwrap_or(entry));
        let unknown = names.filter(|name| !known.contains(name));
        let problems: Vec<String> = unknown
            .map(|name| {
                let known = known.join(", ");
                format!("{name:?} is not in the list of known controllers: {known}")
            })
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

impl Default for ControllerNames {
    fn default() -> Self {
        Self::NONE.with("*")
    }
}

impl FromStr for ControllerNames {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let entries = text.split(',').filter(|entry| !entry.is_empty());
        Ok(Self {
            entries: entries.map(str::to_owned).collect(),
        })
    }
}

/// As the flag has it.
impl fmt::Display for ControllerNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entries.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 2] = ["garbage-collector-controller", "namespace-controller"];

    #[test]
    fn controllers_are_chosen_as_by_kube_controller_manager() {
        for (text, expected) in [
            ("*", [true, true]),
            ("", [false, false]),
            ("namespace-controller", [false, true]),
            ("*,-namespace-controller", [true, false]),
            ("-namespace-controller,*", [true, false]),
            ("-namespace-controller", [false, false]),
            (
                "*,-garbage-collector-controller,-namespace-controller",
                [false, false],
            ),
        ] {
            let Ok(parsed) = text.parse::<ControllerNames>();
            assert_eq!(KNOWN.map(|name| parsed.runs(name)), expected, "{text}");
            assert_eq!(parsed.to_string(), text);
            assert!(parsed.check(&KNOWN).is_ok(), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let check = |known: &[&str]| {
            let Ok(names) = "*,-job-controller".parse::<ControllerNames>();
            names.check(known).unwrap_err().join("; ")
        };
        assert_eq!(
            check(&KNOWN),
            "\"job-controller\" is not in the list of known controllers: garbage-collector-controller, namespace-controller"
        );
        assert!(check(&[]).ends_with("known controllers: "));
    }
}
