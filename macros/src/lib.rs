//! The macros: each parses into the model, collects every error, and emits a thin call to `apiloom::codegen`.
//!
//! The macros are documented in the crate `apiloom`, where examples can use the runtime.

mod expand;

use apiloom_model::Diagnostics;
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Attribute, DeriveInput, parse_quote};

/// Declares a kind on its root struct: see the guide in the crate `apiloom`.
#[proc_macro_attribute]
pub fn resource(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args.into(), item.into(), "resource", expand::kind)
}

/// Declares a type inside objects: see the guide in the crate `apiloom`.
#[proc_macro_attribute]
pub fn api(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args.into(), item.into(), "api", expand::api_type)
}

/// Declares a kind on a root struct with its own serde and schemars derives.
#[proc_macro_derive(Resource, attributes(resource))]
pub fn derive_resource(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error().into(),
    };
    let mut diagnostics = Diagnostics::default();
    let expansion = expand::derived_kind(&item, &mut diagnostics);
    let expansion = expand::with_crate_path(expansion, &item, "derive");
    let errors = diagnostics.to_compile_errors();
    quote!(#expansion #errors).into()
}

/// Declares an API group: its name, its versions with the preferred one first, the release that lifecycles compare with.
#[proc_macro]
pub fn group(tokens: TokenStream) -> TokenStream {
    let mut diagnostics = Diagnostics::default();
    let tokens = Tokens::from(tokens);
    let expansion = expand::group(tokens.clone(), &mut diagnostics);
    let expansion = expand::with_crate_path_of_group(expansion, tokens);
    let errors = diagnostics.to_compile_errors();
    quote!(#expansion #errors).into()
}

/// Makes a test of an asynchronous function, with a server of its own: see the crate `apiloom`.
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::test(args.into(), item.into()).into()
}

/// Reattaches the arguments as an attribute, so that macros and generator read the same item, and expands it.
fn attribute(
    args: Tokens,
    item: Tokens,
    name: &str,
    expand: fn(&DeriveInput, &mut Diagnostics) -> Tokens,
) -> TokenStream {
    let parsed: syn::Result<DeriveInput> = syn::parse2(item.clone());
    let mut item = match parsed {
        Ok(item) => item,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error).into();
        }
    };
    let path = syn::Ident::new(name, proc_macro2::Span::call_site());
    let own: Attribute = if args.is_empty() {
        parse_quote!(#[#path])
    } else {
        parse_quote!(#[#path(#args)])
    };
    item.attrs.insert(0, own);
    let mut diagnostics = Diagnostics::default();
    let expansion = expand(&item, &mut diagnostics);
    let expansion = expand::with_crate_path(expansion, &item, name);
    let errors = diagnostics.to_compile_errors();
    quote!(#expansion #errors).into()
}
