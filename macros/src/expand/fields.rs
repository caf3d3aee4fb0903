//! Typed paths: the companion of a type, chains of companions, and the column type of enums.

use apiloom_model::{ApiEnum, ApiNewtype, ApiStruct, Kind, Name};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// `HasFields` with a companion that has one `Field` per field.
pub(crate) fn impl_has_fields(model: &ApiStruct) -> TokenStream {
    let name = model.name.to_ident();
    let companion = format_ident!("__{}Fields", model.name.text);
    let fields = model.fields.iter().map(|field| {
        let (ident, ty) = (field.name.to_ident(), &field.ty);
        quote!(pub #ident: ::apiloom::codegen::Field<#ty>)
    });
    let values = model.fields.iter().map(|field| {
        let ident = field.name.to_ident();
        let json = if field.flatten { "" } else { &field.json_name };
        quote!(#ident: ::apiloom::codegen::Field::new(#json))
    });
    let names = model.fields.iter().map(|field| &field.name.text);
    quote! {
        const _: () = {
            #[allow(missing_docs, missing_debug_implementations, private_interfaces, dead_code, non_snake_case, unreachable_pub)]
            pub struct #companion { #(#fields,)* }
            #[automatically_derived]
            impl ::apiloom::codegen::HasFields for #name {
                type Fields = #companion;
                const FIELDS: &'static #companion = &#companion { #(#values,)* };
                const NAMES: ::core::option::Option<&'static [&'static str]> = ::core::option::Option::Some(&[#(#names),*]);
            }
        };
    }
}

/// The chain `root.a.b` over companions.
pub(crate) fn chain(root: &TokenStream, names: &[Name]) -> TokenStream {
    // The whole chain gets the span of the user's path, so that an error about its value is shown there.
    let span = names.first().map_or_else(Span::call_site, |name| name.span);
    let mut out = quote_spanned!(span=> <#root as ::apiloom::codegen::HasFields>::FIELDS);
    for name in names {
        let ident = name.to_ident();
        out = quote_spanned!(name.span=> #out.#ident);
    }
    out
}

/// The `JsonPath` of a chain of Rust names.
pub(crate) fn json_path(root: &TokenStream, names: &[Name]) -> TokenStream {
    let steps = (1..=names.len()).map(|end| {
        let chain = chain(root, &names[..end]);
        let span = names[end - 1].span;
        quote_spanned!(span=> ::apiloom::codegen::name_of(&#chain))
    });
    quote!(::apiloom::codegen::path(&[#(#steps),*]))
}

/// Lets a column show an enum that is a string.
pub(crate) fn impl_column_value(model: &ApiEnum) -> TokenStream {
    if !model.is_plain() {
        return TokenStream::new();
    }
    let name = model.name.to_ident();
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::ColumnValue for #name {
            const COLUMN_TYPE: ::apiloom::codegen::ColumnType = ::apiloom::codegen::ColumnType::String;
        }
    }
}

/// Lets an index find objects by an enum that is a string.
pub(crate) fn impl_index_keys(model: &ApiEnum) -> TokenStream {
    if !model.is_plain() {
        return TokenStream::new();
    }
    let name = model.name.to_ident();
    // Because of the lifetime rustc does not check the bound here, but only where an index uses the type.
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::IndexKeys for #name
        where
            for<'index> #name: ::apiloom::codegen::IndexKeyOf<'index>,
        {
            type Key = Self;
            fn each_key(&self, emit: &mut dyn ::core::ops::FnMut(Self)) {
                emit(::core::clone::Clone::clone(self));
            }
        }
    }
}

/// Checks the field of each index: rustc reports a wrong one at the user's path.
pub(crate) fn index_checks(kind: &Kind) -> TokenStream {
    if kind.indexes.is_empty() {
        return TokenStream::new();
    }
    let root = kind.root.name.to_ident();
    let checks = kind.indexes.iter().map(|index| {
        let chain = chain(&quote!(#root), &index.path);
        let span = index
            .path
            .last()
            .map_or_else(Span::call_site, |name| name.span);
        quote_spanned!(span=> ::apiloom::codegen::index_field(&#chain);)
    });
    quote! {
        const _: fn() = || { #(#checks)* };
    }
}

/// Lets a column show a struct of one value if it can show the value.
pub(crate) fn newtype_column_value(model: &ApiNewtype) -> TokenStream {
    let (name, inner) = (model.name.to_ident(), &model.inner);
    // Because of the lifetime rustc does not check the bound here, but only where a column uses it.
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::ColumnValue for #name
        where
            for<'column> #inner: ::apiloom::codegen::ColumnValueOf<'column>,
        {
            const COLUMN_TYPE: ::apiloom::codegen::ColumnType =
                <#inner as ::apiloom::codegen::ColumnValueOf<'static>>::COLUMN_TYPE;
        }
    }
}
