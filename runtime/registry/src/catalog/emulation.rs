//! `--emulation-version`: groups behave as in an earlier release than that of the build.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use apiloom_meta::kind::{Release, ResourceDef};

use super::groups::{Group, group_label};

/// A release to emulate: of one group, or of all groups that declare a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulationVersion {
    /// Name of the group; `None` for all groups with a release.
    pub group: Option<String>,
    /// The release.
    pub release: Release,
}

impl FromStr for EmulationVersion {
    type Err = String;

    /// Parses `GROUP=MAJOR.MINOR`, or `MAJOR.MINOR` for all groups.
    fn from_str(text: &str) -> Result<Self, String> {
        let (group, release) = match text.split_once('=') {
            Some((group, release)) => (Some(group.trim()), release.trim()),
            None => (None, text),
        };
        let release = release.parse().map_err(|_| {
            format!(
                "{release:?} is not a release such as 1.2; write MAJOR.MINOR or GROUP=MAJOR.MINOR"
            )
        })?;
        Ok(Self {
            group: group.map(str::to_owned),
            release,
        })
    }
}

impl fmt::Display for EmulationVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{group}={}", self.release),
            None => self.release.fmt(f),
        }
    }
}

/// The releases to emulate.
#[derive(Debug, Default)]
pub(super) struct Emulation(pub(super) Vec<EmulationVersion>);

impl Emulation {
    /// Reports releases that are given twice, and those of groups without a release.
    pub(super) fn check(&self, groups: &[Group], problems: &mut Vec<String>) {
        let with_release: Vec<&str> = groups
            .iter()
            .filter(|group| group.build_release.is_some())
            .map(|group| &*group.name)
            .collect();
        let there_are = match &with_release[..] {
            [] => "no group has one: declare it with `release = \"..\"` in its `group!`".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        let mut seen = BTreeSet::new();
        for setting in &self.0 {
            if !seen.insert(&setting.group) {
                let of = setting.group.as_deref();
                let of = of.map_or_else(|| "all groups".to_owned(), group_label);
                problems.push(format!("emulation-version is given twice for {of}"));
            }
            let is_known = match &setting.group {
                Some(group) => with_release.contains(&group.as_str()),
                None => !with_release.is_empty(),
            };
            if !is_known {
                problems.push(format!(
                    "emulation-version {setting} is for a group without a release; {there_are}"
                ));
            }
        }
    }

    /// Sets the emulated releases of groups, and reports those outside of what the build can emulate.
    pub(super) fn apply(
        &self,
        groups: &mut [Group],
        defs: &[Arc<ResourceDef>],
        problems: &mut Vec<String>,
    ) {
        for group in groups {
            let Some(build) = group.build_release else {
                continue;
            };
            let own = self
                .0
                .iter()
                .find(|one| one.group.as_deref() == Some(&*group.name));
            let Some(setting) = own.or_else(|| self.0.iter().find(|one| one.group.is_none()))
            else {
                continue;
            };
            let first = first_release(&group.name, defs);
            if setting.release < first || build < setting.release {
                problems.push(format!(
                    "emulation-version {} of {} is not between {first}, the first release with one of its versions, \
                     and {build}, the release of this build",
                    setting.release,
                    group_label(&group.name),
                ));
            } else {
                group.release = Some(setting.release);
            }
        }
    }
}

/// The first release that has a version of a group: 0.0 if one does not say when it was introduced.
fn first_release(group: &str, defs: &[Arc<ResourceDef>]) -> Release {
    let introduced = defs.iter().filter(|def| def.group == group).map(|def| {
        let lifecycle = def.lifecycle.as_ref();
        lifecycle.and_then(|lifecycle| lifecycle.introduced)
    });
    let zero = Release { major: 0, minor: 0 };
    introduced
        .map(|first| first.unwrap_or(zero))
        .min()
        .unwrap_or(zero)
}
