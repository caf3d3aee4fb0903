//! What is read from an item beside our own keys: attributes, doc comments, derives, serde's names.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::diagnostics::DiagnosticId as Id;
use crate::{Diagnostics, SourceSpan, Spanned};

/// Whether the attribute is `#[NAME]` or `#[apiloom::NAME]`.
pub fn is_attribute(attribute: &Attribute, name: &str) -> bool {
    let segments: Vec<String> = attribute
        .path()
        .segments
        .iter()
        .map(|s| s.ident.to_string())
        .collect();
    match segments.as_slice() {
        [only] => only == name,
        [first, second] => first == "apiloom" && second == name,
        _ => false,
    }
}

/// Who writes the serde and schemars derives of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Our attribute macros do, with attributes of their own.
    Attribute,
    /// The user does; ours is `#[derive(Resource)]` alone.
    Derive,
}

/// The doc comment as plain text: lines joined, one leading space of each removed.
pub(crate) fn description(attrs: &[Attribute]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for attribute in attrs.iter().filter(|a| a.path().is_ident("doc")) {
        let Meta::NameValue(meta) = &attribute.meta else {
            continue;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &meta.value
        else {
            continue;
        };
        lines.extend(
            text.value()
                .split('\n')
                .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
        );
    }
    lines.join("\n").trim().to_owned()
}

/// The last segments of the derives on an item.
pub(crate) fn derives(attrs: &[Attribute]) -> Vec<String> {
    let mut names = Vec::new();
    for attribute in attrs.iter().filter(|a| a.path().is_ident("derive")) {
        // What is not a list of paths is rustc's to report.
        let _ = attribute.parse_nested_meta(|meta| {
            names.extend(
                meta.path
                    .segments
                    .last()
                    .map(|segment| segment.ident.to_string()),
            );
            Ok(())
        });
    }
    names
}

/// A key inside `#[serde(..)]` or `#[schemars(..)]`.
struct ForeignKey {
    attribute: &'static str,
    name: String,
    text: Option<Spanned<String>>,
    span: SourceSpan,
}

fn foreign_keys(attrs: &[Attribute]) -> Vec<ForeignKey> {
    let mut keys = Vec::new();
    for (attribute, owner) in attrs
        .iter()
        .flat_map(|a| ["serde", "schemars"].map(|owner| (a, owner)))
    {
        if !attribute.path().is_ident(owner) {
            continue;
        }
        // What serde and schemars cannot read, they report themselves.
        let _ = attribute.parse_nested_meta(|meta| {
            let name = meta
                .path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            let span = SourceSpan::of(&meta.path);
            let mut text = None;
            if meta.input.peek(syn::Token![=]) {
                if let Expr::Lit(ExprLit {
                    lit: Lit::Str(value),
                    ..
                }) = meta.value()?.parse::<Expr>()?
                {
                    text = Some(Spanned::new(value.value(), value.span()));
                }
            } else if meta.input.peek(syn::token::Paren) {
                let inner;
                syn::parenthesized!(inner in meta.input);
                inner.parse::<proc_macro2::TokenStream>()?;
            }
            keys.push(ForeignKey {
                attribute: owner,
                name,
                text,
                span,
            });
            Ok(())
        });
    }
    keys
}

/// The name that serde gives a field, when an attribute says so.
pub(crate) fn serde_rename(attrs: &[Attribute]) -> Option<String> {
    let keys = foreign_keys(attrs).into_iter();
    keys.filter(|key| key.attribute == "serde" && key.name == "rename")
        .find_map(|key| key.text)
        .map(|text| text.value)
}

/// Whether serde has this key on the item.
pub(crate) fn has_serde_key(attrs: &[Attribute], name: &str) -> bool {
    foreign_keys(attrs)
        .iter()
        .any(|key| key.attribute == "serde" && key.name == name)
}

/// Serde's `rename_all`.
pub(crate) fn serde_rename_all(attrs: &[Attribute]) -> Option<String> {
    let keys = foreign_keys(attrs).into_iter();
    keys.filter(|key| key.attribute == "serde" && key.name == "rename_all")
        .find_map(|key| key.text)
        .map(|text| text.value)
}

/// serde and schemars keys that work against what `#[api]` adds, and what to write instead.
const FOREIGN: &[(&str, &str)] = &[
    (
        "rename",
        "write `#[api(json = \"..\")]`, so that paths, columns and conversions know the name too",
    ),
    (
        "rename_all",
        "names are camelCase already; write `#[api(json = \"..\")]` for a single one",
    ),
    (
        "default",
        "write `#[api(default = ..)]`; the server applies it, serde never does",
    ),
    (
        "skip_serializing_if",
        "empty options, lists and maps are left out already",
    ),
    ("flatten", "write `#[api(flatten)]`"),
    (
        "deny_unknown_fields",
        "the server reports unknown fields as the client asks for it",
    ),
    ("crate", "`#[api]` gives the crate path"),
];

/// Reports serde and schemars attributes that work against ours.
pub(crate) fn check_foreign(attrs: &[Attribute], d: &mut Diagnostics) {
    for key in foreign_keys(attrs) {
        if let Some((name, advice)) = FOREIGN.iter().find(|(name, _)| key.name == *name) {
            d.error(
                Id::ForeignAttribute,
                key.span,
                format!("`{}({name})` works against `#[api]`", key.attribute),
            )
            .help(*advice);
        }
    }
}
