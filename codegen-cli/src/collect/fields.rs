//! Reports field types without `#[apiloom::api]`: rustc would print a dozen errors, one for each missing trait.
//!
//! Only certain cases are reported. A type that may get a schema from its attributes, derives or macros is left to
//! rustc.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Field, GenericArgument, Item, PathArguments, Type};

use crate::problem::Problem;
use crate::source::{Crate, Definition, Lookup, ModuleId, Namespace};

/// Derives that do not give a type a schema.
const DERIVES: &[&str] = &[
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Deserialize",
    "Eq",
    "Hash",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Serialize",
];

/// Attributes that do not give a type a schema.
const ATTRIBUTES: &[&str] = &[
    "allow",
    "deny",
    "deprecated",
    "doc",
    "expect",
    "must_use",
    "non_exhaustive",
    "repr",
    "schemars",
    "serde",
    "warn",
];

/// Types that have a schema if their contents have one.
const CONTAINERS: &[&str] = &[
    "Arc",
    "BTreeMap",
    "BTreeSet",
    "Box",
    "HashMap",
    "HashSet",
    "Option",
    "Rc",
    "SortedMap",
    "Vec",
];

/// A problem for each type of the crate that is used in a field of the item and is not an API type, unless it was
/// already reported.
pub(super) fn problems(
    krate: &Crate,
    module: ModuleId,
    item: &DeriveInput,
    told: &mut HashSet<(ModuleId, String)>,
) -> Vec<Problem> {
    let fields: Vec<&Field> = match &item.data {
        Data::Struct(data) => data.fields.iter().collect(),
        Data::Enum(data) => data.variants.iter().flat_map(|v| &v.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let mut types = Vec::new();
    for field in fields {
        // A field with such an attribute may have the schema of another type.
        let is_other = |attr: &Attribute| {
            ["serde", "schemars"]
                .iter()
                .any(|name| attr.path().is_ident(name))
        };
        if !field.attrs.iter().any(is_other) {
            inner_types(&field.ty, &mut types);
        }
    }
    let mut problems = Vec::new();
    for ty in types {
        let found = krate.behind_alias(krate.resolve(module, &ty.path, Namespace::Type));
        let Lookup::Found(Definition::Item(home, name)) = found else {
            continue;
        };
        let Some(declared) = without_schema(krate, home, &name) else {
            continue;
        };
        if told.insert((home, name.clone())) {
            problems.push(
                Problem::error(format!("`{name}` is not an API type"))
                    .at(krate.locate(module, ty.span()))
                    .related(krate.locate(home, declared), "declared here")
                    .help(format!("put `#[apiloom::api]` on `{name}`")),
            );
        }
    }
    problems
}

/// The types inside containers, or the type itself if it is not a container.
fn inner_types<'a>(ty: &'a Type, into: &mut Vec<&'a syn::TypePath>) {
    match ty {
        Type::Group(group) => inner_types(&group.elem, into),
        Type::Paren(paren) => inner_types(&paren.elem, into),
        Type::Path(path) if path.qself.is_none() => {
            let Some(last) = path.path.segments.last() else {
                return;
            };
            match &last.arguments {
                PathArguments::None => into.push(path),
                PathArguments::AngleBracketed(inner)
                    if CONTAINERS.iter().any(|name| last.ident == name) =>
                {
                    for argument in &inner.args {
                        if let GenericArgument::Type(ty) = argument {
                            inner_types(ty, into);
                        }
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// The name in the declaration of a struct or enum that certainly has no schema.
fn without_schema(krate: &Crate, module: ModuleId, name: &str) -> Option<proc_macro2::Span> {
    let items = &krate.module(module).items;
    let (attrs, ident) = items.iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == name => Some((&item.attrs, &item.ident)),
        Item::Enum(item) if item.ident == name => Some((&item.attrs, &item.ident)),
        _ => None,
    })?;
    let may_have = !attrs.iter().all(gives_no_schema)
        || krate
            .modules()
            .flat_map(|(_, module)| &module.items)
            .any(|item| may_describe(item, name));
    (!may_have).then(|| ident.span())
}

fn gives_no_schema(attr: &Attribute) -> bool {
    if !attr.path().is_ident("derive") {
        return ATTRIBUTES.iter().any(|name| attr.path().is_ident(name));
    }
    let mut is_known = true;
    let parsed = attr.parse_nested_meta(|meta| {
        let last = meta.path.segments.last();
        is_known &= last.is_some_and(|last| DERIVES.iter().any(|name| last.ident == name));
        Ok(())
    });
    parsed.is_ok() && is_known
}

/// Whether an item may give the type a schema: an `impl JsonSchema`, also inside a body, or a macro that is given the
/// type.
fn may_describe(item: &Item, name: &str) -> bool {
    match item {
        Item::Macro(item) => has_ident(item.mac.tokens.clone(), name),
        Item::Impl(_) | Item::Const(_) | Item::Static(_) | Item::Fn(_) | Item::Verbatim(_) => {
            let tokens = item.to_token_stream();
            has_ident(tokens.clone(), "JsonSchema") && has_ident(tokens, name)
        }
        _ => false,
    }
}

fn has_ident(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => has_ident(group.stream(), name),
        _ => false,
    })
}
