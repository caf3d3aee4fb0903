//! Searches for kinds where the generator cannot read them: in macro calls, bodies and `cfg_attr`.

use proc_macro2::{Span, TokenStream, TokenTree};

use crate::source::{Crate, Definition, Lookup, ModuleId, Namespace};

/// Finds `#[apiloom::resource ..]` anywhere in the tokens, under all of its names in this module.
pub(super) fn resource_attribute(krate: &Crate, id: ModuleId, tokens: TokenStream) -> Option<Span> {
    let mut hash = false;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) => hash = punct.as_char() == '#',
            TokenTree::Group(group) => {
                if hash && names_resource(krate, id, group.stream()) {
                    return Some(group.span());
                }
                if let Some(span) = resource_attribute(krate, id, group.stream()) {
                    return Some(span);
                }
                hash = false;
            }
            _ => hash = false,
        }
    }
    None
}

/// Whether one of the comma-separated attributes is apiloom's `resource`.
pub(super) fn names_resource_inside(krate: &Crate, id: ModuleId, tokens: &TokenStream) -> bool {
    let mut part = TokenStream::new();
    let comma =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    for token in tokens.clone() {
        if comma(&token) {
            if names_resource(krate, id, std::mem::take(&mut part)) {
                return true;
            }
        } else {
            part.extend([token]);
        }
    }
    names_resource(krate, id, part)
}

fn names_resource(krate: &Crate, id: ModuleId, attribute: TokenStream) -> bool {
    let path: TokenStream = attribute
        .into_iter()
        .take_while(|token| match token {
            TokenTree::Ident(_) => true,
            TokenTree::Punct(punct) => punct.as_char() == ':',
            _ => false,
        })
        .collect();
    let Ok(path) = syn::parse2::<syn::Path>(path) else {
        return false;
    };
    let found = krate.resolve(id, &path, Namespace::Macro);
    found == Lookup::Found(Definition::Apiloom("resource".to_owned()))
}
