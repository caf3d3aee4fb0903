//! The Protobuf form of types as data: messages of the numbers that the user gives.

use apiloom_model::api::{Content, Field, ProtoMessage, Shape, leaf};
use apiloom_model::{ApiEnum, ApiNewtype, ApiStruct, Code};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

/// The name of a struct's message, and its package if one is declared.
#[derive(Clone, Copy)]
pub(crate) struct MessageName<'a> {
    pub(crate) name: &'a str,
    pub(crate) package: Option<&'a str>,
}

impl<'a> MessageName<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        let package = None;
        Self { name, package }
    }
}

/// The name of the message of a type.
pub(crate) fn message_name<'a>(proto: &'a ProtoMessage, type_name: &'a str) -> &'a str {
    let name = proto.name.as_ref().map(|name| &*name.value);
    name.unwrap_or(type_name)
}

/// The constant of a struct; nothing if its fields have no numbers.
pub(crate) fn of_struct(model: &ApiStruct, message: MessageName<'_>) -> Option<TokenStream> {
    model
        .is_message()
        .then(|| constant(&message_of(message, &model.fields, &model.proto)))
}

/// The constant of an enum: text, or a message with one field for each variant.
pub(crate) fn of_enum(model: &ApiEnum) -> Option<TokenStream> {
    if model.is_plain() {
        return Some(constant(&quote!(::apiloom::codegen::ProtobufType::Text)));
    }
    model.is_message().then(|| {
        let name = &model.name.text;
        let fields = model.variants.iter().map(|variant| {
            let number = variant.proto.as_ref().map_or(0, |proto| proto.number);
            let value = match &variant.content {
                Content::Value(ty) => type_of(ty),
                Content::Fields(fields) => {
                    let name = format!("{name}{}", variant.name.text);
                    message_of(MessageName::new(&name), fields, &ProtoMessage::default())
                }
                Content::Unit => TokenStream::new(),
            };
            entry(number, &variant.json_name, &value, "Sent")
        });
        let checks = model.variants.iter().map(|variant| match &variant.content {
            Content::Value(ty) => check(ty),
            Content::Fields(_) | Content::Unit => TokenStream::new(),
        });
        let name = MessageName::new(message_name(&model.proto, name));
        constant(&message(name, fields, checks, &model.proto))
    })
}

/// The constant of a struct of one value: that of the value, if it has the same JSON.
pub(crate) fn of_newtype(model: &ApiNewtype) -> Option<TokenStream> {
    let inner = &model.inner;
    (!model.has_own_form).then(|| {
        constant_of(&quote! {{
            #[allow(unused_imports)]
            use ::apiloom::codegen::ProbeForeignProtobuf as _;
            ::apiloom::codegen::Probe::<#inner>::PROTOBUF
        }})
    })
}

fn constant(form: &TokenStream) -> TokenStream {
    constant_of(&quote!(::core::option::Option::Some(#form)))
}

fn constant_of(form: &TokenStream) -> TokenStream {
    quote!(const PROTOBUF: ::core::option::Option<::apiloom::codegen::ProtobufType> = #form;)
}

/// A message with these fields as a type.
fn message_of(name: MessageName<'_>, fields: &[Field], proto: &ProtoMessage) -> TokenStream {
    let checks = fields.iter().map(check_field);
    message(name, fields.iter().map(field), checks, proto)
}

fn message(
    MessageName { name, package }: MessageName<'_>,
    fields: impl Iterator<Item = TokenStream>,
    checks: impl Iterator<Item = TokenStream>,
    proto: &ProtoMessage,
) -> TokenStream {
    let package = match package {
        Some(package) => quote!(::core::option::Option::Some(#package)),
        None => quote!(::core::option::Option::None),
    };
    let numbers = proto.reserved.iter().map(|number| number.value);
    let names = proto.reserved_names.iter().map(|name| &name.value);
    quote! {
        ::apiloom::codegen::ProtobufType::Message(|| {
            #[allow(unused_imports)]
            use ::apiloom::codegen::ProbeForeignProtobuf as _;
            #(#checks)*
            static MESSAGE: ::apiloom::codegen::ProtobufMessage = ::apiloom::codegen::ProtobufMessage {
                package: #package,
                name: #name,
                fields: &[#(#fields),*],
                reserved: &[#(#numbers),*],
                reserved_names: &[#(#names),*],
            };
            &MESSAGE
        })
    }
}

fn field(field: &Field) -> TokenStream {
    let (number, omit_empty) = match &field.proto {
        Some(proto) => (proto.number, proto.omit_empty),
        None => (0, false),
    };
    let has_default = field.default.is_some() || field.default_with.is_some();
    let presence = match field.shape {
        _ if field.flatten => "Flattened",
        _ if omit_empty => "NotEmpty",
        Shape::List | Shape::Map => "NotEmpty",
        Shape::Option(_) => "Sent",
        // The server sets what was not sent.
        Shape::Other if has_default => "Sent",
        Shape::Other => "Always",
    };
    let value = type_of(&field.ty);
    entry(number, &field.json_name, &value, presence)
}

fn entry(number: u32, name: &str, value: &TokenStream, presence: &str) -> TokenStream {
    let presence = proc_macro2::Ident::new(presence, Span::call_site());
    quote! {
        ::apiloom::codegen::ProtobufField {
            number: #number,
            name: #name,
            value: #value,
            presence: ::apiloom::codegen::ProtobufPresence::#presence,
        }
    }
}

/// The type of a field.
fn type_of(ty: &Code) -> TokenStream {
    quote!(::apiloom::codegen::protobuf_type(::apiloom::codegen::Probe::<#ty>::PROTOBUF))
}

/// A check of a field, which only rustc can evaluate: its type has a form, that of a message if the field is flattened.
fn check_field(field: &Field) -> TokenStream {
    if !field.flatten {
        return check(&field.ty);
    }
    let ty = &field.ty;
    let span = ty.span().start;
    let problem = format!(
        "`{}` is no message in Protobuf: flatten a struct with `#[api(proto = 1)]` on its fields, or leave the numbers out here",
        ty.text()
    );
    quote_spanned!(span=> const _: () = ::apiloom::codegen::refuse(::apiloom::codegen::flattened_problem(::apiloom::codegen::Probe::<#ty>::PROTOBUF, #problem));)
}

/// A check that the type of a field has a form.
fn check(ty: &Code) -> TokenStream {
    let leaf = leaf(ty).map_or_else(|| ty.clone(), |leaf| leaf.ty);
    let span = leaf.span().start;
    let text = leaf.text();
    let problem = format!(
        "`{text}` has no form in Protobuf: add `#[api(proto = 1)]` to its fields, or leave the numbers out here"
    );
    quote_spanned!(span=> const _: () = ::apiloom::codegen::refuse(::apiloom::codegen::protobuf_problem(::apiloom::codegen::Probe::<#ty>::PROTOBUF, #problem));)
}
