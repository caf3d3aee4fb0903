//! `ApiType`: the tree of custom checks and computed defaults, and the form in Protobuf.

use apiloom_model::api::{Content, Field, Rules, Shape, holds_bytes};
use apiloom_model::{ApiEnum, ApiNewtype, ApiStruct, Code};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use super::protobuf::{self, MessageName};

/// The hooks of a struct, and its Protobuf form as a message of this name.
pub(crate) fn of_struct(model: &ApiStruct, message: Option<MessageName<'_>>) -> TokenStream {
    let this = model.name.to_ident();
    let checks = checks(&quote!(#this), &model.rules, false);
    let defaults = model.fields.iter().filter_map(|field| {
        let (compute, ty, json) = (field.default_with.as_ref()?, &field.ty, &field.json_name);
        Some(if holds_bytes(ty) {
            quote! {
                .default_of(#json, |parent| ::apiloom::codegen::computed_default::<#this, ::apiloom::codegen::Base64<#ty>>(parent, |parent| ::apiloom::codegen::Base64((#compute)(parent))))
            }
        } else {
            quote! {
                .default_of(#json, |parent| ::apiloom::codegen::computed_default::<#this, #ty>(parent, |parent| (#compute)(parent)))
            }
        })
    });
    let fields = of_fields(&model.fields);
    impl_api_type(
        &model.name.to_ident().into_token_stream(),
        &quote!(#checks #(#defaults)* #fields),
        message.and_then(|message| protobuf::of_struct(model, message)),
    )
}

/// The hooks of an enum. Only the default encoding of variants (an object with one field) has a place for their hooks;
/// with serde's tag there is no such field, and the schema engine refuses the checks when the server is built.
pub(crate) fn of_enum(model: &ApiEnum) -> TokenStream {
    let this = model.name.to_ident();
    let checks = checks(&quote!(#this), &model.rules, false);
    let variants = model.variants.iter().filter_map(|variant| {
        let json = &variant.json_name;
        match &variant.content {
            Content::Value(ty) if !variant.unknown => {
                Some(quote!(.field(#json, ::apiloom::codegen::Tree::part((::apiloom::codegen::Probe::<#ty>::HOOKS)()))))
            }
            Content::Fields(fields) => {
                let fields = of_fields(fields);
                Some(quote!(.field(#json, ::apiloom::codegen::Tree::default() #fields)))
            }
            _ => None,
        }
    });
    let protobuf = protobuf::of_enum(model);
    impl_api_type(&quote!(#this), &quote!(#checks #(#variants)*), protobuf)
}

/// The hooks of a struct of one value: those of the value and its own.
pub(crate) fn of_newtype(model: &ApiNewtype) -> TokenStream {
    let (this, inner) = (model.name.to_ident().into_token_stream(), &model.inner);
    let checks = checks(&this, &model.rules, false);
    let each = each(&inner.to_token_stream(), &model.rules, holds_bytes(inner));
    let part =
        quote!(::apiloom::codegen::Tree::part((::apiloom::codegen::Probe::<#inner>::HOOKS)()));
    let protobuf = protobuf::of_newtype(model);
    impl_api_type(&this, &quote!(.value(#part) #checks #each), protobuf)
}

fn impl_api_type(
    this: &TokenStream,
    calls: &TokenStream,
    protobuf: Option<TokenStream>,
) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::ApiType for #this {
            fn hooks() -> ::apiloom::codegen::Hooks {
                #[allow(unused_imports)]
                use ::apiloom::codegen::ProbeForeign as _;
                ::apiloom::codegen::Tree::of::<#this>(|tree| tree #calls)
            }
            #protobuf
        }
    }
}

/// The hooks of fields. Those that follow from the types alone are a table.
fn of_fields(fields: &[Field]) -> TokenStream {
    let (mut table, mut calls) = (Vec::new(), TokenStream::new());
    for field in fields {
        let (json, ty, further) = (&field.json_name, &field.ty, further(field));
        let own = if field.rules.opaque {
            quote!(::apiloom::codegen::Hooks::default())
        } else {
            quote!((::apiloom::codegen::Probe::<#ty>::HOOKS)())
        };
        if field.flatten {
            calls.extend(quote!(.flatten(::apiloom::codegen::Tree::part(#own) #further)));
        } else if !further.is_empty() {
            calls.extend(quote!(.field(#json, ::apiloom::codegen::Tree::part(#own) #further)));
        } else if !field.rules.opaque {
            table.push(quote!((#json, ::apiloom::codegen::Probe::<#ty>::HOOKS)));
        }
    }
    let table = (!table.is_empty()).then(|| quote!(.fields(&[#(#table),*])));
    quote!(#table #calls)
}

/// The hooks of a field beside those of its type.
fn further(field: &Field) -> TokenStream {
    let inner = match &field.shape {
        Shape::Option(inner) => inner,
        _ => &field.ty,
    };
    let inner = quote!(#inner);
    let in_base64 = holds_bytes(&field.ty);
    let form = (!field.flatten).then(|| form(&inner, &field.rules, in_base64));
    let checks = checks(&inner, &field.rules, in_base64);
    let each = each(&inner, &field.rules, in_base64);
    quote!(#form #checks #each)
}

fn each(ty: &TokenStream, rules: &Rules, in_base64: bool) -> TokenStream {
    let Some(inner) = &rules.each else {
        return TokenStream::new();
    };
    let element = quote!(<#ty as ::apiloom::codegen::Container>::Element);
    let form = form(&element, inner, in_base64);
    let checks = checks(&element, inner, in_base64);
    let deeper = each(&element, inner, in_base64);
    let all = quote!(#form #checks #deeper);
    if all.is_empty() {
        return TokenStream::new();
    }
    quote!(.each(::apiloom::codegen::Tree::default() #all))
}

/// A check that a value which keeps unknown fields can be deserialized: its schema may not cover the content.
fn form(ty: &TokenStream, rules: &Rules, in_base64: bool) -> TokenStream {
    if !rules.preserve_unknown {
        return TokenStream::new();
    }
    let ty = if in_base64 {
        quote!(::apiloom::codegen::Base64<#ty>)
    } else {
        ty.clone()
    };
    quote!(.check(::apiloom::codegen::has_form::<#ty>))
}

/// The user's checks of a value, which may be or contain base64 bytes.
fn checks(ty: &TokenStream, rules: &Rules, in_base64: bool) -> TokenStream {
    let check = |function: &Code| {
        if in_base64 {
            quote! {
                .check(|value, path| ::apiloom::codegen::typed_check::<::apiloom::codegen::Base64<#ty>, _>(value, path, |value, path| (#function)(&value.0, path)))
            }
        } else {
            quote! {
                .check(|value, path| ::apiloom::codegen::typed_check::<#ty, _>(value, path, |value, path| (#function)(value, path)))
            }
        }
    };
    rules.custom.iter().map(check).collect()
}
