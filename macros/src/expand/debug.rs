//! `Debug` of structs with sensitive fields, which hides their values. Other structs derive it.

use apiloom_model::ApiStruct;
use proc_macro2::TokenStream;
use quote::quote;

/// Whether the struct has sensitive fields.
pub(crate) fn is_written_out(model: &ApiStruct) -> bool {
    model.fields.iter().any(|field| field.sensitive.is_some())
}

/// The impl; nothing for a struct that derives it.
pub(crate) fn of_struct(model: &ApiStruct) -> TokenStream {
    if !is_written_out(model) {
        return TokenStream::new();
    }
    let (name, text) = (model.name.to_ident(), &model.name.text);
    let fields = model.fields.iter().map(|field| {
        let (ident, label) = (field.name.to_ident(), &field.name.text);
        if field.sensitive.is_some() {
            quote!(.field(#label, &::apiloom::codegen::Redaction))
        } else {
            quote!(.field(#label, &self.#ident))
        }
    });
    quote! {
        #[automatically_derived]
        impl ::core::fmt::Debug for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#text) #(#fields)* .finish()
            }
        }
    }
}
