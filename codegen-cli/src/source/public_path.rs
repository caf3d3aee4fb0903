//! Finds the path by which the whole crate can name an item: its own path, or a re-export.

use std::collections::{HashSet, VecDeque};

use super::{Crate, Definition, Lookup, ModuleId, Namespace};
use crate::problem::Problem;

impl Crate {
    /// The path of an item behind `crate` that is valid everywhere in the crate: its own path if no module in it is
    /// private, or else a short one through `pub use`. Modules with a name come before globs, whose names other globs
    /// may hide.
    pub(crate) fn public_path(
        &self,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
    ) -> Option<Vec<String>> {
        if self.private_modules(module).is_empty() {
            return Some(joined(&self.module(module).path, name));
        }
        let item = Lookup::Found(Definition::Item(module, name.to_owned()));
        let mut seen = HashSet::from([Crate::ROOT]);
        let mut open = VecDeque::from([(Crate::ROOT, Vec::new())]);
        while let Some((here, path)) = open.pop_front() {
            let names = self.names_of(here, &item, module, name, namespace);
            for name in names {
                let path = joined(&path, name);
                // Another item of the same name may hide the one that a glob imports.
                if self.item_at(&path, namespace) == item {
                    return Some(path);
                }
            }
            for (name, inner) in self.visible_modules(here) {
                if !seen.insert(inner) {
                    continue;
                }
                match name {
                    Some(name) => open.push_back((inner, joined(&path, name))),
                    // A glob adds no name to the path.
                    None => open.push_front((inner, path.clone())),
                }
            }
        }
        None
    }

    /// The problem of an item that generated code cannot name because a module is private. The caller adds the
    /// location.
    pub(crate) fn problem_of_privacy(
        &self,
        what: &str,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
    ) -> Option<Problem> {
        if self.public_path(module, name, namespace).is_some() {
            return None;
        }
        let private = self.private_modules(module);
        let names: Vec<String> = private.iter().map(|m| m.path.join("::")).collect();
        let (innermost, outermost) = (names.first()?, private.last()?);
        let (_, around) = outermost.path.split_last()?;
        let help = format!(
            "declare `{}` as `pub mod`, or re-export `{name}` in `{}` with `pub use`: generated code names it",
            names.join("` and `"),
            around.join("::")
        );
        Some(Problem::error(format!("{what} is in the private module `{innermost}`")).help(help))
    }

    /// The names of the item in a module, as visible to the whole crate.
    fn names_of<'a>(
        &'a self,
        here: ModuleId,
        item: &Lookup,
        module: ModuleId,
        name: &'a str,
        namespace: Namespace,
    ) -> Vec<&'a str> {
        let own = (here == module).then_some(name);
        let imports = self.module(here).imports.iter();
        let imported = imports.filter_map(|import| {
            let name = import.name.as_deref().filter(|_| import.visible)?;
            (self.target(here, import, namespace) == *item).then_some(name)
        });
        own.into_iter().chain(imported).collect()
    }

    /// The modules that can be named through a module, with their names there; a glob's has none.
    fn visible_modules(&self, here: ModuleId) -> Vec<(Option<&str>, ModuleId)> {
        let module = self.module(here);
        let children = module.children.iter().filter_map(|(name, child)| {
            self.module(*child)
                .visible
                .then_some((Some(name.as_str()), *child))
        });
        let imports = module.imports.iter().filter(|import| import.visible);
        let imported =
            imports.filter_map(|import| match self.target(here, import, Namespace::Type) {
                Lookup::Found(Definition::Module(inner)) => Some((import.name.as_deref(), inner)),
                _ => None,
            });
        children.chain(imported).collect()
    }
}

fn joined(path: &[String], name: &str) -> Vec<String> {
    path.iter().cloned().chain([name.to_owned()]).collect()
}
