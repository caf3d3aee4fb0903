//! Which files of a crate use which others: by paths, and by calls of methods of the own type that another file has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::modules::{Crate, ModuleId, is_of_tests};

/// The files that a file uses.
pub(crate) type Uses = BTreeSet<PathBuf>;

/// The files that each file of a crate uses. A re-export (`pub use`) alone is not a use.
pub(crate) fn of(krate: &Crate) -> BTreeMap<PathBuf, Uses> {
    let methods = Methods::of(krate);
    let mut files: BTreeMap<PathBuf, Uses> = BTreeMap::new();
    for (id, module) in krate.modules.iter().enumerate() {
        let mut collector = Collector {
            krate,
            id,
            methods: &methods,
            own: None,
            uses: Uses::new(),
        };
        for import in &module.imports {
            if !import.is_reexport {
                collector.add(&import.path);
            }
        }
        for item in &module.code {
            collector.visit_item(item);
        }
        files
            .entry(module.file.clone())
            .or_default()
            .append(&mut collector.uses);
    }
    files
}

/// A type: the module that defines it, and its name there.
pub(crate) type TypeId = (ModuleId, String);

/// The inherent methods of the types of a crate, with the files that have them.
pub(crate) struct Methods(pub(crate) BTreeMap<TypeId, BTreeMap<String, PathBuf>>);

impl Methods {
    pub(crate) fn of(krate: &Crate) -> Self {
        let mut methods: BTreeMap<TypeId, BTreeMap<String, PathBuf>> = BTreeMap::new();
        for (id, module) in krate.modules.iter().enumerate() {
            let blocks = module.code.iter().filter_map(|item| match item {
                syn::Item::Impl(block) if block.trait_.is_none() => Some(block),
                _ => None,
            });
            for block in blocks.filter(|block| !is_of_tests(&block.attrs)) {
                let Some(of) = type_of(krate, id, &block.self_ty) else {
                    continue;
                };
                let own = methods.entry(of).or_default();
                for item in &block.items {
                    if let syn::ImplItem::Fn(method) = item
                        && !is_of_tests(&method.attrs)
                    {
                        own.insert(method.sig.ident.to_string(), module.file.clone());
                    }
                }
            }
        }
        Self(methods)
    }
}

/// The type of a crate that a type names.
pub(crate) fn type_of(krate: &Crate, id: ModuleId, of: &syn::Type) -> Option<TypeId> {
    let syn::Type::Path(of) = of else {
        return None;
    };
    let segments = names(&of.path);
    let module = krate.definition(id, &segments)?;
    Some((module, segments.last()?.clone()))
}

fn names(path: &syn::Path) -> Vec<String> {
    let segments = path.segments.iter();
    segments.map(|segment| segment.ident.to_string()).collect()
}

struct Collector<'a> {
    krate: &'a Crate,
    id: ModuleId,
    methods: &'a Methods,
    /// The methods of the type whose block is visited.
    own: Option<&'a BTreeMap<String, PathBuf>>,
    uses: Uses,
}

impl Collector<'_> {
    fn add(&mut self, path: &[String]) {
        if let [first, method] = path
            && first == "Self"
        {
            return self.add_method(method);
        }
        if let Some(module) = self.krate.definition(self.id, path) {
            self.add_file(&self.krate.modules[module].file);
        }
    }

    fn add_method(&mut self, name: &str) {
        if let Some(file) = self.own.and_then(|own| own.get(name)) {
            self.add_file(file);
        }
    }

    fn add_file(&mut self, file: &Path) {
        if *file != *self.krate.modules[self.id].file {
            self.uses.insert(file.to_owned());
        }
    }

    /// Paths among the tokens of a macro call.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        // Colons since the last name: two of them continue the path.
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.add(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.add(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.add(&path);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !matches!(item, syn::Item::Fn(item) if is_of_tests(&item.attrs))
            && !matches!(item, syn::Item::Impl(item) if is_of_tests(&item.attrs))
        {
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.add(&names(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let of = type_of(self.krate, self.id, &block.self_ty);
        let own = of.and_then(|of| self.methods.0.get(&of));
        let outer = std::mem::replace(&mut self.own, own);
        visit::visit_item_impl(self, block);
        self.own = outer;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let syn::Expr::Path(receiver) = &*call.receiver
            && receiver.path.is_ident("self")
        {
            self.add_method(&call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    // `pub(in path)` and attributes name no items.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}
