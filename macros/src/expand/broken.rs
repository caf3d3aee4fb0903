//! Expansions of items with errors: the type, with traits that do nothing. They never run, since the errors end the
//! build.

use apiloom_model::ApiType;
use apiloom_model::api::Conversion;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, DeriveInput, Path, Token, parse_quote};

use super::{checked, derives, fields};

/// A root with errors.
pub(crate) fn kind(item: &DeriveInput) -> TokenStream {
    let (bare, resource) = (bare(item), derived_kind(item));
    quote!(#bare #resource)
}

/// The additions of `#[derive(Resource)]` to a root with errors.
pub(crate) fn derived_kind(item: &DeriveInput) -> TokenStream {
    let name = &item.ident;
    if !item.generics.params.is_empty() {
        return TokenStream::new();
    }
    quote! {
        // Its scope may be the error.
        #[automatically_derived]
        impl ::apiloom::codegen::NamespacedKind for #name {}
        #[automatically_derived]
        impl ::apiloom::codegen::ClusterKind for #name {}
        #[automatically_derived]
        impl ::apiloom::codegen::Resource for #name {
            const GROUP: &'static str = "";
            const VERSION: &'static str = "";
            const KIND: &'static str = "";
            const PLURAL: &'static str = "";
            fn definition() -> ::apiloom::codegen::ResourceDef { ::core::unimplemented!() }
            fn metadata(&self) -> &::apiloom::codegen::ObjectMeta { ::core::unimplemented!() }
            fn metadata_mut(&mut self) -> &mut ::apiloom::codegen::ObjectMeta { ::core::unimplemented!() }
        }
    }
}

/// A type with errors, with the fields that columns and conversions may name.
pub(crate) fn api_type(item: &DeriveInput, model: Option<&ApiType>) -> TokenStream {
    let bare = bare(item);
    let known = match model {
        _ if !item.generics.params.is_empty() => TokenStream::new(),
        Some(ApiType::Struct(model)) => {
            let (fields, names) = (fields::impl_has_fields(model), checked::names(model));
            let conversions = conversions(item, &model.conversions);
            quote!(#fields #names #conversions)
        }
        Some(ApiType::Enum(model)) => {
            let column = fields::impl_column_value(model);
            let conversions = conversions(item, &model.conversions);
            quote!(#column #conversions)
        }
        Some(ApiType::Newtype(model)) => fields::newtype_column_value(model),
        None => TokenStream::new(),
    };
    quote!(#bare #known)
}

fn conversions(item: &DeriveInput, conversions: &[Conversion]) -> TokenStream {
    let name = &item.ident;
    let derived = conversions
        .iter()
        .filter(|conversion| !conversion.manual && name != &conversion.peer.text());
    let both = derived.map(|conversion| {
        let peer = &conversion.peer;
        let one = |from: &dyn ToTokens, to: &dyn ToTokens| {
            quote! {
                #[automatically_derived]
                impl ::apiloom::codegen::ConvertFrom<#from> for #to {
                    fn convert_from(_: #from) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                        ::core::unimplemented!()
                    }
                }
            }
        };
        let (there, back) = (one(name, peer), one(peer, name));
        quote!(#there #back)
    });
    both.collect()
}

/// Whether the user lists a derive of this name.
pub(crate) fn derives(item: &DeriveInput, name: &str) -> bool {
    let mut paths = item.attrs.iter().flat_map(derived);
    paths.any(|path| is_named(&path, &[name]))
}

fn derived(attribute: &Attribute) -> Vec<Path> {
    if !attribute.path().is_ident("derive") {
        return Vec::new();
    }
    let paths = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
    paths.map(Vec::from_iter).unwrap_or_default()
}

fn is_named(path: &Path, names: &[&str]) -> bool {
    let last = path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// The item with the user's own derives and with the additions of `#[api]`.
fn bare(item: &DeriveInput) -> TokenStream {
    // Derived with field types that are not API types, these would fail for every such field.
    const REPLACED: [&str; 3] = ["Serialize", "Deserialize", "JsonSchema"];
    let mut bare = derives::stripped(item);
    for attrs in derives::all_attributes(&mut bare) {
        attrs.retain(|a| !a.path().is_ident("serde") && !a.path().is_ident("schemars"));
    }
    for attribute in &mut bare.attrs {
        let paths = derived(attribute);
        if !paths.is_empty() {
            let kept = paths.iter().filter(|path| !is_named(path, &REPLACED));
            *attribute = parse_quote!(#[derive(#(#kept),*)]);
        }
    }
    let traits = if item.generics.params.is_empty() {
        traits(item)
    } else {
        TokenStream::new()
    };
    quote!(#bare #traits)
}

fn traits(item: &DeriveInput) -> TokenStream {
    let (name, text) = (&item.ident, item.ident.to_string());
    let all = [
        (
            "Clone",
            quote! {
                impl ::core::clone::Clone for #name {
                    fn clone(&self) -> Self { ::core::unimplemented!() }
                }
            },
        ),
        (
            "PartialEq",
            quote! {
                impl ::core::cmp::PartialEq for #name {
                    fn eq(&self, _: &Self) -> bool { ::core::unimplemented!() }
                }
            },
        ),
        (
            "Debug",
            quote! {
                impl ::core::fmt::Debug for #name {
                    fn fmt(&self, _: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result { ::core::unimplemented!() }
                }
            },
        ),
    ];
    let missing = all.into_iter().filter(|(name, _)| !derives(item, name));
    let missing: TokenStream = missing
        .map(|(_, code)| quote!(#[automatically_derived] #code))
        .collect();
    quote! {
        #missing
        #[automatically_derived]
        impl ::apiloom::codegen::serde::Serialize for #name {
            fn serialize<S: ::apiloom::codegen::serde::Serializer>(&self, _: S) -> ::core::result::Result<S::Ok, S::Error> {
                ::core::unimplemented!()
            }
        }
        #[automatically_derived]
        impl<'de> ::apiloom::codegen::serde::Deserialize<'de> for #name {
            fn deserialize<D: ::apiloom::codegen::serde::Deserializer<'de>>(_: D) -> ::core::result::Result<Self, D::Error> {
                ::core::unimplemented!()
            }
        }
        #[automatically_derived]
        impl ::apiloom::codegen::schemars::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> { ::std::borrow::Cow::Borrowed(#text) }
            fn json_schema(_: &mut ::apiloom::codegen::schemars::SchemaGenerator) -> ::apiloom::codegen::schemars::Schema {
                ::core::unimplemented!()
            }
        }
        #[automatically_derived]
        impl ::apiloom::codegen::ApiType for #name {
            // A type that uses this one may have numbers: its error would not be the user's.
            const PROTOBUF: ::core::option::Option<::apiloom::codegen::ProtobufType> =
                ::core::option::Option::Some(::apiloom::codegen::ProtobufType::RawExtension);
        }
    }
}
