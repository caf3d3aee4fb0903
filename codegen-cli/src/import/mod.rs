//! `apiloom import`: writes a package of annotated types for kinds that were defined elsewhere.
//!
//! CustomResourceDefinitions are read by `definition.rs`, documents of OpenAPI v3 (kinds by their paths) by `openapi.rs`, which resolves
//! their references (`components.rs`) and gives Kubernetes' own kinds the zero values and semantics of their Go types (`native.rs`). A
//! schema becomes shapes (`shapes.rs`), its keywords keys (`rules.rs`); they get names (`naming.rs`), types of several kinds are shared
//! (`sharing.rs`), versions convert (`conversion.rs`), and all become a module (`module.rs`). `check.rs` reads that module as the macros
//! will and makes the schema of its types, which `compare.rs` compares with the one that was imported: each difference is a warning, so
//! nothing is lost in silence. A keyword without a key is kept as JSON in `#[api(schema = "..")]` (`schema/engine/build.rs`).
//!
//! `tests/tests/import.rs` compiles a package; `tests/corpus/import.txt` lists what is lost of the corpus.

mod check;
mod compare;
mod components;
mod conversion;
mod definition;
mod fit;
mod input;
mod known;
mod markers;
mod module;
mod names;
mod naming;
mod native;
mod openapi;
mod package;
mod place;
mod prepared;
mod rules;
mod shapes;
mod sharing;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;

use serde_json::Value;

use self::definition::Definition;
use self::prepared::PreparedKind;
use crate::render::Renderer;

pub(crate) use package::{Import, run};

/// The views of the templates, for their tests.
#[cfg(test)]
pub(crate) mod views {
    pub(crate) use super::module::{ModuleView, doc};
    pub(crate) use super::package::PackageView;
}

/// The Rust code of a kind that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedKind {
    /// The modules: the version, and the code.
    pub modules: Vec<(String, String)>,
    /// What of the definition the code does not say, or says otherwise: a line each, with version and path.
    pub lost: Vec<String>,
}

/// The code of a CustomResourceDefinition, as `apiloom import` writes it, if it is the only one.
///
/// # Errors
/// Why there is none.
pub fn imported_kind(document: &Value) -> Result<ImportedKind, String> {
    code_of(&Definition::read(document, "the definition")?)
}

/// The code of the kinds of documents of OpenAPI v3, sorted by group and kind, as `apiloom import` writes it.
///
/// # Errors
/// Why there is none.
pub fn imported_kinds(documents: &[Value]) -> Result<Vec<ImportedKind>, String> {
    let definitions = openapi::read(&placed(documents))?;
    definitions.iter().map(code_of).collect()
}

fn placed(documents: &[Value]) -> Vec<(&str, &Value)> {
    documents
        .iter()
        .map(|document| ("the document", document))
        .collect()
}

fn code_of(definition: &Definition) -> Result<ImportedKind, String> {
    definition
        .check_names()
        .map_err(|reason| format!("{}: {reason}", definition.name()))?;
    let renderer = Renderer::new(String::new()).map_err(|error| error.to_string())?;
    let module = versions::module_of_kind(&definition.kind);
    let path = |version: &str| format!("crate::{version}::{module}");
    let prepared = PreparedKind::new(definition);
    let imported = versions::write(&prepared, &path, &BTreeMap::new(), &renderer)?;
    let modules = imported.modules.into_iter();
    Ok(ImportedKind {
        modules: modules
            .map(|module| (module.version, module.text))
            .collect(),
        lost: imported.lost,
    })
}

/// How two CustomResourceDefinitions differ, a line each; order and documentation do not count, nor what says nothing.
///
/// Of several versions, a definition that is generated serves one: kube-apiserver does not know how the others convert.
/// Patterns that this server adds to formats of which kube-apiserver checks less are not reported either.
///
/// # Errors
/// If one of them is no definition.
pub fn definition_differences(imported: &Value, written: &Value) -> Result<Vec<String>, String> {
    let imported = Definition::read(imported, "the imported definition")?;
    let written = Definition::read(written, "the written definition")?;
    Ok(imported.differences(&written))
}

/// How documents of OpenAPI v3 differ from others of the same kinds, a line each; as [`definition_differences`], with what
/// these documents say besides: verbs, and how strategic merge patches treat a value.
///
/// # Errors
/// If one of them has no kinds.
pub fn openapi_differences(imported: &[Value], written: &[Value]) -> Result<Vec<String>, String> {
    let imported = openapi::read(&placed(imported))?;
    let written = openapi::read(&placed(written))?;
    let mut lines = Vec::new();
    for definition in &imported {
        let is_twin = |twin: &&Definition| twin.name() == definition.name();
        match written.iter().find(is_twin) {
            Some(twin) => lines.extend(
                definition
                    .differences(twin)
                    .into_iter()
                    .map(|line| format!("{}: {line}", definition.name())),
            ),
            None => lines.push(format!("{}: the kind is left out", definition.name())),
        }
    }
    Ok(lines)
}
