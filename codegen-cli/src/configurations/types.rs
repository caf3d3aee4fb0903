//! The types of fields as builders take them: containers by their tokens, which the macros make rustc verify, and what is
//! in them by resolving paths.

use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Type};

use crate::source::unraw;

/// The types that have the same name everywhere.
const PLAIN: [&str; 15] = [
    "String", "bool", "char", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64",
    "usize", "f32", "f64",
];

/// The outermost part of a type.
pub(super) enum Part<'a> {
    /// `Option` or `Box`, which have the JSON of what they hold.
    Transparent(&'a Type),
    /// A list or a set.
    List(&'a Type),
    /// A map, with the types of keys and values.
    Map(&'a Type, &'a Type),
    /// A type without parameters.
    Named(&'a syn::Path),
    /// Another form.
    Other,
}

impl<'a> Part<'a> {
    pub(super) fn of(ty: &'a Type) -> Part<'a> {
        let path = match ty {
            Type::Group(group) => return Part::of(&group.elem),
            Type::Paren(paren) => return Part::of(&paren.elem),
            Type::Path(path) if path.qself.is_none() => &path.path,
            _ => return Part::Other,
        };
        let Some(last) = path.segments.last() else {
            return Part::Other;
        };
        let generics = match &last.arguments {
            PathArguments::None => return Part::Named(path),
            PathArguments::AngleBracketed(generics) => generics,
            PathArguments::Parenthesized(_) => return Part::Other,
        };
        let types = generics.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        });
        let types: Vec<&Type> = types.collect();
        match (last.ident.to_string().as_str(), types.as_slice()) {
            ("Option" | "Box", [inner]) => Part::Transparent(inner),
            ("Vec" | "VecDeque" | "BTreeSet" | "HashSet", [inner, ..]) => Part::List(inner),
            ("BTreeMap" | "HashMap" | "SortedMap", [key, inner, ..]) => Part::Map(key, inner),
            _ => Part::Other,
        }
    }
}

/// The type inside of options and boxes.
pub(super) fn value_of(ty: &Type) -> &Type {
    match Part::of(ty) {
        Part::Transparent(inner) => value_of(inner),
        _ => ty,
    }
}

/// The types in the containers of a type that are no containers.
pub(super) fn leaves(ty: &Type) -> Vec<&Type> {
    match Part::of(ty) {
        Part::Transparent(inner) | Part::List(inner) | Part::Map(_, inner) => leaves(inner),
        Part::Named(_) | Part::Other => vec![ty],
    }
}

/// The name of a type that has the same one everywhere.
pub(super) fn plain_name(ty: &Type) -> Option<&'static str> {
    let Part::Named(path) = Part::of(ty) else {
        return None;
    };
    let name = path.get_ident()?;
    PLAIN.into_iter().find(|plain| name == plain)
}

/// Whether the type is a `String`.
pub(super) fn is_text(ty: &Type) -> bool {
    plain_name(ty) == Some("String")
}

/// The names of a path.
pub(super) fn names(path: &syn::Path) -> Vec<String> {
    let segments = path.segments.iter();
    segments.map(|segment| unraw(&segment.ident)).collect()
}

/// Whether an attribute of serde's has one of these words.
pub(super) fn has_serde_word(attributes: &[syn::Attribute], words: &[&str]) -> bool {
    fn has_word(tokens: proc_macro2::TokenStream, words: &[&str]) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => words.iter().any(|word| ident == word),
            _ => false,
        })
    }
    let mut attributes = attributes.iter();
    attributes.any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("serde") => {
            has_word(list.tokens.clone(), words)
        }
        _ => false,
    })
}

/// A type's tokens as text.
pub(super) fn text_of(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}
