//! The public items of each crate, listed as Rust without bodies: a change of the listing is reviewed as a change of what users
//! have. Items that a macro makes are not in it, but the call of the macro; neither is what documents hide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use syn::{Attribute, Fields, ImplItem, Item, TraitItem, parse_quote};

use super::modules::{
    Crate, Import, ModuleId, Target, is_hidden, is_of_tests, is_public, libraries, name_of,
};
use super::uses::{TypeId, type_of};

/// The listing of a crate: the items of each public module.
struct Listing<'a> {
    krate: &'a Crate,
    /// The blocks `impl` of each type.
    blocks: BTreeMap<TypeId, Vec<Item>>,
    modules: BTreeMap<String, BTreeSet<String>>,
}

impl Listing<'_> {
    fn of(name: &str, krate: &Crate) -> String {
        let mut listing = Listing {
            krate,
            blocks: blocks(krate),
            modules: BTreeMap::new(),
        };
        listing.add_module(0, name, &mut BTreeSet::new());
        let mut text = String::new();
        for (path, items) in listing
            .modules
            .iter()
            .filter(|(_, items)| !items.is_empty())
        {
            let items = Vec::from_iter(items.iter().map(String::as_str));
            let _ = writeln!(text, "// {path}\n{}", items.concat());
        }
        text
    }

    /// Adds the items of a module under a path. `seen` has the modules on the way to it.
    fn add_module(&mut self, id: ModuleId, path: &str, seen: &mut BTreeSet<ModuleId>) {
        if !seen.insert(id) {
            return;
        }
        let krate = self.krate;
        let module = &krate.modules[id];
        self.modules.entry(path.to_owned()).or_default();
        for item in &module.code {
            self.add_item(id, item, path);
        }
        for (name, &child) in &module.children {
            if krate.modules[child].is_public {
                self.add_module(child, &format!("{path}::{name}"), seen);
            }
        }
        for import in module.imports.iter().filter(|import| import.is_public) {
            self.add_reexport(id, import, path, seen);
        }
        seen.remove(&id);
    }

    fn add_reexport(
        &mut self,
        from: ModuleId,
        import: &Import,
        path: &str,
        seen: &mut BTreeSet<ModuleId>,
    ) {
        let krate = self.krate;
        match krate.target(from, &import.path) {
            Some(Target::Module(module)) => match &import.name {
                Some(name) => self.add_module(module, &format!("{path}::{name}"), seen),
                None => self.add_module(module, path, seen),
            },
            Some(Target::Item(module)) => {
                let name = import.path.last();
                let code = krate.modules[module].code.iter();
                let is_it = |item: &&Item| name_of(item).map(ToString::to_string).as_ref() == name;
                for item in code.filter(is_it) {
                    self.add_item(module, item, path);
                }
            }
            // Of another crate.
            None => {
                let written = import.path.join("::");
                let line = match &import.name {
                    Some(name) if import.path.last() == Some(name) => {
                        format!("pub use {written};\n")
                    }
                    Some(name) => format!("pub use {written} as {name};\n"),
                    None => format!("pub use {written}::*;\n"),
                };
                self.insert(path, line);
            }
        }
    }

    fn add_item(&mut self, module: ModuleId, item: &Item, path: &str) {
        let Some(shown) = shown(item) else {
            return;
        };
        let own = name_of(item).map(|name| (module, name.to_string()));
        let blocks = own.and_then(|own| self.blocks.get(&own));
        let items: Vec<Item> = [shown]
            .into_iter()
            .chain(blocks.cloned().into_iter().flatten())
            .collect();
        let printed = prettyplease::unparse(&syn::File {
            shebang: None,
            frontmatter: None,
            attrs: Vec::new(),
            items,
        });
        self.insert(path, printed);
    }

    fn insert(&mut self, path: &str, printed: String) {
        self.modules
            .entry(path.to_owned())
            .or_default()
            .insert(printed);
    }
}

/// What is public of the blocks `impl` of a crate, by the type.
fn blocks(krate: &Crate) -> BTreeMap<TypeId, Vec<Item>> {
    let mut blocks: BTreeMap<TypeId, Vec<Item>> = BTreeMap::new();
    for (id, module) in krate.modules.iter().enumerate() {
        for item in &module.code {
            if let Item::Impl(block) = item
                && let Some(of) = type_of(krate, id, &block.self_ty)
                && let Some(block) = shown_block(block)
            {
                blocks.entry(of).or_default().push(block);
            }
        }
    }
    for blocks in blocks.values_mut() {
        blocks.sort_by_cached_key(|block| quote::quote!(#block).to_string());
    }
    blocks
}

fn is_shown(visibility: &syn::Visibility, attrs: &[Attribute]) -> bool {
    is_public(visibility) && !is_hidden(attrs) && !is_of_tests(attrs)
}

/// Keeps the attributes that users notice.
fn strip(attrs: &mut Vec<Attribute>) {
    attrs.retain(|attr| {
        [
            "derive",
            "non_exhaustive",
            "must_use",
            "cfg",
            "macro_export",
        ]
        .iter()
        .any(|name| attr.path().is_ident(name))
    });
}

fn strip_fields(fields: &mut Fields) {
    for field in fields.iter_mut() {
        strip(&mut field.attrs);
    }
}

/// A public item without what only its crate sees; `None` if that is all of it.
fn shown(item: &Item) -> Option<Item> {
    let mut item = item.clone();
    let is_shown = match &mut item {
        Item::Const(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            item.expr = parse_quote!(_);
            is_shown
        }
        Item::Static(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            item.expr = parse_quote!(_);
            is_shown
        }
        Item::Enum(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            for variant in &mut item.variants {
                strip(&mut variant.attrs);
                strip_fields(&mut variant.fields);
            }
            is_shown
        }
        Item::Fn(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            item.block = parse_quote!({});
            is_shown
        }
        Item::Struct(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            strip_fields(&mut item.fields);
            item.fields = match std::mem::replace(&mut item.fields, Fields::Unit) {
                Fields::Named(mut fields) => {
                    fields.named = fields
                        .named
                        .into_iter()
                        .filter(|field| is_public(&field.vis))
                        .collect();
                    Fields::Named(fields)
                }
                other => other,
            };
            is_shown
        }
        Item::Trait(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            for member in &mut item.items {
                match member {
                    TraitItem::Fn(member) => {
                        strip(&mut member.attrs);
                        member.default = member.default.take().map(|_| parse_quote!({}));
                    }
                    TraitItem::Const(member) => strip(&mut member.attrs),
                    TraitItem::Type(member) => strip(&mut member.attrs),
                    _ => {}
                }
            }
            is_shown
        }
        Item::Type(item) => {
            let is_shown = is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            is_shown
        }
        Item::Macro(item) => {
            let is_hidden = is_hidden(&item.attrs) || is_of_tests(&item.attrs);
            strip(&mut item.attrs);
            let is_exported = item
                .attrs
                .iter()
                .any(|attr| attr.path().is_ident("macro_export"));
            if is_exported {
                item.mac.tokens = quote::quote!(() => {};);
            }
            !is_hidden && (is_exported || item.ident.is_none())
        }
        _ => false,
    };
    is_shown.then_some(item)
}

/// What users see of a block: public methods, or that a trait is implemented.
fn shown_block(block: &syn::ItemImpl) -> Option<Item> {
    if is_of_tests(&block.attrs) || is_hidden(&block.attrs) {
        return None;
    }
    let mut block = block.clone();
    strip(&mut block.attrs);
    let is_of_trait = block.trait_.is_some();
    block.items.retain_mut(|item| match item {
        ImplItem::Fn(method) => {
            let is_shown = !is_of_trait && is_shown(&method.vis, &method.attrs);
            strip(&mut method.attrs);
            method.block = parse_quote!({});
            is_shown
        }
        ImplItem::Const(item) => {
            let is_shown = !is_of_trait && is_shown(&item.vis, &item.attrs);
            strip(&mut item.attrs);
            item.expr = parse_quote!(_);
            is_shown
        }
        ImplItem::Type(item) => {
            strip(&mut item.attrs);
            true
        }
        _ => false,
    });
    (is_of_trait || !block.items.is_empty()).then_some(Item::Impl(block))
}

#[test]
fn public_items_are_as_listed() {
    for library in libraries() {
        let krate = Crate::read(&library.source.join("lib.rs"));
        let name = library.name.replace('/', "-");
        insta::assert_snapshot!(name.clone(), Listing::of(&name, &krate));
    }
}
