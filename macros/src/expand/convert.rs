//! `ConvertFrom` both ways between a type and its peer, so that rustc reports every field that nobody spoke for.
//!
//! The macro sees one side only. It destructures both sides without `..` and builds both as literals without `..`: a field
//! that one side lacks is then an error that names it.

use apiloom_model::api::{Content, Conversion, Field};
use apiloom_model::{ApiEnum, ApiStruct, Code, Kind, Name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// Both directions between a spoke's root and its hub.
pub(crate) fn of_root(kind: &Kind) -> TokenStream {
    let Some(hub) = &kind.spoke_of else {
        return TokenStream::new();
    };
    let proof = same_kind(kind, hub);
    let impls = root_impls(kind, hub);
    quote!(#proof #impls)
}

/// Proves that the hub is the same kind of the same group in another version.
fn same_kind(kind: &Kind, hub: &Code) -> TokenStream {
    let (this, span) = (kind.root.name.to_ident(), hub.span().start);
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
    let to_peer = to_peer(&this, model, conversion);
    let from_peer = from_peer(&this, model, conversion);
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::ConvertFrom<#this> for #peer {
            fn convert_from(value: #this) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                #[allow(unused_imports)]
                use ::apiloom::codegen::ConvertVia as _;
                #to_peer
            }
        }
        #[automatically_derived]
        impl ::apiloom::codegen::ConvertFrom<#peer> for #this {
            fn convert_from(value: #peer) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                #[allow(unused_imports)]
                use ::apiloom::codegen::ConvertVia as _;
                #from_peer
            }
        }
    }
}

/// Both directions by functions of the user's that cannot fail.
fn by_functions(this: &Ident, peer: &Code, (to, from): &(Code, Code)) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl ::apiloom::codegen::ConvertFrom<#this> for #peer {
            fn convert_from(value: #this) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                ::core::result::Result::Ok((#to)(value))
            }
        }
        #[automatically_derived]
        impl ::apiloom::codegen::ConvertFrom<#peer> for #this {
            fn convert_from(value: #peer) -> ::core::result::Result<Self, ::apiloom::codegen::ConvertError> {
                ::core::result::Result::Ok((#from)(value))
            }
        }
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

/// A local variable that cannot meet a name of the user's.
fn local(name: &Name) -> Ident {
    Ident::new(
        &format!("__apiloom_{}", name.text),
        Span::mixed_site().located_at(name.span),
    )
}

fn to_peer(this: &Ident, model: &ApiStruct, conversion: &Conversion) -> TokenStream {
    let peer = &conversion.peer;
    let taken = model.fields.iter().map(|field| {
        let (name, local) = (field.name.to_ident(), local(&field.name));
        if field.convert.drop {
            quote!(#name: _)
        } else {
            quote!(#name: #local)
        }
    });
    let given = model
        .fields
        .iter()
        .filter(|field| !field.convert.drop)
        .map(|field| {
            let target = peer_field(field);
            let value = converted(
                field,
                &quote!(#peer),
                &target,
                field.convert.with.as_ref().map(|(to, _)| to),
            );
            quote!(#target: #value)
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
    let span = peer.span().start;
    let literal = quote_spanned!(span=> { #(#given,)* #(#hub_only,)* #(#lossy,)* });
    quote! {
        let #this { #(#taken,)* } = value;
        ::core::result::Result::Ok(#peer #literal)
    }
}

fn from_peer(this: &Ident, model: &ApiStruct, conversion: &Conversion) -> TokenStream {
    let peer = &conversion.peer;
    let taken = model
        .fields
        .iter()
        .filter(|field| !field.convert.drop)
        .map(|field| {
            let (name, local) = (peer_field(field), local(&field.name));
            quote!(#name: #local)
        });
    let mut lost: Vec<&Name> = conversion.hub_only.iter().map(|(name, _)| name).collect();
    lost.extend(
        conversion
            .lossy
            .iter()
            .filter(|name| !conversion.hub_only.iter().any(|(n, _)| n == *name)),
    );
    let lost = lost.into_iter().map(|name| {
        let name = name.to_ident();
        quote!(#name: _)
    });
    let given = model.fields.iter().map(|field| {
        let name = field.name.to_ident();
        let value = match (&field.convert.default, field.convert.drop) {
            (Some(default), _) => quote!(#default),
            (None, true) => quote!(::core::default::Default::default()),
            (None, false) => converted(
                field,
                &quote!(#this),
                &name,
                field.convert.with.as_ref().map(|(_, from)| from),
            ),
        };
        quote!(#name: #value)
    });
    // The user's span on the braces: rustc names a field that nobody spoke for only in a pattern of the user's context.
    let span = peer.span().start;
    let pattern = quote_spanned!(span=> { #(#taken,)* #(#lost,)* });
    quote! {
        let #peer #pattern = value;
        ::core::result::Result::Ok(#this { #(#given,)* })
    }
}

/// The field's value, on its way to a field of the target type.
fn converted(
    field: &Field,
    target: &TokenStream,
    target_field: &Ident,
    with: Option<&Code>,
) -> TokenStream {
    let (local, json, span) = (local(&field.name), &field.json_name, field.name.span);
    if let Some(function) = with {
        return quote!((#function)(#local));
    }
    quote_spanned! {span=>
        ::apiloom::codegen::Conv::to_field(#local, |target: &#target| &target.#target_field)
            .convert()
            .map_err(|error| error.inside(#json))?
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
