//! The versions of a kind together: which types they share, and how the others convert to the stored one.

use super::check;
use super::compare::{canonical_root, differences};
use super::definition::Definition;
use super::fit;
use super::module::{ModuleView, Relations};
use super::naming::{self, Named};
use super::shapes::Shapes;
use super::{conversion, names};
use crate::render::Renderer;

/// A module that was written for one version of a kind.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) version: String,
    pub(crate) text: String,
}

/// What an import made of a kind.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) modules: Vec<Module>,
    /// What the written types do not say, or say otherwise: a line each.
    pub(crate) lost: Vec<String>,
    pub(crate) has_json: bool,
}

/// Writes the modules of a kind; `module` is the Rust path of its module in a version.
pub(crate) fn write(
    definition: &Definition,
    module: &dyn Fn(&str) -> String,
    renderer: &Renderer,
) -> Result<Imported, String> {
    let mut definition = definition.clone();
    let mut lost = fit::share_subresources(&mut definition.versions);
    definition.versions.iter_mut().for_each(fit::add_status);
    let named: Vec<Named> = definition
        .versions
        .iter()
        .map(|version| naming::name(Shapes::read(&definition.kind, &version.schema)))
        .collect();
    for (version, named) in definition.versions.iter_mut().zip(&named) {
        let lines = fit::leave_out_unfit(version, named);
        lost.extend(
            lines
                .into_iter()
                .map(|line| format!("{}: {line}", version.name)),
        );
    }
    lost.extend(fit::share_subresources(&mut definition.versions));
    let hub = definition
        .versions
        .iter()
        .position(|version| version.is_stored)
        .unwrap_or_default();
    let hub_name = definition.versions[hub].name.clone();
    let mut views = Vec::new();
    for (at, version) in definition.versions.iter().enumerate() {
        let relations = if definition.versions.len() == 1 {
            Relations::default()
        } else if at == hub {
            Relations {
                of_kind: vec!["hub".to_owned(), "storage".to_owned()],
                ..Relations::default()
            }
        } else {
            let path = module(&hub_name);
            let (relations, lines) = conversion::relate(&named[at], &named[hub], &path);
            lost.extend(
                lines
                    .into_iter()
                    .map(|line| format!("{}: {line}", version.name)),
            );
            relations
        };
        views.push(ModuleView::new(
            &definition,
            version,
            &named[at],
            &relations,
        ));
    }
    let has_json = views
        .iter()
        .any(|view| view.uses.iter().any(|line| line.contains("serde_json")));
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
        let others: Vec<&str> = if at == hub {
            Vec::new()
        } else {
            vec![&modules[hub].text]
        };
        let written = check::schema_of(&modules[at].text, &others).map_err(|problems| {
            format!(
                "{} {}: {}",
                definition.name(),
                version.name,
                problems.join("\n  ")
            )
        })?;
        let lines = differences(&canonical_root(&version.schema), &canonical_root(&written));
        lost.extend(
            lines
                .into_iter()
                .map(|line| format!("{}: {line}", version.name)),
        );
    }
    Ok(Imported {
        modules,
        lost,
        has_json,
    })
}

/// The module of a kind.
pub(crate) fn module_of_kind(kind: &str) -> String {
    names::module(kind)
}
