//! `--runtime-config`: which versions and resources are served.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_meta::{GroupResource, ResourceDef};

use crate::registry::objects::kind::Kind;

/// Checked settings. The more specific one wins: a resource, then its version, then its stability, then everything.
#[derive(Debug)]
pub(crate) struct RuntimeConfig {
    settings: BTreeMap<String, bool>,
}

impl RuntimeConfig {
    /// Checks that every setting names something.
    pub(crate) fn new(
        settings: &[(String, bool)],
        kinds: &BTreeMap<GroupResource, Arc<Kind>>,
        problems: &mut Vec<String>,
    ) -> Self {
        let defs = || {
            kinds
                .values()
                .flat_map(|kind| kind.versions.iter().map(|version| &*version.def))
        };
        let versions = defs().map(|def| def.group_version().to_string());
        let resources = defs().map(resource_key);
        let wide = ["api/all", "api/ga", "api/beta", "api/alpha"].map(str::to_owned);
        let known: Vec<String> = wide.into_iter().chain(versions).chain(resources).collect();
        for (key, _) in settings.iter().filter(|(key, _)| !known.contains(key)) {
            problems.push(format!("runtime-config names {key:?}, which is neither a served version nor a resource of one"));
        }
        Self {
            settings: settings.iter().cloned().collect(),
        }
    }

    /// Whether a kind of a version is served. The server needs its own kinds: only their names turn them off.
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
            .unwrap_or(true)
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
