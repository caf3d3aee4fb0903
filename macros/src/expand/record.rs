//! `Serialize`, `Deserialize` and `JsonSchema` of a struct as tables and calls: far less code than the derives make, in
//! source and in machine code.

use apiloom_model::ApiStruct;
use apiloom_model::api::{Field, Shape, holds_bytes};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, DeriveInput, Expr, ExprLit, Lit, Meta};

use super::convert::local;
use super::derives::{self, WRITTEN_OUT};
use super::schema;

/// Whether a struct gets these impls. The derives are used if the user lists one of them, and for forms that only their
/// attributes describe.
pub(crate) fn is_record(item: &DeriveInput, model: &ApiStruct) -> bool {
    const READ_BY_DERIVES: [&str; 7] = [
        "serde",
        "schemars",
        "validate",
        "garde",
        "deprecated",
        "cfg",
        "cfg_attr",
    ];
    let mut item = item.clone();
    let has_attributes = derives::all_attributes(&mut item)
        .into_iter()
        .flatten()
        .any(|attribute| {
            let path = attribute.path();
            READ_BY_DERIVES.iter().any(|name| path.is_ident(name))
        });
    let has_derives = model
        .derives
        .iter()
        .any(|name| WRITTEN_OUT.contains(&&**name));
    let is_plain = |field: &Field| !field.flatten && !holds_bytes(&field.ty);
    !has_attributes && !has_derives && model.fields.iter().all(is_plain)
}

/// The impls.
pub(crate) fn impls(item: &DeriveInput, model: &ApiStruct) -> TokenStream {
    let name = model.name.to_ident();
    let record = impl_record(model);
    let schema = impl_schema(item, model);
    quote! {
        const _: () = {
            #record
            #[automatically_derived]
            impl ::apiloom::codegen::serde::Serialize for #name {
                fn serialize<S: ::apiloom::codegen::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                    ::apiloom::codegen::serialize_record(self, serializer)
                }
            }
            #[automatically_derived]
            impl<'de> ::apiloom::codegen::serde::Deserialize<'de> for #name {
                fn deserialize<D: ::apiloom::codegen::serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                    ::apiloom::codegen::deserialize_record(deserializer)
                }
            }
            #schema
        };
    }
}

/// Whether a field has a value when it is absent.
fn is_omissible(field: &Field) -> bool {
    !matches!(field.shape, Shape::Other)
}

/// The place of a field, for errors about its type. Names of the expansion are not those of a user's `macro_rules!`.
fn span(field: &Field) -> Span {
    Span::call_site().located_at(field.name.span)
}

fn impl_record(model: &ApiStruct) -> TokenStream {
    let (name, text) = (model.name.to_ident(), &model.name.text);
    let slots = format_ident!("__{}Slots", model.name.text);
    let fields = &model.fields;
    let json_names = fields.iter().map(|field| &field.json_name);
    let required = fields.iter().filter(|field| !is_omissible(field));
    let required: Vec<&String> = required.map(|field| &field.json_name).collect();
    let slot_types = fields.iter().map(|field| {
        let (ident, ty) = (field.name.to_ident(), &field.ty);
        if is_omissible(field) {
            quote!(#ident: #ty)
        } else {
            quote!(#ident: ::core::option::Option<#ty>)
        }
    });
    let empty = fields.iter().map(|field| {
        let ident = field.name.to_ident();
        match field.shape {
            Shape::List | Shape::Map => quote!(#ident: ::core::default::Default::default()),
            Shape::Option(_) | Shape::Other => quote!(#ident: ::core::option::Option::None),
        }
    });
    let visits = fields.iter().map(|field| {
        let (ident, json, span) = (field.name.to_ident(), &field.json_name, span(field));
        let method = match field.shape {
            Shape::Option(_) if !field.rules.nullable => "option",
            Shape::List | Shape::Map if !field.rules.present => "container",
            _ => "field",
        };
        let method = format_ident!("{method}");
        quote_spanned!(span=> visitor.#method(#json, &self.#ident);)
    });
    let reads = fields.iter().enumerate().map(|(index, field)| {
        let (ident, span) = (field.name.to_ident(), span(field));
        let function = if is_omissible(field) {
            quote!(read_value)
        } else {
            quote!(read_required)
        };
        quote_spanned!(span=> #index => ::apiloom::codegen::#function(&mut slots.#ident, map),)
    });
    let taken = fields.iter().map(|field| {
        let (ident, local) = (field.name.to_ident(), local(&field.name));
        if is_omissible(field) {
            quote!(#ident: #local)
        } else {
            quote!(#ident: ::core::option::Option::Some(#local))
        }
    });
    let given = fields.iter().map(|field| {
        let (ident, local) = (field.name.to_ident(), local(&field.name));
        quote!(#ident: #local)
    });
    // Without required fields the pattern always matches.
    let otherwise =
        (!required.is_empty()).then(|| quote!(else { return ::core::option::Option::None; }));
    quote! {
        #[allow(missing_docs, missing_debug_implementations, unreachable_pub, non_camel_case_types)]
        pub struct #slots { #(#slot_types,)* }
        #[automatically_derived]
        impl ::apiloom::codegen::Record for #name {
            const NAME: &'static str = #text;
            const FIELDS: &'static [&'static str] = &[#(#json_names),*];
            const REQUIRED: &'static [&'static str] = &[#(#required),*];
            type Slots = #slots;
            #[allow(unused_variables)]
            fn visit<V: ::apiloom::codegen::FieldVisitor>(&self, visitor: &mut V) { #(#visits)* }
            fn slots() -> #slots { #slots { #(#empty,)* } }
            #[allow(unused_variables)]
            fn read<'de, A: ::apiloom::codegen::serde::de::MapAccess<'de>>(
                slots: &mut #slots,
                field: usize,
                map: &mut A,
            ) -> ::core::result::Result<(), A::Error> {
                match field {
                    #(#reads)*
                    _ => ::core::result::Result::Ok(()),
                }
            }
            fn finish(slots: #slots) -> ::core::option::Option<Self> {
                let #slots { #(#taken,)* } = slots #otherwise;
                ::core::option::Option::Some(#name { #(#given,)* })
            }
        }
    }
}

fn impl_schema(item: &DeriveInput, model: &ApiStruct) -> TokenStream {
    let (name, text) = (model.name.to_ident(), &model.name.text);
    let attributes: Vec<&[Attribute]> = match &item.data {
        syn::Data::Struct(data) => data.fields.iter().map(|field| &*field.attrs).collect(),
        _ => Vec::new(),
    };
    let fields = model.fields.iter().zip(attributes).map(|(field, attributes)| {
        let (json, ty, doc) = (&field.json_name, &field.ty, doc(attributes));
        let presence = match field.shape {
            Shape::Option(_) if field.rules.nullable => "Null",
            Shape::Option(_) | Shape::List | Shape::Map => "Omitted",
            Shape::Other => "Required",
        };
        let presence = format_ident!("{presence}");
        let keywords = schema::of_field(field, &model.fields).unwrap_or_else(|| quote!(&[]));
        let span = ty.span().start;
        let of_type =
            quote_spanned!(span=> ::apiloom::codegen::schemars::SchemaGenerator::subschema_for::<#ty>);
        quote! {
            ::apiloom::codegen::FieldSchema {
                name: #json,
                doc: #doc,
                presence: ::apiloom::codegen::Presence::#presence,
                schema: #of_type,
                keywords: #keywords,
            }
        }
    });
    let (doc, keywords) = (doc(&item.attrs), schema::of_struct(model));
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::schemars::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#text)
            }
            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(::core::concat!(::core::module_path!(), "::", #text))
            }
            fn json_schema(generator: &mut ::apiloom::codegen::schemars::SchemaGenerator) -> ::apiloom::codegen::schemars::Schema {
                #[allow(unused_imports)]
                use ::apiloom::codegen::BoundOther as _;
                static SCHEMA: ::apiloom::codegen::StructSchema = ::apiloom::codegen::StructSchema {
                    doc: #doc,
                    fields: &[#(#fields),*],
                    keywords: #keywords,
                };
                ::apiloom::codegen::struct_schema(generator, &SCHEMA)
            }
        }
    }
}

/// The documentation comment, with the space in front of each line removed.
fn doc(attributes: &[Attribute]) -> TokenStream {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(doc) if doc.path.is_ident("doc") => Some(&doc.value),
            _ => None,
        });
    let mut parts = Vec::new();
    // Lines of text become one literal; others are macros such as `include_str!`.
    let mut text = String::new();
    for (index, line) in lines.enumerate() {
        if index > 0 {
            text.push('\n');
        }
        if let Expr::Lit(ExprLit {
            lit: Lit::Str(line),
            ..
        }) = line
        {
            let line = line.value();
            text.push_str(line.strip_prefix(' ').unwrap_or(&line));
        } else {
            parts.push(std::mem::take(&mut text).to_token_stream());
            parts.push(line.to_token_stream());
        }
    }
    if parts.is_empty() {
        return text.to_token_stream();
    }
    quote!(::core::concat!(#(#parts,)* #text))
}
