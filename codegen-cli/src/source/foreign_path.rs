//! Finds the path of a type of another crate that is valid everywhere in this one: generated code names it.

use super::import::Import;
use super::{Crate, Definition, Lookup, ModuleId, Namespace};

/// `use` chains longer than this are cycles.
const MAX_DEPTH: usize = 32;

/// The types of apiloom's prelude.
const PRELUDE: [&str; 13] = [
    "BTreeMap",
    "Condition",
    "ConditionStatus",
    "Duration",
    "FieldError",
    "FieldPath",
    "IntOrString",
    "LabelSelector",
    "MicroTime",
    "ObjectMeta",
    "OwnerReference",
    "Quantity",
    "Time",
];

impl Crate {
    /// The path behind `::`, followed through imports. `None` if it is not a type of another crate, or a glob of another
    /// crate imports it.
    pub(crate) fn foreign_path(&self, module: ModuleId, names: &[String]) -> Option<Vec<String>> {
        self.follow(module, names, false, 0)
    }

    fn follow(
        &self,
        module: ModuleId,
        names: &[String],
        global: bool,
        depth: usize,
    ) -> Option<Vec<String>> {
        let (first, rest) = names.split_first()?;
        if depth > MAX_DEPTH {
            return None;
        }
        if global {
            return self.is_external(first).then(|| names.to_vec());
        }
        let inner = match first.as_str() {
            "crate" => Some(Crate::ROOT),
            "self" => Some(module),
            "super" => Some(self.module(module).parent?),
            name => self.module(module).children.get(name).copied(),
        };
        if let Some(inner) = inner {
            return self.follow(inner, rest, false, depth + 1);
        }
        let joined = |import: &Import| [&import.path, rest].concat();
        if let Some(import) = self.import(module, first) {
            return self.follow(module, &joined(import), import.global, depth + 1);
        }
        if self.is_external(first) {
            return Some(names.to_vec());
        }
        let globs = self.module(module).imports.iter();
        let mut globs = globs.filter(|import| import.name.is_none());
        globs.find_map(|glob| match self.target(module, glob, Namespace::Type) {
            Lookup::Found(Definition::Module(inner)) if inner != module => {
                self.follow(inner, names, false, depth + 1)
            }
            Lookup::Found(Definition::Apiloom(_))
                if rest.is_empty() && PRELUDE.contains(&&**first) =>
            {
                let glob = glob.path.iter().cloned();
                Some(glob.chain([first.clone()]).collect())
            }
            _ => None,
        })
    }

    fn is_external(&self, name: &str) -> bool {
        matches!(name, "std" | "core" | "alloc")
            || self.externs.apiloom.iter().any(|other| other == name)
            || self.externs.others.iter().any(|other| other == name)
    }
}
