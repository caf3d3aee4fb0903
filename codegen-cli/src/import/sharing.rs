//! Types that several kinds of a version have: they are written once, in a module beside those of the kinds.
//!
//! Types are one if they have the same name and the same code, down to the types that they name. Only kinds that are stored in
//! the version take part: in other versions, a type converts to that of one kind.

use std::collections::BTreeMap;

use super::conversion::code;
use super::module::ModuleView;
use super::naming::{NamedType, NamedTypes};
use super::prepared::PreparedKind;
use crate::render::Renderer;

/// The types that kinds of a version share.
#[derive(Debug)]
pub(crate) struct SharedTypes {
    /// The Rust path of their module.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) uses_json: bool,
    /// The code of each, by its name.
    codes: BTreeMap<String, String>,
}

impl SharedTypes {
    /// The names of the types that the kind with these types uses.
    pub(super) fn names(&self, named: &NamedTypes) -> Vec<String> {
        let is_used = |ty: &&NamedType| {
            let shared = self.codes.get(&ty.name);
            shared.is_some_and(|shared| *shared == code(named, ty))
        };
        let used = named.types[1..].iter().filter(is_used);
        used.map(|ty| ty.name.clone()).collect()
    }
}

/// The shared types of the versions of a group, by version; `path` gives the Rust path of the module for them.
///
/// # Errors
/// If the code cannot be written.
pub(crate) fn find(
    group: &str,
    kinds: &[PreparedKind],
    path: &dyn Fn(&str) -> String,
    renderer: &Renderer,
) -> Result<BTreeMap<String, SharedTypes>, String> {
    let mut stored: BTreeMap<&str, Vec<&NamedTypes>> = BTreeMap::new();
    for kind in kinds {
        stored
            .entry(kind.hub_name())
            .or_default()
            .push(&kind.named[kind.hub]);
    }
    let mut found = BTreeMap::new();
    for (version, kinds) in stored {
        let types = shared_by(&kinds);
        if types.is_empty() {
            continue;
        }
        let view = ModuleView::of_shared(group, version, &types);
        let text = renderer
            .plain("import/module.rs.tera", &view)
            .map_err(|error| error.to_string())?;
        let codes = types
            .iter()
            .map(|(named, ty)| (ty.name.clone(), code(named, ty)));
        let shared = SharedTypes {
            path: path(version),
            uses_json: view.uses_json(),
            text,
            codes: codes.collect(),
        };
        found.insert(version.to_owned(), shared);
    }
    Ok(found)
}

/// A type, among those of one of the kinds that have it.
type Place<'a> = (&'a NamedTypes, &'a NamedType);

/// The types that at least two of the kinds have, each with those of one of its kinds.
fn shared_by<'a>(kinds: &[&'a NamedTypes]) -> Vec<Place<'a>> {
    let is_kind = |name: &str| kinds.iter().any(|kind| kind.types[0].name == name);
    let mut places: BTreeMap<(String, String), Vec<Place<'a>>> = BTreeMap::new();
    for named in kinds {
        for ty in named.types[1..].iter().filter(|ty| !is_kind(&ty.name)) {
            let key = (ty.name.clone(), code(named, ty));
            places.entry(key).or_default().push((named, ty));
        }
    }
    // Of several types with one name, most kinds have this one.
    let mut chosen: BTreeMap<String, (String, Vec<Place<'a>>)> = BTreeMap::new();
    for ((name, code), places) in places {
        let known = chosen.get(&name).map_or(1, |(_, known)| known.len());
        if places.len() > known {
            chosen.insert(name, (code, places));
        }
    }
    // A type that names one of a kind alone belongs to that kind too.
    loop {
        let is_whole = |(_, places): &(String, Vec<Place<'_>>)| {
            places.first().is_some_and(|(named, ty)| {
                ty.used().all(|id| {
                    let below = &named.types[id];
                    let twin = chosen.get(&below.name);
                    twin.is_some_and(|(twin, _)| *twin == code(named, below))
                })
            })
        };
        let unfit: Vec<String> = chosen
            .iter()
            .filter(|(_, found)| !is_whole(found))
            .map(|(name, _)| name.clone())
            .collect();
        if unfit.is_empty() {
            break;
        }
        unfit.iter().for_each(|name| drop(chosen.remove(name)));
    }
    chosen
        .into_values()
        .filter_map(|(_, places)| places.first().copied())
        .collect()
}
