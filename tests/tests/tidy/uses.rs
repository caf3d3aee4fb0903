//! Which files of a crate use which others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::modules::{Crate, ModuleId, is_of_tests};

/// The files that a file uses.
pub(crate) type Uses = BTreeSet<PathBuf>;

/// The files that each file of a crate uses. A re-export (`pub use`) alone is not a use.
pub(crate) fn of(krate: &Crate) -> BTreeMap<PathBuf, Uses> {
    let mut files: BTreeMap<PathBuf, Uses> = BTreeMap::new();
    for (id, module) in krate.modules.iter().enumerate() {
        let mut collector = Collector {
            krate,
            id,
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

struct Collector<'a> {
    krate: &'a Crate,
    id: ModuleId,
    uses: Uses,
}

impl Collector<'_> {
    fn add(&mut self, path: &[String]) {
        let Some(module) = self.krate.definition(self.id, path) else {
            return;
        };
        let file = &self.krate.modules[module].file;
        if *file != self.krate.modules[self.id].file {
            self.uses.insert(file.clone());
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
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if path.leading_colon.is_none() {
            self.add(&segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    // `pub(in path)` and attributes name no items.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}
