//! `ConvertFrom` in both directions between a type and its peer, so that rustc reports every field that is not
//! mentioned.
//!
//! The macro sees one side only. It destructures both sides without `..` and builds both as literals without `..`, so
//! that no field can be forgotten. Constants check the names first: a field that only one side has is one error, which
//! says what to write.

use apiloom_model::api::{Content, Conversion, Field};
use apiloom_model::{ApiEnum, ApiStruct, Code, Kind, Name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// Both directions between a spoke's root and its hub.
pub(crate) fn of_root(kind: &Kind) -> TokenStream {
    let Some(hub) = kind.converts_to() else {
        return TokenStream::new();
    };
    let proof = same_kind(kind, hub);
    let impls = root_impls(kind, hub);
    let test = round_trips(kind, hub);
    quote!(#proof #impls #test)
}

/// A test in the user's package that converts random objects in both directions.
fn round_trips(kind: &Kind, hub: &Code) -> TokenStream {
    let this = kind.root.name.to_ident();
    let name = format_ident!(
        "{}_is_converted_there_and_back",
        this.to_string().to_lowercase()
    );
    quote! {
        #[cfg(test)]
        #[test]
        // A type inside a function has no such test.
        #[allow(unnameable_test_items)]
        fn #name() {
            ::apiloom::codegen::check_conversion::<#this, #hub>();
        }
    }
}

/// Checks that the hub is the same kind of the same group in another version, or, for `stored_as`, of another group.
fn same_kind(kind: &Kind, hub: &Code) -> TokenStream {
    let (this, span) = (kind.root.name.to_ident(), hub.span().start);
    if kind.stored_as.is_some() {
        return quote_spanned! {span=>
            const _: () = ::core::assert!(
                ::apiloom::codegen::is_of_other_group::<#this, #hub>(),
                "`stored_as` is not the same kind, with the same plural, in another group"
            );
        };
    }
    quote_spanned! {span=>
        const _: () = ::core::assert!(
            ::apiloom::codegen::is_other_version::<#this, #hub>(),
            "the hub is not the same kind of the same group in another version"
        );
    }
}

fn root_impls(kind: &Kind, hub: &Code) -> TokenStream {
    let declared = kind
        .root
        .conversions
        .iter()
        .find(|conversion| conversion.peer.text() == hub.text());
    match declared {
        Some(conversion) => of_struct(&kind.root, conversion),
        None => {
            let plain = Conversion {
                peer: hub.clone(),
                manual: false,
                with: None,
                hub_only: Vec::new(),
                lossy: Vec::new(),
            };
            of_struct(&kind.root, &plain)
        }
    }
}

/// Both directions between a struct and a peer.
pub(crate) fn of_struct(model: &ApiStruct, conversion: &Conversion) -> TokenStream {
    if conversion.manual {
        return TokenStream::new();
    }
    let (this, peer) = (model.name.to_ident(), &conversion.peer);
    if let Some(functions) = &conversion.with {
        return by_functions(&this, peer, functions);
    }
    let checks = checks(model, conversion);
    let to_peer = to_peer(&this, model, conversion);
    let from_peer = from_peer(&this, model, conversion);
    quote! {
        const _: () = {
            #[allow(unused_imports)]
            use ::apiloom::codegen::{ConvertVia as _, FieldNamesOther as _, ReturnValueVia as _};
            #checks
            #[automatically_derived]
            impl ::apiloom::codegen::ConvertFrom<#this> for #peer {
                fn convert_from(value: #this) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                    #to_peer
                }
            }
            #[automatically_derived]
            impl ::apiloom::codegen::ConvertFrom<#peer> for #this {
                fn convert_from(value: #peer) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                    #from_peer
                }
            }
        };
    }
}

/// Constants that evaluate only if both sides have every field that the conversion mentions and it mentions every field
/// of the peer; and `__ApiloomPeer`, the peer's type, which rustc knows only then.
fn checks(model: &ApiStruct, conversion: &Conversion) -> TokenStream {
    let peer = &conversion.peer;
    let shown = peer.text();
    let kept = model.fields.iter().filter(|field| !field.convert.drop);
    let of_fields = kept.clone().map(|field| match &field.convert.rename {
        Some(name) => (name, format!("`{shown}` has no field `{}`", name.text)),
        None => {
            let text = format!(
                "`{shown}` has no field `{}`: write `#[api(convert(rename = ..))]` on the field if it has another name \
                 there, or `#[api(convert(drop))]` if it is left out there",
                field.name.text
            );
            (&field.name, text)
        }
    });
    let of_type = peer_only(conversion)
        .into_iter()
        .map(|name| (name, format!("`{shown}` has no field `{}`", name.text)));
    let (mut consts, mut idents) = (TokenStream::new(), Vec::new());
    for (index, (name, text)) in of_fields.chain(of_type).enumerate() {
        let (ident, field) = (format_ident!("HAS_{index}"), &name.text);
        consts.extend(quote_spanned! {name.span=>
            const #ident: bool = {
                ::core::assert!(::apiloom::codegen::may_be_among_at(NAMES, #index, #field), #text);
                true
            };
        });
        idents.push(ident);
    }
    let mentioned = kept
        .map(|field| field.convert.rename.as_ref().unwrap_or(&field.name))
        .chain(peer_only(conversion))
        .map(|name| &name.text);
    let advice = format!(
        "write `#[api(convert(rename = ..))]` on the field that has another name here, or \
         `#[api(convert(peer = {shown}, hub_only(.. = value)))]` on the type if it is left out here"
    );
    let span = peer.span().start;
    let all_mentioned = quote_spanned! {span=>
        const MENTIONS_ALL: bool = match ::apiloom::codegen::MissingFields::find(NAMES, &[#(#mentioned),*], #shown, #advice) {
            ::core::option::Option::Some(text) => ::core::panic!("{}", text.as_str()),
            ::core::option::Option::None => true,
        };
    };
    quote! {
        const NAMES: ::core::option::Option<&'static [&'static str]> = ::apiloom::codegen::FieldNames::<#peer>::OF;
        #consts
        #all_mentioned
        type __ApiloomPeer = <::apiloom::codegen::ValidIf<{ #(#idents &&)* MENTIONS_ALL }> as ::apiloom::codegen::TypeOf<#peer>>::Type;
    }
}

/// The fields that exist only in the peer.
fn peer_only(conversion: &Conversion) -> Vec<&Name> {
    let hub_only = conversion.hub_only.iter().map(|(name, _)| name);
    let lossy = conversion.lossy.iter();
    hub_only
        .chain(lossy.filter(|name| !conversion.hub_only.iter().any(|(n, _)| n == *name)))
        .collect()
}

/// Both directions with functions of the user, which may fail.
fn by_functions(this: &Ident, peer: &Code, (to, from): &(Code, Code)) -> TokenStream {
    let returned = |target: TokenStream, function: &Code| {
        let (span, called) = (function.span().start, quote!((#function)(value)));
        quote_spanned! {span=>
            ::apiloom::codegen::ReturnValue { value: #called, target: ::core::marker::PhantomData::<#target> }
                .value("")
                .map_err(::apiloom::codegen::convert_error)
        }
    };
    let (to, from) = (returned(quote!(#peer), to), returned(quote!(#this), from));
    quote! {
        const _: () = {
            #[allow(unused_imports)]
            use ::apiloom::codegen::ReturnValueVia as _;
            #[automatically_derived]
            impl ::apiloom::codegen::ConvertFrom<#this> for #peer {
                fn convert_from(value: #this) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                    #to
                }
            }
            #[automatically_derived]
            impl ::apiloom::codegen::ConvertFrom<#peer> for #this {
                fn convert_from(value: #peer) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                    #from
                }
            }
        };
    }
}

/// The name of the field in the peer.
fn peer_field(field: &Field) -> Ident {
    field
        .convert
        .rename
        .as_ref()
        .unwrap_or(&field.name)
        .to_ident()
}

/// A local variable that cannot conflict with the user's names.
pub(super) fn local(name: &Name) -> Ident {
    Ident::new(
        &format!("__apiloom_{}", name.text),
        Span::mixed_site().located_at(name.span),
    )
}

/// The peer's type as [`checks`] declares it, with errors at the user's mention of it.
fn peer_type(conversion: &Conversion) -> Ident {
    Ident::new("__ApiloomPeer", conversion.peer.span().start)
}

fn to_peer(this: &Ident, model: &ApiStruct, conversion: &Conversion) -> TokenStream {
    let peer = peer_type(conversion);
    let taken = model.fields.iter().map(|field| {
        let (name, local) = (field.name.to_ident(), local(&field.name));
        if field.convert.drop {
            quote!(#name: _)
        } else {
            quote!(#name: #local)
        }
    });
    let kept = || model.fields.iter().filter(|field| !field.convert.drop);
    let targets = targets(
        &quote!(#peer),
        kept().map(|field| (field, peer_field(field))),
    );
    let given = kept().map(|field| {
        let name = peer_field(field);
        let value = converted(field, field.convert.with.as_ref().map(|(to, _)| to));
        quote!(#name: #value)
    });
    let hub_only = conversion.hub_only.iter().map(|(name, value)| {
        let name = name.to_ident();
        quote!(#name: #value)
    });
    let lossy = conversion
        .lossy
        .iter()
        .filter(|name| !conversion.hub_only.iter().any(|(n, _)| n == *name))
        .map(|name| {
            let name = name.to_ident();
            quote!(#name: ::core::default::Default::default())
        });
    let span = conversion.peer.span().start;
    let literal = quote_spanned!(span=> { #(#given,)* #(#hub_only,)* #(#lossy,)* });
    quote! {
        #targets
        let #this { #(#taken,)* } = value;
        ::core::result::Result::Ok(#peer #literal)
    }
}

fn from_peer(this: &Ident, model: &ApiStruct, conversion: &Conversion) -> TokenStream {
    let peer = peer_type(conversion);
    let taken = model
        .fields
        .iter()
        .filter(|field| !field.convert.drop)
        .map(|field| {
            let (name, local) = (peer_field(field), local(&field.name));
            quote!(#name: #local)
        });
    let lost = peer_only(conversion).into_iter().map(|name| {
        let name = name.to_ident();
        quote!(#name: _)
    });
    let given = model.fields.iter().map(|field| {
        let name = field.name.to_ident();
        let value = match (&field.convert.default, field.convert.drop) {
            (Some(default), _) => quote!(#default),
            (None, true) => quote!(::core::default::Default::default()),
            (None, false) => converted(field, field.convert.with.as_ref().map(|(_, from)| from)),
        };
        quote!(#name: #value)
    });
    // The braces need the user's span: rustc names a missing field only in a pattern of the user's context.
    let span = conversion.peer.span().start;
    let pattern = quote_spanned!(span=> { #(#taken,)* #(#lost,)* });
    let kept = model
        .fields
        .iter()
        .filter(|field| field.convert.default.is_none() && !field.convert.drop);
    let targets = targets(
        &quote!(#this),
        kept.map(|field| (field, field.name.to_ident())),
    );
    quote! {
        #targets
        let #peer #pattern = value;
        ::core::result::Result::Ok(#this { #(#given,)* })
    }
}

/// A variable for each field whose type is that of its target. Their values take no space, and there is no code that
/// makes them.
fn targets<'a>(
    target: &TokenStream,
    fields: impl Iterator<Item = (&'a Field, Ident)>,
) -> TokenStream {
    let (mut names, mut taken, mut types, mut none) = (vec![], vec![], vec![], vec![]);
    for (field, ident) in fields {
        let (name, span) = (target_local(field), field.name.span);
        taken.push(quote_spanned!(span=> #ident: #name));
        types.push(quote!(::apiloom::codegen::type_of(#name)));
        none.push(quote!(::core::marker::PhantomData));
        names.push(name);
    }
    quote! {
        let (#(#names,)*) = match ::apiloom::codegen::never::<#target>() {
            ::core::option::Option::Some((#target { #(#taken,)* .. }, _)) => (#(#types,)*),
            ::core::option::Option::None => (#(#none,)*),
        };
    }
}

/// The variable with the type of a field's target.
fn target_local(field: &Field) -> Ident {
    let span = Span::mixed_site().located_at(field.name.span);
    Ident::new(&format!("__apiloom_to_{}", field.name.text), span)
}

/// The field's value, converted to the type of the target field.
fn converted(field: &Field, with: Option<&Code>) -> TokenStream {
    let (local, json, target) = (local(&field.name), &field.json_name, target_local(field));
    // Without `?`: its calls are half of the machine code of a conversion.
    let (span, result) = match with {
        None => {
            let span = field.name.span;
            let result = quote_spanned! {span=>
                (::apiloom::codegen::Conv { value: #local, target: #target }).convert(#json)
            };
            (span, result)
        }
        // Not the user's span: clippy would lint the call of a closure as the user's code.
        Some(function) => {
            let (span, called) = (function.span().start, quote!((#function)(#local)));
            let result = quote_spanned! {span=>
                (::apiloom::codegen::ReturnValue { value: #called, target: #target }).value(#json)
            };
            (span, result)
        }
    };
    quote_spanned! {span=>
        match #result {
            ::core::result::Result::Ok(value) => value,
            ::core::result::Result::Err(error) => return ::core::result::Result::Err(::apiloom::codegen::convert_error(error)),
        }
    }
}

/// Both directions between an enum and a peer, variant by variant.
pub(crate) fn of_enum(model: &ApiEnum, conversion: &Conversion) -> TokenStream {
    if conversion.manual {
        return TokenStream::new();
    }
    let this = model.name.to_ident();
    if let Some(functions) = &conversion.with {
        return by_functions(&this, &conversion.peer, functions);
    }
    let (this, peer) = (quote!(#this), &conversion.peer);
    let peer = quote!(#peer);
    let one_way = |from: &TokenStream, to: &TokenStream| {
        let arms = model
            .variants
            .iter()
            .map(|variant| arm(&variant.name, &variant.content, variant.unknown, from, to));
        quote! {
            #[automatically_derived]
            impl ::apiloom::codegen::ConvertFrom<#from> for #to {
                fn convert_from(value: #from) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                    ::core::result::Result::Ok(match value { #(#arms,)* })
                }
            }
        }
    };
    let (there, back) = (one_way(&this, &peer), one_way(&peer, &this));
    quote!(#there #back)
}

fn arm(
    name: &Name,
    content: &Content,
    unknown: bool,
    from: &TokenStream,
    to: &TokenStream,
) -> TokenStream {
    let variant = name.to_ident();
    match content {
        Content::Unit => quote_spanned!(name.span=> #from::#variant => #to::#variant),
        Content::Value(_) if unknown => {
            quote_spanned!(name.span=> #from::#variant(value) => #to::#variant(value))
        }
        Content::Value(_) => quote_spanned! {name.span=>
            #from::#variant(value) => #to::#variant(::apiloom::codegen::ConvertFrom::convert_from(value)?)
        },
        Content::Fields(fields) => {
            let names: Vec<Ident> = fields.iter().map(|field| field.name.to_ident()).collect();
            quote_spanned! {name.span=>
                #from::#variant { #(#names),* } => #to::#variant {
                    #(#names: ::apiloom::codegen::ConvertFrom::convert_from(#names)?),*
                }
            }
        }
    }
}
