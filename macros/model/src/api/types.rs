//! What the tokens of a type say it is. Other names for types hide it: those the macros let rustc find.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Type};

use super::Shape;
use crate::diagnostics::DiagnosticId as Id;
use crate::{Code, Diagnostics, SourceSpan};

/// The outermost part of a type.
enum Part<'a> {
    Option(&'a Type),
    Pointer(&'a Type),
    List(&'a Type),
    /// A map with values of this type.
    Map(&'a Type),
    Other,
}

impl<'a> Part<'a> {
    fn of(ty: &'a Type) -> Self {
        let path = match ty {
            Type::Group(group) => return Self::of(&group.elem),
            Type::Paren(paren) => return Self::of(&paren.elem),
            Type::Path(path) => &path.path,
            _ => return Self::Other,
        };
        let Some(last) = path.segments.last() else {
            return Self::Other;
        };
        let PathArguments::AngleBracketed(generics) = &last.arguments else {
            return Self::Other;
        };
        let types: Vec<&Type> = generics
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
            .collect();
        match (last.ident.to_string().as_str(), types.as_slice()) {
            ("Option", [inner]) => Self::Option(inner),
            ("Box", [inner]) => Self::Pointer(inner),
            ("Vec" | "VecDeque" | "BTreeSet" | "HashSet", [inner, ..]) => Self::List(inner),
            ("BTreeMap" | "HashMap", [_, inner, ..]) => Self::Map(inner),
            _ => Self::Other,
        }
    }

    /// The type of what is inside.
    fn inner(&self) -> Option<&'a Type> {
        match self {
            Self::Option(inner) | Self::Pointer(inner) | Self::List(inner) | Self::Map(inner) => {
                Some(inner)
            }
            Self::Other => None,
        }
    }
}

/// What the last segment of a type says it is.
pub(super) fn shape_of(ty: &Type) -> Shape {
    match Part::of(ty) {
        Part::Option(inner) => Shape::Option(Code::new(inner)),
        Part::List(_) => Shape::List,
        Part::Map(_) => Shape::Map,
        Part::Pointer(_) | Part::Other => Shape::Other,
    }
}

/// The type with the name of the item in place of `Self`, which means something else where expansions repeat the type.
pub(super) fn without_self(ty: &Type, item: &Ident) -> Type {
    fn replace(tokens: TokenStream, item: &Ident) -> TokenStream {
        let replaced = tokens.into_iter().map(|token| match token {
            TokenTree::Ident(word) if word == "Self" => {
                TokenTree::Ident(Ident::new(&item.to_string(), word.span()))
            }
            TokenTree::Group(group) => {
                let mut inner =
                    proc_macro2::Group::new(group.delimiter(), replace(group.stream(), item));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        });
        replaced.collect()
    }
    syn::parse2(replace(ty.to_token_stream(), item)).unwrap_or_else(|_| ty.clone())
}

/// Reports an `Option` that stands anywhere but outermost: null is no element, and what is absent is not absent twice.
pub(super) fn check_options(ty: &Type, d: &mut Diagnostics) {
    let outer = Part::of(ty);
    let Some(inner) = outer.inner() else { return };
    if let Part::Option(value) = Part::of(inner) {
        let (message, help) = match outer {
            Part::Option(_) => (
                "what is absent is not absent twice".to_owned(),
                "write one `Option`".to_owned(),
            ),
            Part::Pointer(_) => (
                "this `Option` is hidden in a `Box`".to_owned(),
                format!("write `Option<Box<{}>>`", Code::new(value).text()),
            ),
            Part::Map(_) => (
                "null is no value of a map".to_owned(),
                "write the type without `Option`: a key without a value is left out".to_owned(),
            ),
            _ => (
                "null is no element of a list".to_owned(),
                "write the type without `Option`: what is absent is left out".to_owned(),
            ),
        };
        d.error(Id::NestedOption, SourceSpan::of(inner), message)
            .help(help);
    }
    check_options(inner, d);
}

/// Reports an `Option` as what a variant holds.
pub(super) fn check_variant_value(ty: &Type, d: &mut Diagnostics) {
    if matches!(Part::of(ty), Part::Option(_)) {
        d.error(
            Id::NestedOption,
            SourceSpan::of(ty),
            "a variant that is chosen has a value",
        )
        .help("write the type without `Option`, or a variant without a value");
    }
    check_options(ty, d);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(ty: &str) -> String {
        Code::new(&syn::parse_str::<Type>(ty).expect("a type")).text()
    }

    // Issue 10, point 10.
    #[test]
    fn self_is_the_item() {
        let ty: Type = syn::parse_str("Option<Box<Self>>").expect("a type");
        let item = syn::parse_str("Node").expect("a name");
        let ty = without_self(&ty, &item);
        assert_eq!(Code::new(&ty).text(), text("Option<Box<Node>>"));
    }
}
