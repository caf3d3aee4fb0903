//! Resolves paths inside a crate: `use`, renames, globs, `self`, `super`, `crate` and the extern prelude.
//!
//! It answers only what the generator needs: whether an attribute or macro is apiloom's, and which struct a path names.
//! If a glob of a foreign crate could contain the name, the answer is [`Lookup::Unknown`], never a guess.

use super::import::{Import, unraw};
use super::{Crate, ModuleId};

/// The namespaces that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// Modules, structs, aliases.
    Type,
    /// Attribute, derive and `name!` macros.
    Macro,
    /// Functions, and the constants of groups.
    Value,
}

/// The definition that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// An item of apiloom, by its last name; empty for the crate itself.
    Apiloom(String),
    /// A module of this crate.
    Module(ModuleId),
    /// Another item of this crate.
    Item(ModuleId, String),
    /// An item of another crate.
    Foreign,
}

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The definition was found.
    Found(Definition),
    /// The definition may be in a crate that cannot be read.
    Unknown,
    /// The name does not exist.
    Missing,
}

/// The constant that `group!` defines.
pub(crate) const GROUP: &str = "GROUP";

/// `use` chains longer than this are cycles.
const MAX_DEPTH: usize = 32;

impl Crate {
    /// Resolves `path` inside `module`; its last segment is looked up in `namespace`.
    pub(crate) fn resolve(
        &self,
        module: ModuleId,
        path: &syn::Path,
        namespace: Namespace,
    ) -> Lookup {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|segment| unraw(&segment.ident))
            .collect();
        self.resolve_names(module, &names, path.leading_colon.is_some(), namespace, 0)
    }

    /// Resolves `name` in `module`, as in `module::name`.
    pub(crate) fn member(&self, module: ModuleId, name: &str, namespace: Namespace) -> Lookup {
        self.in_module(module, name, namespace, 0)
    }

    /// The target of a type alias of this crate; other definitions are returned unchanged.
    pub(crate) fn behind_alias(&self, found: Lookup) -> Lookup {
        let mut found = found;
        for _ in 0..MAX_DEPTH {
            let Lookup::Found(Definition::Item(module, name)) = &found else {
                return found;
            };
            let alias = self
                .module(*module)
                .items
                .iter()
                .find_map(|item| match item {
                    syn::Item::Type(item) if item.ident == name.as_str() => Some(&*item.ty),
                    _ => None,
                });
            let Some(syn::Type::Path(target)) = alias else {
                return found;
            };
            found = self.resolve(*module, &target.path, Namespace::Type);
        }
        Lookup::Missing
    }

    /// Resolves a path behind `crate`.
    pub(super) fn item_at(&self, names: &[String], namespace: Namespace) -> Lookup {
        let path: Vec<String> = std::iter::once("crate".to_owned())
            .chain(names.iter().cloned())
            .collect();
        self.resolve_names(Crate::ROOT, &path, false, namespace, 0)
    }

    /// Resolves the target of an import; for a glob its module.
    pub(super) fn target(&self, module: ModuleId, import: &Import, namespace: Namespace) -> Lookup {
        self.resolve_names(module, &import.path, import.global, namespace, 0)
    }

    /// The import of a module that has this name, if any.
    pub(crate) fn import(&self, module: ModuleId, name: &str) -> Option<&Import> {
        self.module(module)
            .imports
            .iter()
            .find(|import| import.name.as_deref() == Some(name))
    }

    fn resolve_names(
        &self,
        module: ModuleId,
        names: &[String],
        global: bool,
        namespace: Namespace,
        depth: usize,
    ) -> Lookup {
        let Some((first, rest)) = names.split_first() else {
            return Lookup::Missing;
        };
        let first_namespace = if rest.is_empty() {
            namespace
        } else {
            Namespace::Type
        };
        let mut found = if global {
            self.external(first)
        } else {
            match first.as_str() {
                "crate" => Lookup::Found(Definition::Module(Crate::ROOT)),
                "self" => Lookup::Found(Definition::Module(module)),
                "super" => self.parent(module),
                name => self.unqualified(module, name, first_namespace, depth),
            }
        };
        for (index, name) in rest.iter().enumerate() {
            let namespace = if index + 1 == rest.len() {
                namespace
            } else {
                Namespace::Type
            };
            found = match found {
                Lookup::Found(Definition::Module(inner)) if name == "super" => self.parent(inner),
                Lookup::Found(Definition::Module(inner)) => {
                    self.in_module(inner, name, namespace, depth)
                }
                Lookup::Found(Definition::Apiloom(_)) => {
                    Lookup::Found(Definition::Apiloom(name.clone()))
                }
                Lookup::Found(Definition::Item(..)) => Lookup::Missing,
                other => other,
            };
        }
        found
    }

    fn parent(&self, module: ModuleId) -> Lookup {
        self.module(module)
            .parent
            .map_or(Lookup::Missing, |parent| {
                Lookup::Found(Definition::Module(parent))
            })
    }

    fn unqualified(
        &self,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
        depth: usize,
    ) -> Lookup {
        // Before globs, whose own paths begin with such names: each of them would be searched in all the others.
        let is_declared = || {
            self.own_item(module, name, namespace).is_some() || self.import(module, name).is_some()
        };
        if namespace == Namespace::Type && self.external(name) != Lookup::Missing && !is_declared()
        {
            return self.external(name);
        }
        self.in_module(module, name, namespace, depth)
    }

    fn external(&self, name: &str) -> Lookup {
        if self.externs.apiloom.iter().any(|apiloom| apiloom == name) {
            Lookup::Found(Definition::Apiloom(String::new()))
        } else if matches!(name, "std" | "core" | "alloc")
            || self.externs.others.iter().any(|other| other == name)
        {
            Lookup::Found(Definition::Foreign)
        } else {
            Lookup::Missing
        }
    }

    fn in_module(
        &self,
        module: ModuleId,
        name: &str,
        namespace: Namespace,
        depth: usize,
    ) -> Lookup {
        if depth > MAX_DEPTH {
            return Lookup::Missing;
        }
        if let Some(found) = self.own_item(module, name, namespace) {
            return Lookup::Found(found);
        }
        let mut answer = Lookup::Missing;
        // A named import takes precedence over a glob.
        let imports = &self.module(module).imports;
        let (named, globs): (Vec<_>, Vec<_>) =
            imports.iter().partition(|import| import.name.is_some());
        for import in named
            .into_iter()
            .filter(|import| import.name.as_deref() == Some(name))
        {
            match self.resolve_names(module, &import.path, import.global, namespace, depth + 1) {
                Lookup::Missing => {}
                other => return other,
            }
        }
        for import in globs {
            let target = self.resolve_names(
                module,
                &import.path,
                import.global,
                Namespace::Type,
                depth + 1,
            );
            let found = match target {
                Lookup::Found(Definition::Module(inner)) if inner != module => {
                    self.in_module(inner, name, namespace, depth + 1)
                }
                Lookup::Found(Definition::Apiloom(_)) if in_prelude(name, namespace) => {
                    Lookup::Found(Definition::Apiloom(name.to_owned()))
                }
                Lookup::Found(Definition::Foreign) | Lookup::Unknown => Lookup::Unknown,
                _ => Lookup::Missing,
            };
            match found {
                Lookup::Found(_) => return found,
                Lookup::Unknown => answer = Lookup::Unknown,
                Lookup::Missing => {}
            }
        }
        answer
    }

    fn own_item(&self, id: ModuleId, name: &str, namespace: Namespace) -> Option<Definition> {
        let module = self.module(id);
        if namespace == Namespace::Type
            && let Some(child) = module.children.get(name)
        {
            return Some(Definition::Module(*child));
        }
        let declares = |item: &syn::Item| match (namespace, item) {
            (Namespace::Type, syn::Item::Struct(item)) => item.ident == name,
            (Namespace::Type, syn::Item::Enum(item)) => item.ident == name,
            (Namespace::Type, syn::Item::Union(item)) => item.ident == name,
            (Namespace::Type, syn::Item::Trait(item)) => item.ident == name,
            (Namespace::Type, syn::Item::Type(item)) => item.ident == name,
            (Namespace::Value, syn::Item::Fn(item)) => item.sig.ident == name,
            (Namespace::Macro, syn::Item::Macro(item)) => {
                item.ident.as_ref().is_some_and(|ident| ident == name)
            }
            (Namespace::Value, syn::Item::Macro(item)) if name == GROUP => {
                let called = self.resolve(id, &item.mac.path, Namespace::Macro);
                called == Lookup::Found(Definition::Apiloom("group".to_owned()))
            }
            _ => false,
        };
        module
            .items
            .iter()
            .any(declares)
            .then(|| Definition::Item(id, name.to_owned()))
    }
}

/// Whether a glob of apiloom or of its prelude can import this name, among the names that matter here.
fn in_prelude(name: &str, namespace: Namespace) -> bool {
    namespace == Namespace::Macro && matches!(name, "resource" | "api" | "Resource" | "group")
}
