//! The names that `use` and `extern crate` bring into a module.

use proc_macro2::Span;
use syn::spanned::Spanned;

/// A name brought into a module, or all names of another module (`name` is `None`).
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) global: bool,
    /// The span of the name in the `use`.
    pub(crate) span: Span,
    /// Whether it is `pub`.
    pub(crate) public: bool,
    /// Whether the whole crate can use it through the module that imports it.
    pub(super) visible: bool,
}

impl Import {
    /// `extern crate x as y;` in a module of this path.
    pub(super) fn extern_crate(item: &syn::ItemExternCrate, module: &[String]) -> Import {
        let name = item
            .rename
            .as_ref()
            .map_or(&item.ident, |(_, rename)| rename);
        Import {
            name: Some(unraw(name)),
            path: vec![unraw(&item.ident)],
            global: item.ident != "self",
            span: item.span(),
            public: matches!(item.vis, syn::Visibility::Public(_)),
            visible: reachable(&item.vis, module),
        }
    }

    /// Adds one import per leaf of a `use` tree in a module of this path.
    pub(super) fn flatten(item: &syn::ItemUse, module: &[String], into: &mut Vec<Import>) {
        let seed = Import {
            name: None,
            path: Vec::new(),
            global: item.leading_colon.is_some(),
            span: item.span(),
            public: matches!(item.vis, syn::Visibility::Public(_)),
            visible: reachable(&item.vis, module),
        };
        flatten_tree(&item.tree, &seed, into);
    }
}

fn flatten_tree(tree: &syn::UseTree, prefix: &Import, into: &mut Vec<Import>) {
    match tree {
        syn::UseTree::Path(path) => {
            let mut prefix = prefix.clone();
            prefix.path.push(unraw(&path.ident));
            flatten_tree(&path.tree, &prefix, into);
        }
        syn::UseTree::Name(name) => into.push(leaf(prefix, &name.ident, &name.ident)),
        syn::UseTree::Rename(rename) => into.push(leaf(prefix, &rename.ident, &rename.rename)),
        syn::UseTree::Glob(_) => into.push(prefix.clone()),
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                flatten_tree(tree, prefix, into);
            }
        }
    }
}

/// Resolves a leaf of the tree: `a::b` as `b`; `a::{self}` is `a` as `a`.
fn leaf(prefix: &Import, ident: &proc_macro2::Ident, name: &proc_macro2::Ident) -> Import {
    let mut import = Import {
        span: name.span(),
        ..prefix.clone()
    };
    let ident_text = unraw(ident);
    let inner_self = ident_text == "self" && !import.path.is_empty();
    if !inner_self {
        import.path.push(ident_text);
    }
    let name = if inner_self && name == "self" {
        import.path.last().cloned()
    } else {
        Some(unraw(name))
    };
    import.name = name;
    import
}

/// Whether the whole crate can name an item of this visibility in `parent`.
pub(crate) fn reachable(visibility: &syn::Visibility, parent: &[String]) -> bool {
    // Items private to the root, or to the parent of a module of the root, are visible in every module.
    match visibility {
        _ if parent.is_empty() => true,
        syn::Visibility::Public(_) => true,
        syn::Visibility::Restricted(restricted) if restricted.path.is_ident("super") => {
            parent.len() == 1
        }
        syn::Visibility::Restricted(restricted) => restricted.path.is_ident("crate"),
        syn::Visibility::Inherited => false,
    }
}

/// An identifier without `r#`.
pub(crate) fn unraw(ident: &proc_macro2::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}
