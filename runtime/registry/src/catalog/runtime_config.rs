//! `--runtime-config`: the versions and resources that are served.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_meta::{GroupResource, ResourceDef};

use super::groups::Group;
use crate::objects::kind::Kind;

/// Validated settings. The more specific one wins: resource, then version, then stability (`api/beta`), then
/// `api/all`.
#[derive(Debug)]
pub(crate) struct RuntimeConfig {
    settings: BTreeMap<String, bool>,
}

impl RuntimeConfig {
    /// Validates that every setting refers to a known version or resource, and that the releases of the groups have those
    /// that are enabled.
    pub(super) fn new(
        settings: &[(String, bool)],
        kinds: &BTreeMap<GroupResource, Arc<Kind>>,
        groups: &[Group],
        problems: &mut Vec<String>,
    ) -> Self {
        let defs = || {
            kinds
                .values()
                .flat_map(|kind| kind.versions.all.iter().map(|version| &*version.def))
        };
        let versions = defs().map(|def| def.group_version().to_string());
        let resources = defs().map(resource_key);
        let wide = ["api/all", "api/ga", "api/beta", "api/alpha"].map(str::to_owned);
        let known: Vec<String> = wide.into_iter().chain(versions).chain(resources).collect();
        for (key, _) in settings.iter().filter(|(key, _)| !known.contains(key)) {
            problems.push(format!(
                "runtime-config names {key:?}, which is neither a served version nor a resource of one: write \
                 GROUP/VERSION=true, GROUP/VERSION/RESOURCE=false or api/alpha=true"
            ));
        }
        for (key, _) in settings.iter().filter(|(_, is_on)| *is_on) {
            let named = |def: &&ResourceDef| {
                def.group_version().to_string() == *key || resource_key(def) == *key
            };
            let group_of = |def: &ResourceDef| groups.iter().find(|group| group.name == def.group);
            let has = |def: &ResourceDef| group_of(def).is_none_or(|group| group.has(def));
            let first = defs().find(named);
            if let Some(group) = first.and_then(group_of)
                && let Some(release) = group.release
                && !defs().filter(named).any(has)
            {
                problems.push(format!(
                    "runtime-config enables {key:?}, which release {release} of group {} does not have",
                    group.name
                ));
            }
        }
        Self {
            settings: settings.iter().cloned().collect(),
        }
    }

    /// Whether a version of a kind is served: by the settings, or by its default. The server's own kinds are turned off
    /// only by their own names.
    pub(crate) fn allows(&self, def: &ResourceDef, is_own: bool) -> bool {
        let version = def.group_version().to_string();
        let mut keys = vec![resource_key(def), version];
        if !is_own {
            keys.extend([
                format!("api/{}", stability(&def.version)),
                "api/all".to_owned(),
            ]);
        }
        keys.iter()
            .find_map(|key| self.settings.get(key).copied())
            .unwrap_or(!def.disabled_by_default)
    }
}

fn resource_key(def: &ResourceDef) -> String {
    format!("{}/{}", def.group_version(), def.plural)
}

fn stability(version: &str) -> &'static str {
    if version.contains("alpha") {
        "alpha"
    } else if version.contains("beta") {
        "beta"
    } else {
        "ga"
    }
}
