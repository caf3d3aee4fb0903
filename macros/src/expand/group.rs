//! Expands `group!` to a constant.

use apiloom_model::{Diagnostics, parse_group};
use proc_macro2::{Span, TokenStream};
use quote::quote;

use super::place::place;
use super::resource::text;

/// Emits `pub const GROUP`, which `install` and the server read.
pub(crate) fn group(tokens: TokenStream, d: &mut Diagnostics) -> TokenStream {
    let Some(group) = parse_group(tokens, d).filter(|_| d.is_empty()) else {
        return constant(
            "",
            quote!(name: ::apiloom::codegen::SmolStr::new_static(""), versions: ::std::borrow::Cow::Borrowed(&[]), release: ::core::option::Option::None),
        );
    };
    let name = &group.name.value;
    let versions = group.versions.iter().map(|version| text(&version.value));
    let release = match &group.release {
        Some(release) => {
            let (major, minor) = (release.major, release.minor);
            quote!(::core::option::Option::Some(::apiloom::codegen::Release { major: #major, minor: #minor }))
        }
        None => quote!(::core::option::Option::None),
    };
    let name_text = text(name);
    constant(
        &format!("The API group `{name}`."),
        quote!(name: #name_text, versions: ::std::borrow::Cow::Borrowed(&[#(#versions),*]), release: #release),
    )
}

fn constant(doc: &str, fields: TokenStream) -> TokenStream {
    let place = place(Span::call_site());
    quote! {
        #[doc = #doc]
        pub const GROUP: ::apiloom::codegen::GroupDef = ::apiloom::codegen::GroupDef { #fields, place: #place };
    }
}
