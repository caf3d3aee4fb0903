//! The source location of a kind's or group's declaration.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

/// The file and line of a span, which rustc fills in where the expansion is compiled.
pub(crate) fn place(span: Span) -> TokenStream {
    quote_spanned! {span=>
        ::core::option::Option::Some(::apiloom::codegen::Place {
            file: ::core::file!(),
            line: ::core::line!(),
        })
    }
}
