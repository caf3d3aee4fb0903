//! Classifies types by their tokens. Aliases hide a type's shape: the macros make rustc detect them.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Type};

use super::{Field, Rules, Shape};
use crate::args::{Arg, Args};
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
            ("BTreeMap" | "HashMap" | "SortedMap", [_, inner, ..]) => Self::Map(inner),
            _ => Self::Other,
        }
    }

    /// The type of the contents.
    fn inner(&self) -> Option<&'a Type> {
        match self {
            Self::Option(inner) | Self::Pointer(inner) | Self::List(inner) | Self::Map(inner) => {
                Some(inner)
            }
            Self::Other => None,
        }
    }
}

/// The shape of a type by its last segment.
pub(super) fn shape_of(ty: &Type) -> Shape {
    match Part::of(ty) {
        Part::Option(inner) => Shape::Option(Code::new(inner)),
        Part::List(_) => Shape::List,
        Part::Map(_) => Shape::Map,
        Part::Pointer(_) | Part::Other => Shape::Other,
    }
}

/// The type with `Self` replaced by the item's name, since `Self` has another meaning where expansions repeat the type.
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

/// Reports `present` on a field that is always present, or left out when it is empty.
pub(super) fn check_present(field: &Field, args: &Args, d: &mut Diagnostics) {
    let can_be_absent = match field.shape {
        Shape::List | Shape::Map => true,
        Shape::Option(_) => field.rules.nullable || args.has("nullable"),
        Shape::Other => field.default.is_some(),
    };
    if let Some(arg) = args.find("present").filter(|_| !can_be_absent) {
        let (text, help) = match field.shape {
            Shape::Option(_) => (
                "is an `Option`, which is left out when it is `None`",
                "write the type without `Option`, or add `nullable` if null is a value of its own",
            ),
            _ => (
                "is always present",
                "leave `present` out: it is for lists, maps, values that may be null and values with a default",
            ),
        };
        d.error(
            Id::Contradiction,
            arg.span(),
            format!("`{}` {text}", field.name.text),
        )
        .help(help);
    }
}

/// Reports an `Option` that is not outermost: null cannot be an element, and an absent value cannot be absent twice.
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

/// Reports an `Option` as the content of a variant.
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

fn is_bytes(ty: &Type) -> bool {
    let is_u8 = |ty: &Type| matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "u8"));
    match (Part::of(ty), Code::new(ty).text().contains("Vec")) {
        (Part::List(inner), true) => is_vec(ty) && is_u8(inner),
        _ => false,
    }
}

fn is_vec(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_vec(&group.elem),
        Type::Paren(paren) => is_vec(&paren.elem),
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "Vec"),
        _ => false,
    }
}

fn contains_bytes(ty: &Type) -> bool {
    is_bytes(ty) || Part::of(ty).inner().is_some_and(contains_bytes)
}

/// Whether a type is or contains `Vec<u8>`, which is base64 text on the wire.
pub fn holds_bytes(ty: &Code) -> bool {
    syn::parse2(ty.to_token_stream()).is_ok_and(|ty: Type| contains_bytes(&ty))
}

/// A type that is not a container of the standard library.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The type.
    pub ty: Code,
    /// Whether it is inside a container.
    pub nested: bool,
}

/// The innermost type of nested containers; `None` for primitive types and bytes.
pub fn leaf(ty: &Code) -> Option<Leaf> {
    fn find(ty: &Type, nested: bool) -> Option<Leaf> {
        const PLAIN: [&str; 16] = [
            "String", "bool", "char", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32",
            "u64", "usize", "f32", "f64", "Value",
        ];
        if is_bytes(ty) {
            return None;
        }
        if let Some(inner) = Part::of(ty).inner() {
            return find(inner, true);
        }
        let code = Code::new(ty);
        let plain = PLAIN.contains(&code.text().as_str());
        (!plain).then_some(Leaf { ty: code, nested })
    }
    find(&syn::parse2(ty.to_token_stream()).ok()?, false)
}

/// Rules of lists and strings that do not apply to bytes, which are base64 text.
const NOT_OF_BYTES: [&str; 9] = [
    "items", "list", "unique", "each", "atomic", "len", "bytes", "pattern", "format",
];

/// Reports a rule that does not apply to bytes.
pub(super) fn check_rule_of_bytes(ty: &Type, arg: &Arg, rules: &Rules, d: &mut Diagnostics) {
    let value = value_of(ty);
    let wrong = if is_bytes(value) {
        NOT_OF_BYTES.contains(&arg.key)
    } else {
        let element = Part::of(value).inner().map(value_of);
        arg.key == "each"
            && element.is_some_and(contains_bytes)
            && rules
                .each
                .as_deref()
                .zip(element)
                .is_some_and(|(each, element)| judges_bytes(element, each))
    };
    if wrong {
        d.error(
            Id::RuleOfBytes,
            arg.span(),
            format!(
                "`{}` has nothing to judge here: bytes are base64 text on the wire",
                arg.written.text
            ),
        )
        .help("check bytes with `custom = function`; a list of numbers is a `Vec<u16>`");
    }
}

/// The type inside options and boxes.
fn value_of(ty: &Type) -> &Type {
    match Part::of(ty) {
        Part::Option(inner) | Part::Pointer(inner) => value_of(inner),
        _ => ty,
    }
}

/// Whether rules of elements treat bytes as a list or a string.
fn judges_bytes(ty: &Type, rules: &Rules) -> bool {
    let said = |bounds: &super::Bounds| bounds.min.is_some() || bounds.max.is_some();
    if is_bytes(ty) {
        return said(&rules.items)
            || said(&rules.len)
            || said(&rules.bytes)
            || rules.list.is_some()
            || rules.unique
            || rules.atomic
            || rules.each.is_some()
            || rules.pattern.is_some()
            || rules.format.is_some();
    }
    let inner = Part::of(ty).inner().map(value_of);
    rules
        .each
        .as_deref()
        .zip(inner)
        .is_some_and(|(each, inner)| judges_bytes(inner, each))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(ty: &str) -> Code {
        Code::new(&syn::parse_str::<Type>(ty).expect("a type"))
    }

    #[test]
    fn bytes_are_found_in_containers() {
        for ty in [
            "Vec<u8>",
            "std::vec::Vec<u8>",
            "Option<Vec<u8>>",
            "BTreeMap<String, Vec<u8>>",
            "Option<Box<HashMap<String, Vec<Vec<u8>>>>>",
        ] {
            assert!(holds_bytes(&code(ty)), "{ty}");
        }
        for ty in [
            "Vec<u16>",
            "VecDeque<u8>",
            "[u8; 4]",
            "BTreeMap<Vec<u8>, u8>",
            "Blob",
            "Wrapper<Vec<u8>>",
        ] {
            assert!(!holds_bytes(&code(ty)), "{ty}");
        }
    }

    #[test]
    fn leaves_are_what_containers_hold() {
        let check = |ty: &str, expected: Option<(&str, bool)>| {
            let found = leaf(&code(ty)).map(|leaf| (leaf.ty.text(), leaf.nested));
            let expected = expected.map(|(ty, nested)| (ty.to_owned(), nested));
            assert_eq!(found, expected, "{ty}");
        };
        check("Part", Some(("Part", false)));
        check("Vec<BTreeMap<String, x::Part>>", Some(("x::Part", true)));
        check("SortedMap<String, Part>", Some(("Part", true)));
        check("Vec<u8>", None);
        check("Option<String>", None);
    }

    #[test]
    fn self_is_the_item() {
        let ty: Type = syn::parse_str("Option<Box<Self>>").expect("a type");
        let item = syn::parse_str("Node").expect("a name");
        let ty = without_self(&ty, &item);
        assert_eq!(Code::new(&ty).text(), code("Option<Box<Node>>").text());
    }
}
