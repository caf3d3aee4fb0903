//! The source of one crate: reads its files and follows its module tree, without interpreting items.
//!
//! Generated files are never opened, so a missing, stale or broken `generated/` cannot stop its own regeneration.
//! Modules that cannot be followed become a [`Problem`]; none are skipped silently.

mod cfg;
mod foreign_path;
mod import;
mod public_path;
mod resolve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::Span;
use syn::spanned::Spanned;

pub(crate) use cfg::{Presence, all_conditions};
use import::Import;
pub(crate) use import::{reachable, unraw};
pub(crate) use resolve::{Definition, GROUP, Lookup, Namespace};

use crate::problem::{Location, Problem, SourceFile};

/// The root module that holds the generator's own output.
pub(crate) const GENERATED: &str = "generated";

/// Index of a module in [`Crate::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModuleId(usize);

/// A module with its items, except the modules inside it.
#[derive(Debug)]
pub(crate) struct Module {
    /// Names from the crate root; empty for the root.
    pub(crate) path: Vec<String>,
    /// The module around it.
    pub(crate) parent: Option<ModuleId>,
    /// The file that contains its items.
    pub(crate) file: usize,
    /// Whether the whole crate can name it, considering only its own declaration.
    pub(crate) visible: bool,
    /// The `cfg` of the module and its parents that cannot be evaluated here, as attributes.
    pub(crate) conditions: Vec<String>,
    /// All items except modules.
    pub(crate) items: Vec<syn::Item>,
    /// Modules inside it, by name.
    pub(crate) children: BTreeMap<String, ModuleId>,
    imports: Vec<Import>,
}

/// Names that come from outside the crate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Externs {
    /// The names of apiloom in the crate; more than one only with a renamed second version.
    pub(crate) apiloom: Vec<String>,
    /// Every other dependency.
    pub(crate) others: Vec<String>,
}

/// A whole crate.
#[derive(Debug)]
pub(crate) struct Crate {
    /// The files, in the order in which they were found.
    pub(crate) files: Vec<SourceFile>,
    /// The modules; the root comes first.
    pub(crate) modules: Vec<Module>,
    /// How the root declares the generated module, if it does.
    pub(crate) generated: Option<syn::ItemMod>,
    /// Errors of files and modules that could not be read.
    pub(crate) problems: Vec<Problem>,
    externs: Externs,
}

impl Crate {
    /// Reads the crate whose root file is `root`. `name` returns the path of a file for messages.
    pub(crate) fn load(root: &Path, externs: Externs, name: &dyn Fn(&Path) -> String) -> Crate {
        let mut loader = Loader {
            name,
            open: vec![(canonical(root), name(root))],
            krate: Crate {
                files: Vec::new(),
                modules: Vec::new(),
                generated: None,
                problems: Vec::new(),
                externs,
            },
        };
        loader.root(root);
        loader.krate
    }

    /// The root module.
    pub(crate) const ROOT: ModuleId = ModuleId(0);

    /// Every module with its id.
    pub(crate) fn modules(&self) -> impl Iterator<Item = (ModuleId, &Module)> {
        self.modules
            .iter()
            .enumerate()
            .map(|(index, module)| (ModuleId(index), module))
    }

    /// One module.
    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// The modules from `id` outwards that the rest of the crate cannot name; the innermost comes first.
    pub(crate) fn private_modules(&self, id: ModuleId) -> Vec<&Module> {
        let around = std::iter::successors(Some(id), |id| self.module(*id).parent);
        around
            .map(|id| self.module(id))
            .filter(|module| !module.visible)
            .collect()
    }

    /// The location of a span of a module's items.
    pub(crate) fn locate(&self, module: ModuleId, span: Span) -> Location {
        locate(self.module(module).file, span)
    }
}

fn locate(file: usize, span: Span) -> Location {
    Location {
        file,
        range: span.byte_range(),
    }
}

/// Where the files of a module's children are searched.
#[derive(Clone)]
struct Place {
    /// `mod x;` is `children/x.rs` or `children/x/mod.rs`.
    children: PathBuf,
    /// The folder to which `#[path = ".."]` is relative.
    attribute: PathBuf,
}

impl Place {
    /// The place of a file that owns its whole folder: the crate root, `mod.rs`, and files named by `#[path]`.
    fn owner(file: &Path) -> Place {
        let dir = file.parent().unwrap_or(Path::new("")).to_path_buf();
        Place {
            children: dir.clone(),
            attribute: dir,
        }
    }

    fn plain(file: &Path) -> Place {
        let dir = file.parent().unwrap_or(Path::new("")).to_path_buf();
        Place {
            children: file.with_extension(""),
            attribute: dir,
        }
    }
}

struct Loader<'a> {
    name: &'a dyn Fn(&Path) -> String,
    krate: Crate,
    /// The files that contain the current module, outermost first, with their names for messages: `#[path]` can lead
    /// back to one of them.
    open: Vec<(PathBuf, String)>,
}

/// The context of a `mod` item.
struct ModuleContext {
    parent: ModuleId,
    path: Vec<String>,
    visible: bool,
    conditions: Vec<String>,
}

impl Loader<'_> {
    fn root(&mut self, root: &Path) {
        let nested = Module {
            path: Vec::new(),
            parent: None,
            file: 0,
            visible: true,
            conditions: Vec::new(),
            items: Vec::new(),
            children: BTreeMap::new(),
            imports: Vec::new(),
        };
        self.krate.modules.push(nested);
        match fs::read_to_string(root) {
            Ok(text) => {
                if let Some((file, parsed)) = self.parse(root, text) {
                    self.fill(Crate::ROOT, file, parsed.items, &Place::owner(root));
                }
            }
            Err(error) => {
                self.krate.problems.push(Problem::error(format!(
                    "cannot read {}: {error}",
                    (self.name)(root)
                )));
            }
        }
    }

    fn parse(&mut self, path: &Path, text: String) -> Option<(usize, syn::File)> {
        let text = text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text);
        let file = self.krate.files.len();
        let parsed = syn::parse_file(&text);
        self.krate.files.push(SourceFile {
            name: (self.name)(path),
            text,
        });
        match parsed {
            Ok(parsed) => Some((file, parsed)),
            Err(error) => {
                self.krate
                    .problems
                    .push(Problem::error(error.to_string()).at(locate(file, error.span())));
                None
            }
        }
    }

    /// Adds items to an existing module, and the modules among them.
    fn fill(&mut self, id: ModuleId, file: usize, items: Vec<syn::Item>, place: &Place) {
        self.krate.modules[id.0].file = file;
        for item in items {
            match item {
                syn::Item::Mod(item) => self.nested(id, item, place),
                syn::Item::Use(item) => self.import(id, &item),
                syn::Item::ExternCrate(item) => {
                    let import = Import::extern_crate(&item, &self.krate.modules[id.0].path);
                    self.krate.modules[id.0].imports.push(import);
                }
                item => self.item(id, file, item),
            }
        }
    }

    fn import(&mut self, id: ModuleId, item: &syn::ItemUse) {
        if cfg::presence(&item.attrs) != Presence::Absent {
            let module = &mut self.krate.modules[id.0];
            Import::flatten(item, &module.path, &mut module.imports);
        }
    }

    fn item(&mut self, id: ModuleId, file: usize, item: syn::Item) {
        if cfg::presence(attributes(&item)) == Presence::Absent {
            return;
        }
        if let syn::Item::Macro(invocation) = &item
            && invocation.mac.path.is_ident("include")
        {
            self.include(file, invocation);
        }
        self.krate.modules[id.0].items.push(item);
    }

    /// Reports `include!`: the items of the file belong to this module, so a kind among them would be missed.
    fn include(&mut self, file: usize, invocation: &syn::ItemMacro) {
        self.krate.problems.push(
            Problem::error("the generator cannot look inside `include!`")
                .at(locate(file, invocation.mac.path.span()))
                .help("declare the file as a module: `mod x;` or `#[path = \"..\"] mod x;`"),
        );
    }

    fn nested(&mut self, parent: ModuleId, item: syn::ItemMod, place: &Place) {
        let presence = cfg::presence(&item.attrs);
        if presence == Presence::Absent {
            return;
        }
        let name = unraw(&item.ident);
        if parent == Crate::ROOT && name == GENERATED {
            self.krate.generated = Some(item);
            return;
        }
        let around = self.krate.module(parent);
        let mut path = around.path.clone();
        path.push(name.clone());
        let nested = ModuleContext {
            parent,
            path,
            visible: reachable(&item.vis, &around.path),
            conditions: cfg::all_conditions(&around.conditions, &item.attrs),
        };
        match item.content {
            Some((_, items)) => {
                let dir = match path_attribute(&item.attrs) {
                    Some(path) => place.attribute.join(path),
                    None => place.children.join(&name),
                };
                let file = self.krate.module(parent).file;
                let id = self.add(nested, file);
                self.fill(
                    id,
                    file,
                    items,
                    &Place {
                        children: dir.clone(),
                        attribute: dir,
                    },
                );
            }
            None => self.file_module(nested, &name, &item.attrs, item.ident.span(), place),
        }
    }

    fn file_module(
        &mut self,
        nested: ModuleContext,
        name: &str,
        attrs: &[syn::Attribute],
        span: Span,
        place: &Place,
    ) {
        let candidates = match path_attribute(attrs) {
            Some(path) => {
                let path = place.attribute.join(path);
                vec![(path.clone(), Place::owner(&path))]
            }
            None => {
                let plain = place.children.join(format!("{name}.rs"));
                let folder = place.children.join(name).join("mod.rs");
                vec![
                    (plain.clone(), Place::plain(&plain)),
                    (folder.clone(), Place::owner(&folder)),
                ]
            }
        };
        let declared_in = self.krate.module(nested.parent).file;
        let found = candidates.iter().find(|(path, _)| path.is_file());
        let Some((path, place)) = found else {
            let names: Vec<_> = candidates
                .iter()
                .map(|(path, _)| format!("`{}`", (self.name)(path)))
                .collect();
            self.krate.problems.push(
                Problem::error(format!("file not found for module `{name}`"))
                    .at(locate(declared_in, span))
                    .help(format!("create {}", names.join(" or "))),
            );
            return;
        };
        let real = canonical(path);
        if let Some(first) = self.open.iter().position(|(open, _)| *open == real) {
            self.circle(first, declared_in, span);
            return;
        }
        self.open.push((real, (self.name)(path)));
        self.read_module(nested, path, place, locate(declared_in, span));
        self.open.pop();
    }

    fn circle(&mut self, first: usize, declared_in: usize, span: Span) {
        let circle = self.open[first..].iter().chain([&self.open[first]]);
        let names: Vec<_> = circle.map(|(_, name)| name.as_str()).collect();
        self.krate.problems.push(
            Problem::error(format!("circular modules: {}", names.join(" -> ")))
                .at(locate(declared_in, span))
                .help("a file can be one module only"),
        );
    }

    fn read_module(
        &mut self,
        nested: ModuleContext,
        path: &Path,
        place: &Place,
        declared: Location,
    ) {
        match fs::read_to_string(path) {
            Ok(text) => {
                if let Some((file, parsed)) = self.parse(path, text) {
                    if cfg::presence(&parsed.attrs) == Presence::Absent {
                        return;
                    }
                    let id = self.add(nested, file);
                    self.fill(id, file, parsed.items, place);
                }
            }
            Err(error) => self.krate.problems.push(
                Problem::error(format!("cannot read `{}`: {error}", (self.name)(path)))
                    .at(declared),
            ),
        }
    }

    fn add(&mut self, nested: ModuleContext, file: usize) -> ModuleId {
        let id = ModuleId(self.krate.modules.len());
        if let Some(name) = nested.path.last() {
            self.krate.modules[nested.parent.0]
                .children
                .insert(name.clone(), id);
        }
        self.krate.modules.push(Module {
            path: nested.path,
            parent: Some(nested.parent),
            file,
            visible: nested.visible,
            conditions: nested.conditions,
            items: Vec::new(),
            children: BTreeMap::new(),
            imports: Vec::new(),
        });
        id
    }
}

/// The canonical path of a file, or the path itself if that fails.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn path_attribute(attrs: &[syn::Attribute]) -> Option<String> {
    attrs.iter().find_map(|attr| match &attr.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The attributes of any item.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::TraitAlias(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
