//! Which of the server's controllers run, and how many workers they have.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// The name of the garbage collector in flags, that of kube-controller-manager.
pub(in crate::server) const GARBAGE_COLLECTOR: &str = "garbage-collector-controller";

/// The name of the controller of the deletion of namespaces in flags, that of kube-controller-manager.
pub(in crate::server) const NAMESPACES: &str = "namespace-controller";

/// The controllers of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// The controllers that run. Default all.
    pub names: ControllerNames,
    /// How many objects the garbage collector works on at the same time. Default 20.
    pub gc_workers: NonZeroUsize,
    /// How many namespaces are worked on at the same time whose content is deleted. Default 10.
    pub namespace_workers: NonZeroUsize,
}

/// The defaults of kube-controller-manager.
impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            names: ControllerNames::default(),
            gc_workers: const { NonZeroUsize::new(20).unwrap() },
            namespace_workers: const { NonZeroUsize::new(10).unwrap() },
        }
    }
}

/// Which controllers run. Parsed from the list of the flag `--controllers`, as in kube-controller-manager: `*` for all that
/// are not named otherwise, `NAME` to run one, `-NAME` to run it not.
///
/// ```
/// use apiloom_server::ControllerNames;
/// let names: ControllerNames = "*,-namespace-controller".parse()?;
/// assert!(names.garbage_collector && !names.namespaces);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerNames {
    /// `garbage-collector-controller`: deletes the dependents of deleted objects.
    pub garbage_collector: bool,
    /// `namespace-controller`: deletes the content of deleted namespaces.
    pub namespaces: bool,
}

impl ControllerNames {
    /// No controllers.
    pub const NONE: Self = Self {
        garbage_collector: false,
        namespaces: false,
    };

    /// The controllers by name, and whether each runs.
    fn by_name(self) -> [(&'static str, bool); 2] {
        [
            (GARBAGE_COLLECTOR, self.garbage_collector),
            (NAMESPACES, self.namespaces),
        ]
    }
}

impl Default for ControllerNames {
    fn default() -> Self {
        Self {
            garbage_collector: true,
            namespaces: true,
        }
    }
}

impl FromStr for ControllerNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries: Vec<&str> = text.split(',').filter(|entry| !entry.is_empty()).collect();
        for entry in &entries {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            let names = ControllerNames::NONE.by_name().map(|(name, _)| name);
            if *entry != "*" && !names.contains(&name) {
                let names = names.join(", ");
                return Err(format!(
                    "{name:?} is not in the list of known controllers: {names}"
                ));
            }
        }
        let has_all = entries.contains(&"*");
        let runs = |name: &str| {
            let said = entries
                .iter()
                .find_map(|entry| match entry.strip_prefix('-') {
                    Some(off) => (off == name).then_some(false),
                    None => (*entry == name).then_some(true),
                });
            said.unwrap_or(has_all)
        };
        Ok(Self {
            garbage_collector: runs(GARBAGE_COLLECTOR),
            namespaces: runs(NAMESPACES),
        })
    }
}

/// As the flag has it.
impl fmt::Display for ControllerNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("*")?;
        for (name, runs) in self.by_name() {
            if !runs {
                write!(f, ",-{name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ControllerNames;

    #[test]
    fn controllers_are_chosen_as_by_kube_controller_manager() {
        let names = |garbage_collector, namespaces| ControllerNames {
            garbage_collector,
            namespaces,
        };
        for (text, expected) in [
            ("*", names(true, true)),
            ("", ControllerNames::NONE),
            ("namespace-controller", names(false, true)),
            ("*,-namespace-controller", names(true, false)),
            ("-namespace-controller,*", names(true, false)),
            ("-namespace-controller", ControllerNames::NONE),
            (
                "*,-garbage-collector-controller,-namespace-controller",
                ControllerNames::NONE,
            ),
        ] {
            let parsed: ControllerNames = text.parse().unwrap();
            assert_eq!(parsed, expected, "{text}");
            assert_eq!(parsed.to_string().parse(), Ok(expected));
        }
        let error = "*,-job-controller".parse::<ControllerNames>().unwrap_err();
        assert_eq!(
            error,
            "\"job-controller\" is not in the list of known controllers: garbage-collector-controller, namespace-controller"
        );
    }
}
