//! The modules of a crate, found in its sources as rustc does, without test modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::{Attribute, Ident, Item, ItemMod, UseTree};

/// Index of a module in [`Crate::modules`]; the first is the root.
pub(crate) type ModuleId = usize;

/// A crate's modules.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
}

/// One module, in a file of its own or inline in its parent's.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    pub(crate) parent: Option<ModuleId>,
    /// Whether it is public in its parent, and documented.
    pub(crate) is_public: bool,
    pub(crate) children: BTreeMap<String, ModuleId>,
    /// Names that it defines.
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Its code without inline modules, for [`super::uses`].
    pub(crate) code: Vec<Item>,
}

impl Module {
    /// Its file, as a path in the workspace.
    pub(crate) fn path(&self) -> String {
        let path = self.file.strip_prefix(workspace());
        path.expect("a file of the workspace").display().to_string()
    }
}

/// One name that a `use` brings into a module.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// The path as it is written.
    pub(crate) path: Vec<String>,
    /// The name in this module; `None` for `*`.
    pub(crate) name: Option<String>,
    /// Whether other modules can use the name through this module.
    pub(crate) is_reexport: bool,
    /// Whether other crates can, and documents show it.
    pub(crate) is_public: bool,
}

/// The folder of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests lie in the workspace")
}

/// A library of the project.
pub(crate) struct Library {
    /// Its folder in the workspace.
    pub(crate) name: String,
    /// The folder of its sources.
    pub(crate) source: PathBuf,
}

/// The members of the workspace that are libraries, apart from examples and what only tests use.
pub(crate) fn libraries() -> Vec<Library> {
    let workspace = workspace();
    let manifest = std::fs::read_to_string(workspace.join("Cargo.toml")).expect("a manifest");
    let (_, members) = manifest.split_once("members = [").expect("members");
    let (members, _) = members.split_once(']').expect("the end of the members");
    let names = members.split('"').skip(1).step_by(2);
    let libraries: Vec<Library> = names
        .filter(|name| {
            !name.starts_with("examples/") && *name != "tests" && !name.starts_with("tests/")
        })
        .map(|name| Library {
            name: name.to_owned(),
            source: workspace.join(name).join("src"),
        })
        .filter(|library| library.source.join("lib.rs").exists())
        .collect();
    assert!(libraries.len() > 9, "the members are not read");
    libraries
}

impl Crate {
    /// Reads a crate from its root, `src/lib.rs` or `src/main.rs`.
    pub(crate) fn read(root: &Path) -> Self {
        let mut this = Self::default();
        let folder = root.parent().expect("a root lies in a folder");
        let file = parse(root);
        this.add(None, root, folder, file.items);
        this
    }

    /// Adds a module and its children. `folder` contains the files of its children.
    fn add(
        &mut self,
        parent: Option<ModuleId>,
        file: &Path,
        folder: &Path,
        items: Vec<Item>,
    ) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module {
            file: file.to_owned(),
            parent,
            is_public: false,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            code: Vec::new(),
        });
        for item in items {
            match item {
                Item::Mod(module) => self.add_child(id, file, folder, module),
                Item::Use(item) if !is_of_tests(&item.attrs) => {
                    let of = Import {
                        path: Vec::new(),
                        name: None,
                        is_reexport: !matches!(item.vis, syn::Visibility::Inherited),
                        is_public: is_public(&item.vis) && !is_hidden(&item.attrs),
                    };
                    flatten(&item.tree, &of, &mut self.modules[id].imports);
                }
                item => {
                    let module = &mut self.modules[id];
                    if let Some(name) = name_of(&item) {
                        module.items.insert(name.to_string());
                    }
                    module.code.push(item);
                }
            }
        }
        id
    }

    fn add_child(&mut self, parent: ModuleId, file: &Path, folder: &Path, module: ItemMod) {
        if is_of_tests(&module.attrs) {
            return;
        }
        let name = module.ident.to_string();
        let below = folder.join(&name);
        let is_public = is_public(&module.vis) && !is_hidden(&module.attrs);
        let child = match module.content {
            Some((_, items)) => self.add(Some(parent), file, &below, items),
            None => {
                let candidates = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
                let file = candidates
                    .iter()
                    .find(|file| file.exists())
                    .unwrap_or_else(|| panic!("no file for `mod {name}` of {}", file.display()));
                self.add(Some(parent), file, &below, parse(file).items)
            }
        };
        self.modules[child].is_public = is_public;
        self.modules[parent].children.insert(name, child);
    }

    /// The module that defines the item of a path in another module. `None` for other crates, for names local to a
    /// function, and for paths of modules.
    pub(crate) fn definition(&self, from: ModuleId, path: &[String]) -> Option<ModuleId> {
        match self.target(from, path)? {
            Target::Item(module) => Some(module),
            Target::Module(_) => None,
        }
    }

    /// What a path in a module leads to, in this crate.
    pub(crate) fn target(&self, from: ModuleId, path: &[String]) -> Option<Target> {
        self.resolve(from, path, &mut BTreeSet::new())
    }

    fn resolve(
        &self,
        from: ModuleId,
        path: &[String],
        seen: &mut BTreeSet<(ModuleId, Vec<String>)>,
    ) -> Option<Target> {
        // Two globs may import each other.
        if !seen.insert((from, path.to_vec())) {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent?,
            _ => return self.member(from, path, seen),
        };
        if rest.is_empty() {
            return Some(Target::Module(start));
        }
        match rest[0].as_str() {
            "super" => self.resolve(start, rest, seen),
            _ => self.member(start, rest, seen),
        }
    }

    /// Resolves a path that begins with a name of this module.
    fn member(
        &self,
        module: ModuleId,
        path: &[String],
        seen: &mut BTreeSet<(ModuleId, Vec<String>)>,
    ) -> Option<Target> {
        let (name, rest) = path.split_first()?;
        let this = &self.modules[module];
        // A module and a function may share a name; a longer path means the module.
        if let Some(&child) = this.children.get(name) {
            if rest.is_empty() {
                return Some(Target::Module(child));
            }
            return self.member(child, rest, seen);
        }
        if this.items.contains(name) {
            return Some(Target::Item(module));
        }
        let named = |import: &&Import| import.name.as_ref() == Some(name);
        if let Some(import) = this.imports.iter().find(named) {
            return match self.resolve(module, &import.path, seen)? {
                Target::Module(found) if !rest.is_empty() => self.member(found, rest, seen),
                found => Some(found),
            };
        }
        this.imports
            .iter()
            .filter(|import| import.name.is_none())
            .find_map(|import| {
                let Target::Module(found) = self.resolve(module, &import.path, seen)? else {
                    return None;
                };
                self.member(found, path, seen)
            })
    }
}

/// The target of a path.
pub(crate) enum Target {
    Module(ModuleId),
    /// The module that defines the item.
    Item(ModuleId),
}

fn parse(file: &Path) -> syn::File {
    let text =
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Whether an item exists only in tests.
pub(crate) fn is_of_tests(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| match &attr.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let mut tokens = list.tokens.clone().into_iter();
            matches!(tokens.next(), Some(proc_macro2::TokenTree::Ident(ident)) if ident == "test")
        }
        _ => false,
    })
}

/// Whether other crates can use an item, if its module is public.
pub(crate) fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// Whether an item is `#[doc(hidden)]`.
pub(crate) fn is_hidden(attrs: &[Attribute]) -> bool {
    let lists = attrs.iter().filter_map(|attr| match &attr.meta {
        syn::Meta::List(list) if list.path.is_ident("doc") => Some(&list.tokens),
        _ => None,
    });
    let mut tokens = lists.flat_map(|tokens| tokens.clone());
    tokens.any(|token| matches!(token, proc_macro2::TokenTree::Ident(ident) if ident == "hidden"))
}

/// Collects the names of a tree, to which the path of `of` leads.
fn flatten(tree: &UseTree, of: &Import, out: &mut Vec<Import>) {
    let below = |ident: &Ident| Import {
        path: of.path.iter().cloned().chain([ident.to_string()]).collect(),
        ..of.clone()
    };
    let (found, name) = match tree {
        UseTree::Path(tree) => return flatten(&tree.tree, &below(&tree.ident), out),
        UseTree::Group(group) => return group.items.iter().for_each(|tree| flatten(tree, of, out)),
        UseTree::Name(tree) if tree.ident == "self" => (of.clone(), of.path.last().cloned()),
        UseTree::Name(tree) => (below(&tree.ident), Some(tree.ident.to_string())),
        UseTree::Rename(tree) if tree.ident == "self" => {
            (of.clone(), Some(tree.rename.to_string()))
        }
        UseTree::Rename(tree) => (below(&tree.ident), Some(tree.rename.to_string())),
        UseTree::Glob(_) => (of.clone(), None),
    };
    out.push(Import { name, ..found });
}

/// The name that an item has in its module.
pub(crate) fn name_of(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}
