//! The versions of a kind together: which types they share, and how the others convert to the stored one.

use std::collections::BTreeMap;

use super::check;
use super::compare::{canonical_root, differences, without_patches};
use super::module::{ModuleView, Relations};
use super::prepared::{PreparedKind, of_version};
use super::sharing::SharedTypes;
use super::{conversion, names};
use crate::render::Renderer;

/// A module that was written for one version of a kind.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) version: String,
    pub(crate) text: String,
}

/// The modules that an import made of a kind, with what they do not say.
#[derive(Debug)]
pub(crate) struct KindModules {
    pub(crate) modules: Vec<Module>,
    /// What the written types do not say, or say otherwise: a line each.
    pub(crate) lost: Vec<String>,
    /// What the types say, and the definition that is generated of them does not: a line each.
    pub(crate) notes: Vec<String>,
    pub(crate) has_json: bool,
}

/// Writes the modules of a kind; `module` is the Rust path of its module in a version, and `shared` has the types of versions.
pub(crate) fn write(
    prepared: &PreparedKind,
    module: &dyn Fn(&str) -> String,
    shared: &BTreeMap<String, SharedTypes>,
    renderer: &Renderer,
) -> Result<KindModules, String> {
    let PreparedKind {
        definition,
        named,
        hub,
        lost,
    } = prepared;
    let (hub, mut lost) = (*hub, lost.clone());
    let hub_name = prepared.hub_name();
    let shared = shared.get(hub_name);
    let of_hub = shared.map(|shared| (shared.path.clone(), shared.names(&named[hub])));
    let mut views = Vec::new();
    for (at, version) in definition.versions.iter().enumerate() {
        let relations = if at == hub {
            let is_single = definition.versions.len() == 1;
            let keys: &[&str] = if is_single { &[] } else { &["hub", "storage"] };
            Relations {
                of_kind: keys.iter().map(|&key| key.to_owned()).collect(),
                of_version: of_hub.clone(),
                ..Relations::default()
            }
        } else {
            let path = module(hub_name);
            let (relations, lines) = conversion::relate(&named[at], &named[hub], &path);
            lost.extend(of_version(&version.name, lines));
            relations
        };
        views.push(ModuleView::new(definition, version, &named[at], &relations));
    }
    let has_json = views.iter().any(ModuleView::uses_json);
    let mut modules = Vec::new();
    for (version, view) in definition.versions.iter().zip(&views) {
        let text = renderer
            .plain("import/module.rs.tera", view)
            .map_err(|error| error.to_string())?;
        modules.push(Module {
            version: version.name.clone(),
            text,
        });
    }
    for (at, version) in definition.versions.iter().enumerate() {
        let mut others: Vec<&str> = shared.iter().map(|shared| &*shared.text).collect();
        if at != hub {
            others.push(&modules[hub].text);
        }
        let written = check::schema_of(&modules[at].text, &others).map_err(|problems| {
            format!(
                "{} {}: {}",
                definition.name(),
                version.name,
                problems.join("\n  ")
            )
        })?;
        let lines = differences(
            &without_patches(&canonical_root(&version.schema)),
            &without_patches(&canonical_root(&written)),
        );
        lost.extend(of_version(&version.name, lines));
    }
    Ok(KindModules {
        modules,
        lost,
        notes: unserved(prepared).into_iter().collect(),
        has_json,
    })
}

/// The served versions that the generated definition does not serve.
fn unserved(prepared: &PreparedKind) -> Option<String> {
    let hub = prepared.hub_name();
    let versions = prepared.definition.versions.iter();
    let others = versions.filter(|version| version.is_served && version.name != hub);
    let names: Vec<&str> = others.map(|version| version.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: `served: false` in the definition that is generated: the package's server converts to {hub} and back, \
             kube-apiserver needs a conversion webhook for it",
            names.join(", ")
        )
    })
}

/// The module of a kind.
pub(crate) fn module_of_kind(kind: &str) -> String {
    names::module(kind)
}

/// The order of versions in Kubernetes: v1 before v1beta1 before v1alpha1, and larger numbers first.
pub(crate) fn priority(version: &str) -> (u8, u64, u64, String) {
    let number = |text: &str| text.parse::<u64>().ok();
    let rest = version.strip_prefix('v').unwrap_or_default();
    let (stage, parts) = if let Some((major, minor)) = rest.split_once("beta") {
        (2, (number(major), number(minor)))
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (1, (number(major), number(minor)))
    } else {
        (3, (number(rest), Some(0)))
    };
    match parts {
        (Some(major), Some(minor)) => (stage, major, minor, String::new()),
        _ => (0, 0, 0, version.to_owned()),
    }
}
