//! The item itself with our additions: derives, serde and schemars attributes.

use apiloom_model::api::{Content, Field, Shape, holds_bytes};
use apiloom_model::{ApiEnum, ApiNewtype, ApiStruct, Code, is_attribute};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Fields, parse_quote};

use super::{debug, schema};

/// Derives that every API type has, and their paths.
fn added_derives(present: &[&str]) -> Attribute {
    let all = [
        ("Clone", quote!(::core::clone::Clone)),
        ("PartialEq", quote!(::core::cmp::PartialEq)),
        ("Debug", quote!(::core::fmt::Debug)),
        ("Serialize", quote!(::apiloom::codegen::serde::Serialize)),
        (
            "Deserialize",
            quote!(::apiloom::codegen::serde::Deserialize),
        ),
        (
            "JsonSchema",
            quote!(::apiloom::codegen::schemars::JsonSchema),
        ),
    ];
    let missing = all
        .into_iter()
        .filter(|(name, _)| !present.contains(name))
        .map(|(_, path)| path);
    parse_quote!(#[derive(#(#missing),*)])
}

/// Attributes that make the derives find their crates through `apiloom`, the user's only dependency.
fn crate_paths() -> [Attribute; 2] {
    [
        parse_quote!(#[serde(crate = "::apiloom::codegen::serde")]),
        parse_quote!(#[schemars(crate = "::apiloom::codegen::schemars")]),
    ]
}

/// The traits of which a struct has written-out impls: see [`super::record`].
pub(super) const WRITTEN_OUT: [&str; 3] = ["Serialize", "Deserialize", "JsonSchema"];

/// The struct with the other derives.
pub(crate) fn record(item: &DeriveInput, model: &ApiStruct) -> TokenStream {
    let mut item = stripped(item);
    let present = model.derives.iter().map(String::as_str);
    let present = present.chain(WRITTEN_OUT).chain(own_debug(model));
    item.attrs
        .insert(0, added_derives(&present.collect::<Vec<_>>()));
    quote!(#item)
}

/// `Debug`, if the struct has sensitive fields: it is written out then, see [`super::debug`].
fn own_debug(model: &ApiStruct) -> Option<&'static str> {
    debug::is_written_out(model).then_some("Debug")
}

/// The struct with our additions.
pub(crate) fn decorated_struct(item: &DeriveInput, model: &ApiStruct) -> TokenStream {
    let mut item = stripped(item);
    let mut present = model.derives.clone();
    present.extend(own_debug(model).map(str::to_owned));
    decorate(&mut item, &present, &schema::of_struct(model));
    item.attrs
        .push(parse_quote!(#[serde(rename_all = "camelCase")]));
    if let Data::Struct(data) = &mut item.data {
        decorate_fields(&mut data.fields, &model.fields);
    }
    quote!(#item)
}

/// The struct of one value with our additions: serde and schemars use the value alone.
pub(crate) fn decorated_newtype(item: &DeriveInput, model: &ApiNewtype) -> TokenStream {
    let mut item = stripped(item);
    decorate(&mut item, &model.derives, &schema::of_newtype(model));
    if let Data::Struct(data) = &mut item.data {
        for field in &mut data.fields {
            field.attrs.extend(base64_of(&model.inner));
        }
    }
    quote!(#item)
}

/// The enum with our additions.
pub(crate) fn decorated_enum(item: &DeriveInput, model: &ApiEnum) -> TokenStream {
    let mut item = stripped(item);
    decorate(&mut item, &model.derives, &schema::of_enum(model));
    let Data::Enum(data) = &mut item.data else {
        return quote!(#item);
    };
    for (variant, declared) in data.variants.iter_mut().zip(&model.variants) {
        if declared.unknown {
            variant.attrs.push(parse_quote!(#[serde(untagged)]));
        } else if declared.json_name != declared.name.text {
            let name = &declared.json_name;
            variant.attrs.push(parse_quote!(#[serde(rename = #name)]));
        }
        match &declared.content {
            Content::Unit => {}
            Content::Value(ty) => {
                if let Some(field) = variant.fields.iter_mut().next() {
                    field.attrs.extend(base64_of(ty));
                }
            }
            Content::Fields(fields) => {
                variant
                    .attrs
                    .push(parse_quote!(#[serde(rename_all = "camelCase")]));
                decorate_fields(&mut variant.fields, fields);
            }
        }
    }
    quote!(#item)
}

fn decorate(item: &mut DeriveInput, present: &[String], keywords: &TokenStream) {
    // Derives come first: their helper attributes must be below them.
    let present: Vec<&str> = present.iter().map(String::as_str).collect();
    item.attrs.insert(0, added_derives(&present));
    item.attrs.extend(crate_paths());
    item.attrs.push(transform(keywords));
}

/// An attribute that makes schemars apply our keywords to the schema that it derived.
fn transform(keywords: &TokenStream) -> Attribute {
    parse_quote!(#[schemars(transform = |schema: &mut ::apiloom::codegen::schemars::Schema| {
        #[allow(unused_imports)]
        use ::apiloom::codegen::BoundOther as _;
        ::apiloom::codegen::apply_keywords(#keywords, schema)
    })])
}

fn decorate_fields(fields: &mut Fields, model: &[Field]) {
    for (field, declared) in fields.iter_mut().zip(model) {
        field.attrs.extend(serde_of_field(declared));
        if let Some(keywords) = schema::of_field(declared, model) {
            field.attrs.push(transform(&keywords));
        }
    }
}

fn serde_of_field(field: &Field) -> Vec<Attribute> {
    let mut attrs = Vec::new();
    if field.flatten {
        attrs.push(parse_quote!(#[serde(flatten)]));
    } else if field.json_name != apiloom_model::names::json_name(&field.name.text) {
        let name = &field.json_name;
        attrs.push(parse_quote!(#[serde(rename = #name)]));
    }
    attrs.extend(base64_of(&field.ty));
    // With a custom deserializer, serde no longer treats an absent option as `None`.
    if matches!(field.shape, Shape::Option(_)) && holds_bytes(&field.ty) {
        attrs.push(parse_quote!(#[serde(default)]));
    }
    match field.shape {
        _ if field.flatten => {}
        // An absent option is `None` by its type; only an explicit null needs attributes.
        Shape::Option(_) if field.rules.nullable => {}
        Shape::Option(_) => attrs
            .push(parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")])),
        Shape::List | Shape::Map if field.rules.present => {
            attrs.push(parse_quote!(#[serde(default)]));
        }
        Shape::List | Shape::Map => {
            attrs.push(parse_quote!(#[serde(default, skip_serializing_if = "::apiloom::codegen::is_empty")]));
        }
        Shape::Other => {}
    }
    attrs
}

/// Attributes that make bytes base64 text, in the schema and in JSON.
fn base64_of(ty: &Code) -> Vec<Attribute> {
    if !holds_bytes(ty) {
        return Vec::new();
    }
    let literal = |text: String| syn::LitStr::new(&text, ty.span().start);
    let functions = literal(quote!(::apiloom::codegen::Base64::<#ty>).to_string());
    let schema = literal(quote!(::apiloom::codegen::Base64<#ty>).to_string());
    vec![
        parse_quote!(#[serde(with = #functions)]),
        // schemars would print a default through a crate `serde`, which the user's package may not have; none of these
        // is read.
        parse_quote!(#[schemars(with = #schema, skip_serializing)]),
    ]
}

/// The item without our own attributes.
pub(super) fn stripped(item: &DeriveInput) -> DeriveInput {
    let mut item = item.clone();
    for attrs in all_attributes(&mut item) {
        attrs.retain(|a| !is_attribute(a, "api") && !is_attribute(a, "resource"));
    }
    item
}

/// The attributes of an item, its variants and its fields.
pub(super) fn all_attributes(item: &mut DeriveInput) -> Vec<&mut Vec<Attribute>> {
    let mut all = vec![&mut item.attrs];
    match &mut item.data {
        Data::Struct(data) => all.extend(data.fields.iter_mut().map(|field| &mut field.attrs)),
        Data::Enum(data) => {
            for variant in &mut data.variants {
                all.push(&mut variant.attrs);
                all.extend(variant.fields.iter_mut().map(|field| &mut field.attrs));
            }
        }
        Data::Union(data) => {
            all.extend(data.fields.named.iter_mut().map(|field| &mut field.attrs));
        }
    }
    all
}
