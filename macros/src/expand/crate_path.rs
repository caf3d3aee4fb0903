//! Replaces `::apiloom::codegen` in an expansion by the path that the user set with `crate = ..`.
//!
//! One pass over the tokens of a finished expansion: expansions without the key are emitted as they are.

use apiloom_model::Code;
use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};

/// The path in expansions, token by token, and as it is spelled in strings.
const PATH: [&str; 6] = [":", ":", "apiloom", ":", ":", "codegen"];
const TEXT: [&str; 2] = ["::apiloom::codegen", ":: apiloom :: codegen"];

/// The expansion with another path. `name` makes the import of the path unique in its module.
///
/// The path is imported once, so that a wrong one is one error, at the path.
pub(crate) fn replace(expansion: TokenStream, path: Option<Code>, name: &str) -> TokenStream {
    let Some(path) = path else {
        return expansion;
    };
    let place = Span::call_site().located_at(path.span().end);
    let alias = format_ident!("__apiloom_{name}", span = place);
    let expansion = replaced(expansion, &alias);
    let import = quote_spanned!(place=> use #path::codegen as #alias;);
    quote! {
        #[allow(unused_imports)]
        #import
        #expansion
    }
}

fn replaced(tokens: TokenStream, alias: &Ident) -> TokenStream {
    let mut rest: &[TokenTree] = &tokens.into_iter().collect::<Vec<_>>();
    let mut out = TokenStream::new();
    while let [first, after @ ..] = rest {
        rest = after;
        if begins_with_path(first, after) {
            let mut alias = alias.clone();
            alias.set_span(alias.span().located_at(first.span()));
            out.extend([TokenTree::Ident(alias)]);
            rest = &after[PATH.len() - 1..];
            continue;
        }
        out.extend([match first {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replaced(group.stream(), alias));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            TokenTree::Literal(literal) => TokenTree::Literal(replaced_text(literal, alias)),
            other => other.clone(),
        }]);
    }
    out
}

fn begins_with_path(first: &TokenTree, after: &[TokenTree]) -> bool {
    let tokens = std::iter::once(first).chain(after);
    after.len() + 1 >= PATH.len()
        && tokens
            .zip(PATH)
            .all(|(token, expected)| token.to_string() == expected)
}

/// Paths in strings: the arguments of serde's and schemars' attributes.
fn replaced_text(literal: &Literal, alias: &Ident) -> Literal {
    let text = literal.to_string();
    let Some(path) = TEXT.into_iter().find(|path| text.contains(path)) else {
        return literal.clone();
    };
    let replaced = text.replace(path, &alias.to_string());
    let Ok(mut out) = replaced.parse::<Literal>() else {
        return literal.clone();
    };
    out.set_span(literal.span());
    out
}

#[cfg(test)]
mod tests {
    use apiloom_model::Diagnostics;
    use syn::{DeriveInput, parse_quote};

    use crate::expand;

    fn expanded(
        item: &DeriveInput,
        expand: fn(&DeriveInput, &mut Diagnostics) -> proc_macro2::TokenStream,
    ) -> String {
        let expansion = expand(item, &mut Diagnostics::default());
        expand::with_crate_path(expansion, item, "test").to_string()
    }

    #[track_caller]
    fn assert_replaced(expansion: &str, import: &str) {
        assert!(expansion.contains(import), "{expansion}");
        assert!(!expansion.contains("apiloom ::"), "{expansion}");
        assert!(!expansion.contains("apiloom::"), "{expansion}");
    }

    #[test]
    fn no_expansion_uses_another_path() {
        let kind = parse_quote! {
            #[resource(group = "a.b", version = "v1", cluster, crate = other::meta, spoke_of = v2::A,
                status, printcolumn(name = "N", path = spec.bytes), printcolumn(name = "C", condition = "Ready"))]
            struct A { metadata: ObjectMeta, spec: Spec, status: Option<Vec<u8>> }
        };
        let import = "use other :: meta :: codegen as __apiloom_test_A ;";
        assert_replaced(&expanded(&kind, expand::kind), import);
        assert_replaced(&expanded(&kind, expand::derived_kind), import);
        let kind_with_errors = parse_quote! {
            #[resource(version = "v1", cluster, crate = other::meta)]
            struct A { metadata: ObjectMeta }
        };
        assert_replaced(&expanded(&kind_with_errors, expand::kind), import);

        let item: DeriveInput = parse_quote! {
            #[api(crate = ::other, convert(peer = v1::B))]
            struct B {
                #[api(len = 1..=3, default_with = f, custom = g)] bytes: Vec<u8>,
                list: Vec<C>,
                #[api(range = 1..=3, default = 3)] number: i32,
            }
        };
        let import = "use :: other :: codegen as __apiloom_test_B ;";
        assert_replaced(&expanded(&item, expand::api_type), import);
        let item: DeriveInput = parse_quote! {
            #[api(crate = ::other, convert(peer = v1::B))]
            enum B { A, C(Vec<u8>), D { list: Vec<i32> } }
        };
        assert_replaced(&expanded(&item, expand::api_type), import);
        let item: DeriveInput = parse_quote!(
            #[api(crate = ::other)]
            struct B(Vec<u8>);
        );
        assert_replaced(&expanded(&item, expand::api_type), import);
    }

    #[test]
    fn group_has_the_key_too() {
        let tokens = quote::quote!(
            name = "a.b",
            versions = [v1],
            release = "1.2",
            crate = crate
        );
        let expansion = expand::group(tokens.clone(), &mut Diagnostics::default());
        let expansion = expand::with_crate_path_of_group(expansion, tokens).to_string();
        assert_replaced(&expansion, "use crate :: codegen as __apiloom_group ;");
    }

    #[test]
    fn an_expansion_without_the_key_is_unchanged() {
        let item = parse_quote!(
            #[api]
            struct B {
                list: Vec<i32>,
            }
        );
        let expansion = expand::api_type(&item, &mut Diagnostics::default()).to_string();
        assert!(expansion.contains(":: apiloom :: codegen"));
        assert_eq!(expanded(&item, expand::api_type), expansion);
    }
}
