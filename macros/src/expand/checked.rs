//! Emits checks that only rustc can evaluate: types behind aliases, the values of tags, the fields of flattened types.

use apiloom_model::api::{Content, Field, Shape, Union, leaf};
use apiloom_model::{ApiEnum, ApiStruct, Code, Name};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Data, DeriveInput};

/// Checks that the types of fields are API types, each type once. They come before the item, so that rustc checks them
/// first.
pub(crate) fn field_types(item: &DeriveInput) -> TokenStream {
    let fields: Vec<&syn::Field> = match &item.data {
        Data::Struct(data) => data.fields.iter().collect(),
        Data::Enum(data) => data.variants.iter().flat_map(|v| &v.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    // The JSON form and the schema of a field with such an attribute may be those of another type.
    let is_foreign = |field: &&syn::Field| {
        let mut attrs = field.attrs.iter();
        attrs.any(|a| a.path().is_ident("serde") || a.path().is_ident("schemars"))
    };
    let own = fields.into_iter().filter(|field| !is_foreign(field));
    let mut types: Vec<Code> = Vec::new();
    for leaf in own.filter_map(|field| leaf(&Code::new(&field.ty))) {
        // `Self` is the item, which is an API type; a constant beside the item cannot use the word.
        let text = leaf.ty.text();
        let is_self = text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == "Self");
        if !is_self && types.iter().all(|ty| ty.text() != text) {
            types.push(leaf.ty);
        }
    }
    let proof = |ty: &Code| {
        let span = ty.span();
        // The type of the constant and its value both span the user's type, so that rustc marks all of it, and only
        // once.
        let (start, end) = (span.start, span.end);
        let open =
            quote_spanned!(start=> ::core::option::Option::<::apiloom::codegen::FieldTypeProof<);
        let close = quote_spanned!(end=> >>);
        let (option, none) = (
            quote_spanned!(start=> ::core::option::Option),
            quote_spanned!(end=> ::None),
        );
        quote!(const _: #open #ty #close = #option #none;)
    };
    types.iter().map(proof).collect()
}

/// The names of a struct, and checks of its fields.
pub(crate) fn of_struct(model: &ApiStruct) -> TokenStream {
    let own = model.fields.iter().map(name_of);
    let leaves: TokenStream = model
        .fields
        .iter()
        .map(|field| of_leaf(&field.ty))
        .collect();
    let flattened: TokenStream = (0..model.fields.len())
        .map(|at| of_flattened(&model.fields, at))
        .collect();
    let members = model
        .union
        .as_ref()
        .map(|union| of_members(union, &model.fields));
    block(&model.name, own, &quote!(#leaves #flattened #members))
}

/// The names of a struct without the checks.
pub(crate) fn names(model: &ApiStruct) -> TokenStream {
    let own = model.fields.iter().map(name_of);
    block(&model.name, own, &TokenStream::new())
}

/// The names of an enum, and checks of the contents of its variants.
pub(crate) fn of_enum(model: &ApiEnum) -> TokenStream {
    let own = model.wire_names.iter().map(|name| own_name(name));
    let leaves: TokenStream = model
        .variants
        .iter()
        .map(|variant| match &variant.content {
            Content::Value(ty) => of_leaf(ty),
            Content::Fields(fields) => fields.iter().map(|field| of_leaf(&field.ty)).collect(),
            Content::Unit => TokenStream::new(),
        })
        .collect();
    let values = model.is_plain().then(|| {
        let name = model.name.to_ident();
        let known = model.variants.iter().filter(|variant| !variant.unknown);
        let known = known.map(|variant| &variant.json_name);
        quote! {
            #[automatically_derived]
            impl ::apiloom::codegen::Values for #name {
                const VALUES: &'static [&'static str] = &[#(#known),*];
            }
        }
    });
    block(&model.name, own, &quote!(#leaves #values))
}

fn block(
    name: &Name,
    names: impl Iterator<Item = TokenStream>,
    checks: &TokenStream,
) -> TokenStream {
    let name = name.to_ident();
    quote! {
        const _: () = {
            #[allow(unused_imports)]
            use ::apiloom::codegen::{OtherFlattenedNames as _, OtherLeaf as _, OtherTag as _};
            #[automatically_derived]
            impl ::apiloom::codegen::JsonNames for #name {
                const NAMES: &'static [::apiloom::codegen::JsonName] = &[#(#names),*];
            }
            #checks
        };
    }
}

fn own_name(json: &str) -> TokenStream {
    quote!(::apiloom::codegen::JsonName::Own(#json))
}

fn name_of(field: &Field) -> TokenStream {
    if field.flatten {
        let ty = &field.ty;
        quote!(::apiloom::codegen::JsonName::Flattened(::apiloom::codegen::FlattenedNames::<#ty>::NAMES))
    } else {
        own_name(&field.json_name)
    }
}

/// Checks that a type is not an alias that hides its shape.
fn of_leaf(ty: &Code) -> TokenStream {
    let Some(leaf) = leaf(ty) else {
        return TokenStream::new();
    };
    let (span, ty) = (leaf.ty.span().start, &leaf.ty);
    let check = |name: TokenStream| quote_spanned!(span=> const _: () = ::apiloom::codegen::refuse(::apiloom::codegen::Leaf::<#ty>::#name););
    let everywhere = check(quote!(PROBLEM));
    let nested = leaf.nested.then(|| check(quote!(NESTED_PROBLEM)));
    quote!(#everywhere #nested)
}

/// Checks that a flattened field has no names of its siblings.
fn of_flattened(fields: &[Field], at: usize) -> TokenStream {
    let field = &fields[at];
    if !field.flatten {
        return TokenStream::new();
    }
    // Of two flattened fields the second one is reported.
    let beside = fields
        .iter()
        .enumerate()
        .filter(|(other, field)| !field.flatten || *other < at)
        .map(|(_, field)| name_of(field));
    let (span, ty) = (field.ty.span().start, &field.ty);
    let beside = quote!(&[#(#beside),*]);
    quote_spanned!(span=> const _: () = ::apiloom::codegen::refuse_shared_name(#beside, ::apiloom::codegen::FlattenedNames::<#ty>::NAMES);)
}

/// Checks that each member is selected by a value of the tag.
fn of_members(union: &Union, fields: &[Field]) -> TokenStream {
    let tag = union.tag.as_ref();
    let Some(tag) = tag.and_then(|tag| fields.iter().find(|field| field.name == *tag)) else {
        return TokenStream::new();
    };
    let ty = match &tag.shape {
        Shape::Option(inner) => inner.to_token_stream(),
        _ => tag.ty.to_token_stream(),
    };
    let members = fields.iter().flat_map(|field| &field.members);
    members
        .map(|member| {
            let (span, value) = (member.span.start, &member.value);
            let text = format!("`{}` has no value {value:?}, which would select this member", tag.name.text);
            quote_spanned!(span=> const _: () = ::core::assert!(::apiloom::codegen::may_be_among(::apiloom::codegen::TagValues::<#ty>::VALUES, #value), #text);)
        })
        .collect()
}
